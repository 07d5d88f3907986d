// SPDX-License-Identifier: Apache-2.0
#include "app/gpu_locks.h"

#include <algorithm>

namespace vacate {

std::string lock_name_of(const Gpu& gpu) {
  std::string name = gpu.uuid.empty() ? gpu.pci : gpu.uuid;
  for (auto& c : name) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    if (!is_plain) c = '_';
  }
  if (name.starts_with("GPU-")) name.erase(0, 4);
  return "gpu-" + name + ".lock";
}

Result<GpuLocks> GpuLocks::open(const std::vector<Gpu>& gpus) {
  std::vector<std::pair<std::string, unsigned>> names;
  for (const auto& gpu : gpus) names.emplace_back(lock_name_of(gpu), gpu.index);
  std::sort(names.begin(), names.end());
  GpuLocks locks;
  for (const auto& [name, index] : names) {
    auto file = LockFile::open(name);
    if (!file) return file.error();
    locks.locks_.push_back({index, *std::move(file)});
  }
  return locks;
}

Result<LockWait> GpuLocks::take(std::string_view command, Deadline deadline, int wake) {
  for (auto& lock : locks_) {
    if (lock.file.held()) continue;
    auto waited = lock.file.lock(command, deadline, wake);
    if (!waited || *waited != LockWait::taken) return waited;
  }
  return LockWait::taken;
}

std::optional<GpuLocks::Busy> GpuLocks::missing() const {
  for (const auto& lock : locks_)
    if (!lock.file.held()) return Busy{lock.index, lock.file.owner()};
  return std::nullopt;
}

std::vector<int> GpuLocks::descriptors() const {
  std::vector<int> descriptors;
  for (const auto& lock : locks_)
    if (lock.file.held()) descriptors.push_back(lock.file.descriptor());
  return descriptors;
}

}  // namespace vacate
