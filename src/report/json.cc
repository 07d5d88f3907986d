// SPDX-License-Identifier: Apache-2.0
// All JSON of vacate (cli.md, "JSON"): keys in a fixed order, memory in bytes, unknown = null beside the reason.
// Strings pass printable(), so the bytes are valid UTF-8 whatever a process calls itself.
#include <algorithm>

#include "model/origin.h"
#include "report/format.h"
#include "report/free.h"
#include "report/json_parts.h"
#include "report/status.h"

namespace vacate {
namespace {

using namespace json;  // NOLINT(google-build-using-namespace): the parts of one writer

Json visibility_of(const Visibility& visibility) {
  Json spots = Json::array();
  for (const auto& spot : visibility.blind_spots) {
    Json entry;
    entry["code"] = safe(spot.code);
    entry["detail"] = safe(spot.detail);
    spots.push_back(std::move(entry));
  }
  Json object;
  object["complete"] = visibility.complete();
  object["blind_spots"] = std::move(spots);
  return object;
}

Json host_of(const Host& host) {
  Json object;
  object["boot_id"] = safe(host.boot_id);
  object["kernel"] = safe(host.kernel);
  object["hostname"] = safe(host.hostname);
  return object;
}

Json driver_of(const Driver& driver) {
  Json object;
  object["vendor"] = safe(driver.vendor);
  put_text(object, "version", driver.version, "no answer");
  object["state"] = describe(driver.state);
  if (!driver.detail.empty()) object["detail"] = safe(driver.detail);
  return object;
}

std::string_view word_for(BaselineSource source) {
  switch (source) {
    case BaselineSource::configured:
      return "configured";
    case BaselineSource::measured:
      return "measured";
    case BaselineSource::assumed:
      return "assumed";
  }
  return "assumed";
}

Json memory_of(const GpuMemory& memory) {
  Json object;
  put(object, "total", memory.total);
  put(object, "used", memory.used);
  put(object, "reserved", memory.reserved);
  put(object, "free", memory.free);
  return object;
}

Json explanation_of(const Explanation& explanation) {
  Json object;
  object["code"] = safe(explanation.code);
  object["text"] = safe(explanation.text);
  object["pids"] = numbers(explanation.pids);
  return object;
}

Json blocker_of(const ResetBlocker& blocker) {
  Json object;
  object["pid"] = blocker.pid;
  object["way"] = safe(blocker.way);
  object["transient"] = blocker.transient;
  return object;
}

Json gpu_of(const Gpu& gpu, const GpuAccount& account) {
  Json object;
  object["index"] = gpu.index;
  put_text(object, "uuid", gpu.uuid, "no answer");
  put_text(object, "pci", gpu.pci, "no answer");
  put(object, "minor", gpu.minor);
  put_text(object, "name", gpu.name, "no answer");
  object["state"] = describe(gpu.state);
  object["memory"] = memory_of(gpu.memory);
  const auto& baseline = account.baseline;
  put(object, "baseline", baseline.known() ? Reading<Bytes>(baseline->amount) : Reading<Bytes>(baseline.reason()));
  object["attributed"] = account.attributed.count;
  put(object, "remainder", account.remainder);
  object["holders"] = numbers(account.holders);
  object["baseline_source"] = baseline.known() ? Json(word_for(baseline->source)) : Json(nullptr);
  object["explanations"] = list_of(account.explanations, explanation_of);
  object["reset_blockers"] = list_of(account.reset_blockers, blocker_of);
  return object;
}

Json evidence_of(const std::vector<HolderEvidence>& evidence) {
  Json list = Json::array();
  for (const auto& fact : evidence) {
    Json entry;
    entry["kind"] = describe(fact.kind);
    entry["node"] = safe(fact.node);
    entry["count"] = fact.count;
    entry["detail"] = safe(fact.detail);
    list.push_back(std::move(entry));
  }
  return list;
}

Json origin_of(std::string_view cgroup) {
  const Origin origin = parse_origin(cgroup);
  Json object;
  object["unit"] = optional_text(origin.unit);
  object["container"] = optional_text(origin.container);
  object["slurm_job"] = optional_text(origin.slurm_job);
  object["session"] = optional_text(origin.session);
  object["cgroup"] = cgroup.empty() ? Json(nullptr) : safe(cgroup);
  object["user_manager"] = origin.user_manager ? Json(*origin.user_manager) : Json(nullptr);
  object["runtime"] = origin.runtime.empty() ? Json(nullptr) : safe(origin.runtime);
  object["inner_container"] = optional_text(origin.inner_container);
  object["pod"] = optional_text(origin.pod);
  object["job"] = optional_text(origin.job);
  object["job_system"] = origin.job_system.empty() ? Json(nullptr) : safe(origin.job_system);
  return object;
}

Json supervisor_of(const std::optional<Supervisor>& supervisor) {
  if (!supervisor) return nullptr;
  Json object;
  object["kind"] = safe(supervisor->kind);
  object["name"] = safe(supervisor->name);
  object["pid"] = supervisor->pid != 0 ? Json(supervisor->pid) : Json(nullptr);
  object["restarts"] = nullptr;
  if (supervisor->restarts == Restarts::unknown)
    object["restarts_unknown"] = describe(Unknown::not_asked);
  else
    object["restarts"] = supervisor->restarts == Restarts::yes;
  return object;
}

Json protection_of(const std::optional<Protection>& protection) {
  if (!protection) return nullptr;
  Json object;
  object["rule"] = safe(protection->rule);
  object["detail"] = safe(protection->detail);
  object["source"] = protection->source.empty() ? Json(nullptr) : safe(protection->source);
  return object;
}

Json gpus_of(const Holder& holder) {
  Json list = Json::array();
  for (const auto& place : holder.gpus) {
    Json entry;
    entry["index"] = place.index;
    put(entry, "memory", place.memory);
    entry["evidence"] = evidence_of(place.evidence);
    list.push_back(std::move(entry));
  }
  return list;
}

/// What the process says about itself: user, names, age, condition.
void put_identity(Json& object, const Holder& holder, const Process& process) {
  object["pid"] = holder.key.pid;
  object["start"] = holder.key.start_ticks;
  object["key"] = to_string(holder.key);
  object["ppid"] = process.ppid;
  object["pgid"] = process.pgid;
  object["sid"] = process.sid;
  put_text(object, "user", process.user, "not read");
  put(object, "uid", process.uid);
  object["comm"] = safe(process.comm);
  object["title"] = safe(title_of(process));
  put(object, "exe", process.exe);
  object["started"] = format_rfc3339(process.started);
  object["condition"] = describe(process.condition);
}

Json holder_of(const Holder& holder, const Snapshot& snapshot) {
  static const Process
      kUnseen;  // a holder is always one of the snapshot's processes; blank rather than a crash otherwise
  const Process* process = snapshot.find(holder.key.pid);
  if (process == nullptr) process = &kUnseen;
  Json object;
  put_identity(object, holder, *process);
  object["standing"] = describe(holder.standing);
  object["because"] = texts(holder.because);
  object["protected"] = protection_of(holder.protection);
  object["role"] = describe(holder.role);
  object["group"] = holder.group;
  object["origin"] = origin_of(process->cgroup);
  object["supervisor"] = supervisor_of(holder.supervisor);
  object["gpus"] = gpus_of(holder);
  object["evidence"] = evidence_of(holder.common);
  object["ns_pids"] = numbers(process->ns_pids);
  object["login_uid"] = process->login_uid ? Json(*process->login_uid) : Json(nullptr);
  object["login_user"] = process->login_user.empty() ? Json(nullptr) : safe(process->login_user);
  object["tty"] = process->tty == 0 ? Json(nullptr) : safe(format_tty(process->tty));
  return object;
}

Json group_of(const Group& group, const Snapshot& snapshot) {
  Json relatives = Json::array();
  for (const auto& relative : group.relatives) {
    const Process* process = snapshot.find(relative.key.pid);
    Json entry;
    entry["pid"] = relative.key.pid;
    entry["title"] = process != nullptr ? safe(title_of(*process)) : Json("");
    entry["standing"] = describe(relative.standing);
    relatives.push_back(std::move(entry));
  }
  Json object;
  object["id"] = group.id;
  object["holders"] = numbers(group.holders);
  object["relatives"] = std::move(relatives);
  object["owner"] = nullptr;
  if (group.owner) {
    object["owner"] = Json::object();
    object["owner"]["pid"] = group.owner->pid;
    object["owner"]["title"] = safe(group.owner_title);
  }
  object["standing"] = describe(group.standing);
  return object;
}

Json untied_of(const UntiedCharge& charge) {
  Json object;
  object["gpu"] = charge.gpu;
  object["driver_pid"] = charge.driver_pid;
  put(object, "memory", charge.memory);
  object["detail"] = safe(charge.detail);
  object["inheritors"] = numbers(charge.inheritors);
  return object;
}

Json advice_of(const std::vector<Advice>& advice) {
  Json list = Json::array();
  for (const auto& piece : advice) {
    Json entry;
    entry["text"] = safe(piece.text);
    entry["command"] = safe(piece.command);
    list.push_back(std::move(entry));
  }
  return list;
}

Json step_of(const Step& step) {
  Json object;
  object["n"] = step.n;
  object["action"] = describe(step.action);
  object["key"] = to_string(step.key);
  object["pid"] = step.key.pid;
  object["unit"] = step.unit ? safe(step.unit->name) : Json(nullptr);
  object["path"] = nullptr;
  object["signal"] = step.action == Action::signal ? Json("TERM") : Json(nullptr);
  object["because"] = texts(step.because);
  object["rule"] = safe(step.rule);
  object["ask"] = is_ending(step.action) ? Json(describe(step.ask)) : Json(nullptr);
  object["title"] = safe(step.title);
  object["holder"] = step.holder;
  object["gpus"] = numbers(step.gpus);
  object["mps_server"] = step.mps_server != 0 ? Json(step.mps_server) : Json(nullptr);
  object["term_only"] = step.terms.term_only;
  object["thaw"] = step.thaw ? safe(step.thaw->path) : Json(nullptr);
  object["grace"] =
      step.terms.grace ? seconds_of(static_cast<double>(step.terms.grace->count()) / 1000) : Json(nullptr);
  object["pidfd_inode"] = step.key.pidfd_inode != 0 ? Json(step.key.pidfd_inode) : Json(nullptr);
  return object;
}

Json plan_of(const Plan& plan) {
  Json steps = Json::array();
  for (const auto& step : plan.steps) steps.push_back(step_of(step));
  Json object;
  object["id"] = safe(plan.id);
  object["boot_id"] = safe(plan.boot_id);
  object["pid_namespace"] = plan.pid_namespace;
  object["steps"] = std::move(steps);
  return object;
}

Json result_of(const StepResult& result) {
  Json object;
  object["n"] = result.n;
  object["pid"] = result.pid;
  put_ending(object, result);
  return object;
}

Json release_of(const GpuOutcome& gpu) {
  Json object;
  object["index"] = gpu.index;
  put_text(object, "uuid", gpu.uuid, "no answer");
  put(object, "before", gpu.before);
  put(object, "after", gpu.after);
  put(object, "baseline", gpu.baseline);
  object["verdict"] = describe(gpu.verdict);
  object["seconds"] = seconds_of(gpu.seconds);
  object["held_by"] = numbers(gpu.held_by);
  object["detail"] = safe(gpu.detail);
  object["explanations"] = list_of(gpu.explanations, explanation_of);
  object["reset_blockers"] = list_of(gpu.reset_blockers, blocker_of);
  return object;
}

Json record_of(const std::optional<RecordOutcome>& record) {
  if (!record) return nullptr;
  Json object;
  object["to"] = record->where.empty() ? Json(nullptr) : safe(record->where);
  object["entries"] = record->entries;
  object["lost"] = record->lost;
  object["detail"] = record->why.empty() ? Json(nullptr) : safe(record->why);
  return object;
}

const Gpu* find_gpu(const Snapshot& snapshot, unsigned index) {
  const auto at =
      std::find_if(snapshot.gpus.begin(), snapshot.gpus.end(), [&](const Gpu& gpu) { return gpu.index == index; });
  return at == snapshot.gpus.end() ? nullptr : &*at;
}

}  // namespace

namespace json {

Json host_json(const Host& host) { return host_of(host); }
Json driver_json(const Driver& driver) { return driver_of(driver); }
Json visibility_json(const Visibility& visibility) { return visibility_of(visibility); }
Json gpu_json(const Gpu& gpu, const GpuAccount& account) { return gpu_of(gpu, account); }
Json holder_json(const Holder& holder, const Snapshot& snapshot) { return holder_of(holder, snapshot); }
Json group_json(const Group& group, const Snapshot& snapshot) { return group_of(group, snapshot); }
Json plan_json(const Plan& plan) { return plan_of(plan); }
Json step_result_json(const StepResult& result) { return result_of(result); }
Json release_json(const GpuOutcome& gpu) { return release_of(gpu); }
Json advice_json(const std::vector<Advice>& advice) { return advice_of(advice); }
Json record_json(const std::optional<RecordOutcome>& record) { return record_of(record); }

}  // namespace json

std::string render_status_json(const StatusReport& report) {
  const Snapshot& snapshot = report.snapshot;
  Json gpus = Json::array();
  for (const auto& account : report.attribution.accounts)
    if (const auto* gpu = find_gpu(snapshot, account.index)) gpus.push_back(gpu_of(*gpu, account));
  Json object;
  object["schema"] = "vacate.status/1";
  object["version"] = safe(report.version);
  object["time"] = format_rfc3339(snapshot.time);
  object["host"] = host_of(snapshot.host);
  object["driver"] = driver_of(snapshot.driver);
  object["visibility"] = visibility_of(snapshot.visibility);
  object["gpus"] = std::move(gpus);
  object["holders"] =
      list_of(report.attribution.holders, [&](const Holder& holder) { return holder_of(holder, snapshot); });
  object["groups"] = list_of(report.attribution.groups, [&](const Group& group) { return group_of(group, snapshot); });
  object["charged_to_nobody"] = list_of(report.attribution.charged_to_nobody, untied_of);
  object["advice"] = advice_of(report.advice);
  object["unmatched"] = texts(report.unmatched);
  if (report.source == Source::recording) object["replay"] = true;
  return one_line(object);
}

std::string render_free_json(const Outcome& outcome, Source source) {
  Json object;
  object["schema"] = "vacate.free/1";
  object["verdict"] = describe(outcome.verdict);
  object["exit"] = static_cast<int>(exit_code_of(outcome));
  object["plan"] = plan_of(outcome.plan);
  object["results"] = list_of(outcome.results, result_of);
  object["gpus"] = list_of(outcome.gpus, release_of);
  object["shm"] = shm_cleanup_json(outcome.shm);
  object["rounds"] = outcome.rounds;
  object["seconds"] = seconds_of(outcome.seconds);
  object["visibility"] = visibility_of(outcome.visibility);
  object["record"] = record_of(outcome.record);
  if (source == Source::recording) object["replay"] = true;
  return one_line(object);
}

}  // namespace vacate
