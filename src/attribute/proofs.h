// SPDX-License-Identifier: Apache-2.0
// What proves that the owner of an adopted process is dead (design.md, Standing, test 3; facts.md 3.7). Each proof is a
// sentence for the user. What could not be read proves nothing, and neither does a name. Nothing here says that a
// process was adopted: see parentage.h.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "attribute/census.h"
#include "attribute/charges.h"

namespace vacate {

/// A pipe or socket-pair end that it was born with, close-on-exec and above 2, has nobody at the other end, or only
/// processes that `is_leftover` calls proven. Never one whose other end it holds itself, nor one that it may have made
/// later. In a partial view only "nobody" counts, which the kernel itself can say.
[[nodiscard]] std::optional<std::string> broken_pipe_proof(const Census& census, const Process& process,
                                                           const std::function<bool(pid_t)>& is_leftover);

/// Its command line names its parent (--parent=PID), and that process is dead.
[[nodiscard]] std::optional<std::string> dead_named_parent_proof(const Process& process);

/// It keeps a client whose opener is dead. That the driver charges a dead pid on a GPU which it has open is not enough:
/// a monitor has every GPU open, a trainer that is starting has no charge yet, and a stale pid in a list is nobody's.
/// It has to be an inheritor (charges.h) that looks like a computing process, the opener led its process group or
/// session, and nobody else of that group or session could be the keeper: each uncharged one that could is it, or
/// shares one open file description with it and all the others. Only where every table of descriptors was read and
/// every list of the driver is whole.
[[nodiscard]] std::optional<std::string> dead_opener_proof(const Census& census, const Charges& charges,
                                                           const Process& process);

}  // namespace vacate
