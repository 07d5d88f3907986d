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

/// Where a reference may hide that no table of descriptors shows: its owner is known, what it is may not be.
enum class HiddenKind {
  in_flight,      ///< queued on a socket, received by nobody; what is queued cannot be seen (facts.md 3.1)
  io_uring_file,  ///< registered with a ring
};
[[nodiscard]] std::string_view describe(HiddenKind kind) noexcept;

/// A hint, never evidence: nobody is a holder by it.
struct HiddenReference {
  pid_t pid = 0;  ///< owner of the socket or ring
  HiddenKind kind = HiddenKind::in_flight;
  int fd = -1;         ///< the socket or ring
  unsigned count = 0;  ///< files queued or registered
  std::string path;    ///< of the registered file, hostile bytes; empty where it cannot be known
  bool operator==(const HiddenReference&) const = default;
};

}  // namespace vacate
