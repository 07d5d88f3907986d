// SPDX-License-Identifier: Apache-2.0
// Observed facts that make a process a holder: what refers to which device node, and how. Facts only, no judgement.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/device.h"

namespace vacate {

enum class EvidenceKind {
  descriptor,         ///< /proc/PID/fd
  thread_descriptor,  ///< a table of its own of one thread, or of a zombie leader's thread
  mapping,            ///< a mapping of the node
  inherited_client,   ///< derived: the driver charges a dead process here whose client this one keeps alive
};
[[nodiscard]] std::string_view describe(EvidenceKind kind) noexcept;

/// `count` references of one kind from process `pid` to node `node` (an index into Snapshot::nodes).
struct Reference {
  pid_t pid = 0;
  EvidenceKind kind = EvidenceKind::descriptor;
  std::size_t node = 0;
  unsigned count = 0;
  std::string detail;  ///< e.g. "fd 12", "thread 4713", for people

  bool operator==(const Reference&) const = default;
};

}  // namespace vacate
