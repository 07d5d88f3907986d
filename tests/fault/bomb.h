// SPDX-License-Identifier: Apache-2.0
// A fork bomb of holders: copies of a leftover that hold its GPU and fork as fast as their process limit lets them.
#pragma once

#include <string>
#include <vector>

namespace fault {

/// Plays `free` against it and prints what is wrong; the exit code of the test.
[[nodiscard]] int play_bomb();

/// `--be-bomb PID`: takes over the GPU files of PID, gives up root for a user with few processes, and forks for ever.
[[nodiscard]] int be_bomb(const std::vector<std::string>& words);

}  // namespace fault
