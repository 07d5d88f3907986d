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

/// malformed: `path` of `more` is no directory of a tmpfs or hugetlbfs.
[[nodiscard]] Result<ShmListed> list_shm(const std::vector<std::string>& more);

/// Mount points of type hugetlbfs in a mountinfo text. Pure.
[[nodiscard]] std::vector<std::string> parse_huge_page_mounts(std::string_view mountinfo);

/// Names of directories whose files are segments: joblib's. Others are left closed.
[[nodiscard]] bool is_segment_folder(std::string_view name) noexcept;

}  // namespace vacate
