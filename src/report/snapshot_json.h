// SPDX-License-Identifier: Apache-2.0
// A recorded machine as bytes and back: vacate.snapshot/1. Pure. What was written is read back bit for bit; what was
// written by somebody else is taken for hostile. docs/snapshots.md describes the format for people.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/snapshot.h"

namespace vacate {

/// A snapshot with what a reader of the file has to know about it.
struct Recording {
  Snapshot snapshot;
  std::string version;    ///< of the vacate that recorded it
  bool redacted = false;  ///< names, paths and users are stand-ins
  bool operator==(const Recording&) const = default;
};

/// More is no recording of ours: 64 MiB.
inline constexpr std::size_t kLargestRecording = std::size_t{64} << 20U;

/// Indented JSON of ASCII characters only, so that a person can look through it, on a terminal as well, before handing
/// it on. Every figure in `recording` has to be finite.
[[nodiscard]] std::string render_snapshot_json(const Recording& recording);

/// malformed: what is wrong and where, in one line: "/processes/12/key/pid: expected a number from 0 to 2147483647".
/// Everything that the pure stages rely on is checked: ranges, order of lists, references to nodes that there are.
[[nodiscard]] Result<Recording> parse_snapshot_json(std::string_view text);

}  // namespace vacate
