// SPDX-License-Identifier: Apache-2.0
// Words that the sentences of `why` about processes and those about GPUs share.
#pragma once

#include <string>
#include <vector>

#include "model/snapshot.h"

namespace vacate {

constexpr std::size_t kLongestWhyTitle = 256;  ///< bytes of a title that are shown

/// The title, cut to that and printable.
[[nodiscard]] std::string why_title(const Process& process);
/// "4711 (python3)" where it was seen, else "4711".
[[nodiscard]] std::string why_name(const Snapshot& snapshot, pid_t pid);
/// "4711-4713, 4720" of sorted pids: with blanks, so that a long list can be broken into lines.
[[nodiscard]] std::string why_pids(const std::vector<pid_t>& pids);

}  // namespace vacate
