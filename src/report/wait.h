// SPDX-License-Identifier: Apache-2.0
// What `vacate wait` says: who is in the way, at once and on change; a line a GPU on a terminal; one line for the
// service manager; the outcome for people and as vacate.wait/1. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/holder.h"
#include "model/outcome.h"
#include "model/snapshot.h"
#include "model/wait.h"
#include "report/render_style.h"

namespace vacate {

/// A wait at one moment, or at its end.
struct WaitReport {
  WaitRequest request;
  std::vector<GpuGate> gates;  ///< the selected GPUs, by index
  Snapshot snapshot;           ///< of the last look, with the figures of the last sample
  Attribution attribution;     ///< of the last look
  WaitVerdict verdict = WaitVerdict::cannot_tell;
  double waited = 0;                   ///< seconds
  std::vector<StepResult> reaped;      ///< by --reap
  std::vector<std::string> unmatched;  ///< selectors that no holder fits, a line each
  std::string note;                    ///< why no GPU can be judged, where none can
  int interrupted_by = 0;              ///< number of the signal that ended vacate itself early, else 0
};

/// Whoever is in the way of any GPU, by pid; each a holder of `report.attribution`.
[[nodiscard]] std::vector<const Holder*> in_the_way(const WaitReport& report);

/// A line or more a GPU that is not free: who, how much, since when, what to do. Empty where all are free.
[[nodiscard]] std::string render_in_the_way(const WaitReport& report, const RenderStyle& style);
/// A line a GPU, for a terminal.
[[nodiscard]] std::vector<std::string> render_wait_lines(const WaitReport& report);
/// One line of at most 200 bytes: "GPU 0-3: waiting for 4711 VLLM::Worker_TP0, running for 12min and 7 more".
[[nodiscard]] std::string render_wait_status(const WaitReport& report);
/// The same for the end of the wait. A service that was started then keeps it in its status, so it tells of the past.
[[nodiscard]] std::string render_wait_last_status(const WaitReport& report);
/// The last line, or lines: verdict, time, and at the deadline who is in the way.
[[nodiscard]] std::string render_wait_outcome(const WaitReport& report, const RenderStyle& style);
/// One JSON object and a line feed.
[[nodiscard]] std::string render_wait_json(const WaitReport& report);

}  // namespace vacate
