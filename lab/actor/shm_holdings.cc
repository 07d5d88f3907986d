// SPDX-License-Identifier: Apache-2.0
// See shm_holdings.h.
#include "lab/actor/shm_holdings.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>

namespace lab {

using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

Result<void> ShmHoldings::acquire(const ShmPlan& plan) {
  constexpr std::uint64_t kLeast = 4096;
  if (plan.use == ShmUse::attached) {
    void* memory = shmat(static_cast<int>(plan.id), nullptr, 0);
    // shmat(2) fails with an address that no mapping can have.
    if (reinterpret_cast<std::intptr_t>(memory) == -1) return system_error("attaching a System V segment");
    attached_.push_back(memory);
    return {};
  }
  UniqueFd file(open(("/dev/shm/" + plan.name).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return system_error("/dev/shm/" + plan.name);
  if (plan.use == ShmUse::mapped) {
    const auto size = static_cast<std::size_t>(std::max(plan.bytes, kLeast));
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
    if (memory == MAP_FAILED) return system_error("mapping /dev/shm/" + plan.name);
    mappings_.push_back({memory, size});
    return {};
  }
  // Shared, as vLLM's engines lock: several can.
  if (plan.use == ShmUse::locked && flock(file.get(), LOCK_SH | LOCK_NB) != 0)
    return system_error("locking /dev/shm/" + plan.name);
  files_.push_back(std::move(file));
  return {};
}

void ShmHoldings::drop() noexcept {
  files_.clear();
  for (const Mapped& mapped : mappings_) munmap(mapped.memory, mapped.size);
  for (void* memory : attached_) shmdt(memory);
  mappings_.clear();
  attached_.clear();
}

}  // namespace lab
