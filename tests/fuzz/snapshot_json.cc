// SPDX-License-Identifier: Apache-2.0
// A recorded machine, perhaps from a stranger's bug report: what is read is written and read again the same, and every
// pure stage takes it.
#include "report/snapshot_json.h"
#include "attribute/attribute.h"
#include "fuzz.h"
#include "plan/plan_free.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

void check_stages(const Snapshot& snapshot) {
  const Policy policy;
  const auto attribution = attribute_holders(snapshot, policy);
  require(attribution == attribute_holders(snapshot, policy), "snapshot: the same machine gives the same holders");
  for (const auto scope : {Scope::leftovers, Scope::all}) {
    FreeRequest request;
    request.scope = scope;
    const auto plan = plan_free(snapshot, attribution, request);
    if (!plan) continue;
    for (const auto& step : plan->steps) {
      if (step.action != Action::signal) continue;
      require(step.key.pid > 1 && step.key.pid != snapshot.caller.self.pid, "snapshot: never init, never vacate");
      const auto* process = snapshot.find(step.key.pid);
      require(process != nullptr && !process->kernel_thread, "snapshot: who is signalled was seen");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto recording = parse_snapshot_json(as_text(data, size));
  if (!recording) {
    require(is_one_clean_line(recording.error().message), "snapshot: the complaint is one line");
    return 0;
  }
  const auto written = render_snapshot_json(*recording);
  for (const char c : written) require(c == '\n' || (c >= ' ' && c <= '~'), "snapshot: nothing but ASCII");
  const auto again = parse_snapshot_json(written);
  require(again.has_value() && *again == *recording, "snapshot: written and read again it is the same");
  require(render_snapshot_json(*again) == written, "snapshot: to the byte");
  check_stages(recording->snapshot);
  return 0;
}
