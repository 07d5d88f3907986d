// SPDX-License-Identifier: Apache-2.0
// What is to be thought of each segment of one look (design.md rule 10): unused only where everything was visible,
// nobody maps, opens or locks it, its family is known, it is old enough, and nobody lives who may answer for it. Pure.
#pragma once

#include <set>
#include <vector>

#include "model/shm.h"

namespace vacate {

/// A file for which the age rule is waived: it was seen in use by somebody who has ended since.
using ShmFileKey = std::pair<std::uint64_t, std::uint64_t>;  ///< device and inode

/// One finding a segment, in the order of the segments. `waived`: see above.
[[nodiscard]] std::vector<ShmFinding> judge_shm(const ShmSnapshot& snapshot, const ShmRequest& request,
                                                const std::set<ShmFileKey>& waived = {});

/// Was everybody seen who could use a file? With `assume_private` what lies outside this pid namespace does not count.
[[nodiscard]] bool sees_all_users(const ShmSnapshot& snapshot, const ShmRequest& request);

}  // namespace vacate
