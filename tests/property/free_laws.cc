// SPDX-License-Identifier: Apache-2.0
// `free` as a whole on machines made at random: what a dry run plans is what the real run carries out, to the byte, by
// whatever way the plan takes. Nobody is pinned here, so nobody can be signalled: the machines are not this one.
#include <chrono>
#include <string>
#include <vector>

#include <rapidcheck.h>
#include <nlohmann/json.hpp>

#include "any_free.h"
#include "app/agreed_free.h"
#include "app/free.h"
#include "attribute/attribute.h"
#include "laws.h"
#include "report/plan_json.h"
#include "report/snapshot_json.h"

namespace {

using namespace vacate;
using namespace std::chrono_literals;
using vacate::testing::any_policy;
using vacate::testing::any_request;
using vacate::testing::any_scan;

using Clock = Deadline::Clock;

class Silence final : public ExecutionObserver, public ReleaseObserver {
 public:
  void on_execution(const ExecutionProgress& /*progress*/) override {}
  void on_release(const std::vector<WatchedGpu>& /*gpus*/) override {}
};

struct Stage {
  Snapshot snapshot = any_scan();
  Policy policy = any_policy();
  FreeRequest request = request_without_time(any_request(attribute_holders(snapshot, policy)));

  [[nodiscard]] Look look() const {
    Look look;
    look.scan.snapshot = snapshot;
    look.attribution = attribute_holders(snapshot, policy);
    return look;
  }
  [[nodiscard]] Result<PreparedFree> prepare() const { return prepare_free(look(), {}, request, Clock::now()); }

 private:
  /// One round, and no wait for memory.
  static FreeRequest request_without_time(FreeRequest request) {
    request.timeout = 0ms;
    request.keep_shm = true;
    return request;
  }
};

FreeReport carry_out_on(const Stage& stage, PreparedFree prepared) {
  Silence silence;
  NoActionLog log;
  const auto sample = [&](Deadline) {
    return DriverSample{stage.snapshot.driver, stage.snapshot.gpus, stage.snapshot.charges, {}};
  };
  const FreeTools tools{[&] { return stage.look(); }, sample, [] {}, silence, silence, log, -1, {}};
  return carry_out(std::move(prepared), tools, stage.policy);
}

std::string plan_in(const std::string& report) { return nlohmann::ordered_json::parse(report).at("plan").dump(); }

/// n and pid of each result, in order.
std::vector<std::pair<unsigned, pid_t>> answered(const FreeReport& report) {
  std::vector<std::pair<unsigned, pid_t>> steps;
  for (const auto& result : report.outcome.results) steps.emplace_back(result.n, result.pid);
  return steps;
}

// --- laws

void a_dry_run_plans_what_the_real_run_carries_out() {
  const Stage s;
  auto shown = s.prepare();
  auto real = s.prepare();
  RC_ASSERT(shown.has_value() == real.has_value());
  if (!shown) return;
  const auto rehearsed = rehearse(*shown, s.policy);
  const auto done = carry_out_on(s, std::move(*real));
  RC_ASSERT(plan_in(render_free_json(rehearsed.outcome)) == plan_in(render_free_json(done.outcome)));
  RC_ASSERT(answered(rehearsed) == answered(done));
  RC_ASSERT(rehearsed.outcome.results.size() == rehearsed.outcome.plan.steps.size());
  for (const auto& report : {rehearsed, done})
    for (const auto& result : report.outcome.results) RC_ASSERT(result.signals.empty());
}

// After the question, or from the file that the dry run's output was saved in.
void what_was_shown_is_what_is_carried_out() {
  const Stage s;
  auto shown = s.prepare();
  if (!shown) return;
  const std::string dry = render_free_json(rehearse(*shown, s.policy).outcome);
  const auto filed = parse_plan_json(dry);
  RC_ASSERT(filed.has_value());
  for (const Plan& reviewed : {shown->plan, *filed}) {
    auto agreed = prepare_agreed(s.look(), {}, s.request, Clock::now(), reviewed, Newcomers::left_to_rounds);
    RC_ASSERT(agreed.has_value());
    RC_ASSERT(agreed->gpus == shown->gpus);
    RC_ASSERT(plan_in(render_free_json(carry_out_on(s, std::move(*agreed)).outcome)) == plan_in(dry));
  }
}

void a_recorded_machine_plans_the_same() {
  const Stage s;
  auto shown = s.prepare();
  if (!shown) return;
  Recording recording;
  recording.snapshot = s.snapshot;
  auto read = parse_snapshot_json(render_snapshot_json(recording));
  RC_ASSERT(read.has_value());
  Look look;
  look.scan.snapshot = std::move(read->snapshot);
  look.attribution = attribute_holders(look.scan.snapshot, s.policy);
  auto replayed = prepare_free(std::move(look), {}, s.request, Clock::now());
  RC_ASSERT(replayed.has_value());
  RC_ASSERT(plan_in(render_free_json(rehearse(*replayed, s.policy).outcome)) ==
            plan_in(render_free_json(rehearse(*shown, s.policy).outcome)));
}

}  // namespace

int main() {
  return vacate::check_all({
      {"a dry run plans what the real run carries out", a_dry_run_plans_what_the_real_run_carries_out},
      {"what was shown is what is carried out", what_was_shown_is_what_is_carried_out},
      {"a recorded machine plans the same", a_recorded_machine_plans_the_same},
  });
}
