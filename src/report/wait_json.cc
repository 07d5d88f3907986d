// SPDX-License-Identifier: Apache-2.0
// vacate.wait/1.
#include "report/json_parts.h"
#include "report/wait.h"

namespace vacate {
namespace {

using namespace json;  // NOLINT(google-build-using-namespace): the parts of one writer

Json condition_of(const WaitRequest& request) {
  const auto& condition = request.condition;
  Json object;
  object["kind"] = describe(condition.kind);
  const bool has_limit = condition.kind != ConditionKind::idle;
  object["amount"] = has_limit && !condition.limit.percent ? Json(condition.limit.amount.count) : Json(nullptr);
  object["percent"] = has_limit && condition.limit.percent ? Json(*condition.limit.percent) : Json(nullptr);
  object["hold"] = seconds_of(static_cast<double>(request.hold.count()) / 1000);
  object["timeout"] = seconds_of(static_cast<double>(request.timeout.count()) / 1000);
  return object;
}

Json gate_of(const GpuGate& gate) {
  Json object;
  object["index"] = gate.index;
  put_text(object, "uuid", gate.uuid, "no answer");
  object["state"] = describe(gate.state);
  put(object, "total", gate.total);
  put(object, "used", gate.used);
  put(object, "free", gate.free);
  put(object, "limit", gate.limit);
  object["in_the_way"] = numbers(gate.in_the_way);
  object["charged_unseen"] = numbers(gate.charged_unseen);
  object["detail"] = safe(gate.detail);
  return object;
}

}  // namespace

std::string render_wait_json(const WaitReport& report) {
  Json object;
  object["schema"] = "vacate.wait/1";
  object["verdict"] = describe(report.verdict);
  object["exit"] = static_cast<int>(exit_code_of(report.verdict));
  object["waited"] = seconds_of(report.waited);
  object["gpus"] = list_of(report.gates, gate_of);
  object["in_the_way"] =
      list_of(in_the_way(report), [&](const Holder* holder) { return holder_json(*holder, report.snapshot); });
  object["condition"] = condition_of(report.request);
  object["reaped"] = list_of(report.reaped, step_result_json);
  object["driver"] = driver_json(report.snapshot.driver);
  object["visibility"] = visibility_json(report.snapshot.visibility);
  object["unmatched"] = texts(report.unmatched);
  return one_line(object);
}

}  // namespace vacate
