// SPDX-License-Identifier: Apache-2.0
// The directories of a look at shared memory: opened once, listed into segments. Opens none of the files.
#pragma once

#include <string>
#include <vector>

#include "model/shm.h"
#include "os/shm_files.h"

namespace vacate {

/// What was found in all places together.
struct ShmListed {
  std::vector<ShmPlace> places;
  std::vector<ShmSegment> segments;  ///< without users
  std::vector<BlindSpot> blind_spots;
};

/// More directories than this are not looked at: a run that is asked for more is refused.
inline constexpr std::size_t kMostShmPlaces = 64;

/// malformed: `path` of `more` is no directory of a tmpfs or hugetlbfs, or there are more than kMostShmPlaces. A
/// directory of whatever else is found out by the kernel's table of mounts and is not opened: its file system may be
/// dead.
[[nodiscard]] Result<ShmListed> list_shm(const std::vector<std::string>& more);

/// Names of directories whose files are segments: joblib's. Others are left closed.
[[nodiscard]] bool is_segment_folder(std::string_view name) noexcept;

}  // namespace vacate
