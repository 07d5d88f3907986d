// SPDX-License-Identifier: Apache-2.0
// See dumping.h.
#include "lab/actor/dumping.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "lab/driver/slow_file.h"

namespace lab {
namespace {

using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr const char* kSlowFile = "/run/lab/driver/slow";
constexpr std::size_t kSlowPage = 4096;
// core(5): the default, and mappings of shared files.
constexpr std::string_view kFilter = "0x3b";

}  // namespace

Result<void> allow_dump() {
  rlimit cores{};
  getrlimit(RLIMIT_CORE, &cores);
  if (cores.rlim_max == 0) return Error{ErrorCode::unsupported, "the limit on cores is 0 and cannot be lifted"};
  cores.rlim_cur = cores.rlim_max;
  if (setrlimit(RLIMIT_CORE, &cores) != 0) return system_error("lifting the limit on cores");
  return {};
}

Result<void> prepare_dump(std::uint32_t page, std::int64_t dump_ms) {
  // Each its own: a core has the same name for everybody, and nobody's is written over by another user.
  const std::string folder = std::string(kCoreFolder) + "/" + std::to_string(page);
  if (mkdir(folder.c_str(), 0700) != 0 || chdir(folder.c_str()) != 0) return system_error(folder);
  const UniqueFd filter(open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC));
  if (!filter || write(filter.get(), kFilter.data(), kFilter.size()) < 0) return system_error("what is dumped");
  const UniqueFd slow(open(kSlowFile, O_RDWR | O_CLOEXEC));
  const DelayRequest request{dump_ms};
  if (!slow || ioctl(slow.get(), kDelayRead, &request) != 0) return system_error(kSlowFile);
  void* const memory = mmap(nullptr, kSlowPage, PROT_READ, MAP_SHARED, slow.get(),
                            static_cast<off_t>(page) * static_cast<off_t>(kSlowPage));
  // Nobody else's page may be read ahead with it.
  if (memory == MAP_FAILED || madvise(memory, kSlowPage, MADV_RANDOM) != 0)
    return system_error("mapping the slow file");
  return {};
}

}  // namespace lab
