// SPDX-License-Identifier: Apache-2.0
// What `vacate status` prints: a table for people, vacate.status/1 for scripts. Pure: the same values give the same
// bytes. Every string of a process is made printable here, nowhere earlier.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/holder.h"
#include "model/snapshot.h"
#include "report/advice.h"
#include "report/render_style.h"

namespace vacate {

/// One look, narrowed to what was selected: `attribution` has the accounts and holders to show, the snapshot is whole.
struct StatusReport {
  std::string version;
  Snapshot snapshot;
  Attribution attribution;
  std::vector<Advice> advice;
  std::vector<std::string> unmatched;  ///< selectors that no holder fits, a line each
  bool of_selected = false;            ///< only some holders or GPUs were asked about
  Source source = Source::machine;
};

/// The first line of every text about a recording: when it was made, and that nothing was looked at now.
[[nodiscard]] std::string render_replay_line(const Snapshot& snapshot, const RenderStyle& style);

/// Lines of at most style.width columns where a title, a name or a reason can give way.
[[nodiscard]] std::string render_status_text(const StatusReport& report, const RenderStyle& style);
/// One JSON object and a line feed.
[[nodiscard]] std::string render_status_json(const StatusReport& report);

}  // namespace vacate
