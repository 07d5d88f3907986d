// SPDX-License-Identifier: Apache-2.0
// Who looks after a holder and may start it again: what a person has to stop, for otherwise the end of the holder is
// undone (reports.md 1.14). A label from what lives and what was asked; nobody is ended or spared because of it. Pure.
#pragma once

#include <optional>

#include "attribute/census.h"
#include "attribute/origins.h"
#include "model/holder.h"

namespace vacate {

/// The nearest launcher or supervisor among the living ancestors (torchrun, accelerate, deepspeed, ray, supervisord,
/// mpi: by executable or by the first words of the command line); else its service, container or batch job, unless that
/// is gone or left it over; else a terminal multiplexer or the shell that leads its session. Not for one whose owner is
/// gone: what adopted it looks after nobody.
[[nodiscard]] std::optional<Supervisor> supervisor_of(const Census& census, const Origins& origins,
                                                      const Process& process);

}  // namespace vacate
