// SPDX-License-Identifier: Apache-2.0
// What `vacate why` answers: what a process or a GPU is in the eyes of vacate, on what evidence, and what would free
// its memory and what would not. Sentences for people, vacate.why/1 for scripts. Pure; judges nothing itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/holder.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "report/render_style.h"

namespace vacate {

/// One thing that was asked about: exactly one of `process` and `gpu` is set.
struct WhySubject {
  std::optional<ProcessSelector> process;
  std::optional<unsigned> gpu;           ///< index
  std::optional<Protection> protection;  ///< of a process that holds nothing
  Plan usual;                            ///< what `vacate free` would do, for a GPU with --gpu
  Plan asked;                            ///< with --pid, for a GPU with --all --gpu
  std::string asked_why_not;             ///< why there is no such plan
};

struct WhyReport {
  std::string version;
  Snapshot snapshot;
  Attribution attribution;
  std::vector<WhySubject> subjects;
  Source source = Source::machine;
};

/// Sentences about one side of a subject.
struct WhyPart {
  std::string topic;  ///< stable for scripts: subject, evidence, condition, group, origin, standing, protection,
                      ///< account, holders, explanations, health, reset, frees, does-not-free
  std::vector<std::string> sentences;  ///< hostile bytes may be in them
};

/// Parts that have something to say, in the order of reading. Process: why_process.cc, GPU: why_gpu.cc.
[[nodiscard]] std::vector<WhyPart> explain_process(const WhyReport& report, const WhySubject& subject);
[[nodiscard]] std::vector<WhyPart> explain_gpu(const WhyReport& report, const WhySubject& subject);

[[nodiscard]] std::string render_why_text(const WhyReport& report, const RenderStyle& style);
/// One JSON object and a line feed.
[[nodiscard]] std::string render_why_json(const WhyReport& report);

}  // namespace vacate
