// SPDX-License-Identifier: Apache-2.0
// Space of a tmpfs that has no name any more, as its users' mappings and descriptors show it. Looks again at those
// users only, in an expendable child: reading maps can block for ever (facts.md 3.2).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/shm.h"

namespace vacate {

struct DeletedSeen {
  std::vector<DeletedShm> deleted;
  bool complete = true;  ///< false: some process has more of it than is counted, or could not be looked at to its end
};

/// `used`: by device and inode, who uses a file that no listing showed. What turns out to have a name is left out.
[[nodiscard]] DeletedSeen find_deleted(
    const std::vector<ShmPlace>& places,
    const std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<ShmUser>>& used);

}  // namespace vacate
