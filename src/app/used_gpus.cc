// SPDX-License-Identifier: Apache-2.0
#include "app/used_gpus.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "app/select.h"
#include "execute/machine_log.h"
#include "os/procfs.h"
#include "verify/watch_release.h"

namespace vacate {
namespace {

using Clock = Deadline::Clock;

Reading<Bytes> used_of(const Snapshot& snapshot, unsigned index) {
  for (const auto& gpu : snapshot.gpus)
    if (gpu.index == index) return gpu.memory.used;
  return Unknown::not_asked;
}

/// pids below `ancestor`, by /proc as it is read: labels that nobody is signalled by.
std::set<pid_t> pids_below(const ProcDirectory& root, pid_t ancestor) {
  DirectoryReader reader;
  std::multimap<pid_t, pid_t> children;
  if (const auto pids = list_numbers(root, reader))
    for (const auto pid : *pids)
      if (const auto stat = root.stat_of(pid)) children.emplace(stat->ppid, pid);
  std::set<pid_t> below;
  std::vector<pid_t> parents = {ancestor};
  while (!parents.empty()) {
    const auto [first, last] = children.equal_range(parents.back());
    parents.pop_back();
    for (auto each = first; each != last; ++each)
      if (below.insert(each->second).second) parents.push_back(each->second);
  }
  return below;
}

bool is_node(const DeviceNode& node, const FileIdentity& file) {
  if (node.rdev) return file.is_character() && file.rdev == *node.rdev;
  return file.device == node.device && file.inode == node.inode;
}

Step step_of(const Process& process, unsigned n) {
  Step step;
  step.n = n;
  step.key = process.key;
  step.title = title_of(process);
  step.because = {"it descends from the command"};
  step.rule = "descendant";
  return step;
}

/// The keeper's record of signals and that of what was removed, as one.
void add(std::optional<RecordOutcome>& record, const RecordOutcome& more) {
  if (more.entries + more.lost == 0) return;
  if (!record) record.emplace();
  if (!more.where.empty()) record->where = more.where;
  record->entries += more.entries;
  record->lost += more.lost;
  if (!more.why.empty()) record->why = more.why;
}

const char* verdict_words(GpuVerdict verdict) {
  switch (verdict) {
    case GpuVerdict::held_by_nobody:
      return "memory that it used is held by no process";
    case GpuVerdict::releasing:
      return "memory that it used is not back yet";
    default:
      return "whether the memory that it used is back cannot be told";
  }
}

}  // namespace

Result<Sighting> UsedGpus::look() {
  auto driver = DriverSession::start();
  if (!driver) return driver.error();
  Look seen = look_at_machine(*driver, policy_);
  driver->close(Deadline::after(policy_.driver_deadline));
  return Sighting{std::move(seen.scan.snapshot), std::move(seen.attribution)};
}

Result<UsedGpus> UsedGpus::look_before(const GpuCheck& check, const Policy& policy) {
  UsedGpus used(check, policy);
  auto seen = used.look();
  if (!seen) return seen.error();
  used.before_ = *std::move(seen);
  if (!check.gpu_words.empty()) {
    const auto gpus = resolve_gpus(check.gpu_words, used.before_.snapshot.gpus);
    if (!gpus) return gpus.error();
    used.used_.insert(gpus->begin(), gpus->end());
  }
  for (const auto& gpu : used.before_.snapshot.gpus)
    if (gpu.memory.used.known() && pinning_holders(used.before_.attribution, gpu.index).empty())
      used.baselines_[gpu.index] = {*gpu.memory.used, BaselineSource::measured};
  used.before_.attribution = attribute_holders(used.before_.snapshot, policy, used.baselines_);
  used.with_left_ = used.before_;
  return used;
}

std::vector<Gpu> UsedGpus::chosen() const {
  std::vector<Gpu> gpus = before_.snapshot.gpus;
  if (!check_.gpu_words.empty()) std::erase_if(gpus, [&](const Gpu& gpu) { return !used_.contains(gpu.index); });
  return gpus;
}

void UsedGpus::note_open_files(pid_t keeper) {
  const auto root = ProcDirectory::open_root();
  if (!root || !can_be_used()) return;
  DirectoryReader reader;
  for (const auto pid : pids_below(*root, keeper)) {
    const auto process = root->open(pid);
    const auto files = process ? process->open("fd") : Result<ProcDirectory>(process.error());
    if (!files) continue;
    reader.start(files->descriptor());
    while (const char* name = reader.next()) {
      const auto file = files->identity(name);
      if (!file) continue;
      for (const auto& node : before_.snapshot.nodes) {
        if (node.role != NodeRole::gpu || !node.minor || !is_node(node, *file)) continue;
        for (const auto& gpu : before_.snapshot.gpus)
          if (gpu.minor == node.minor) used_.insert(gpu.index);
      }
    }
  }
}

void UsedGpus::look_at_those_left(pid_t keeper) {
  const auto root = ProcDirectory::open_root();
  auto seen = look();
  if (!root || !seen) return;
  seen->attribution = attribute_holders(seen->snapshot, policy_, baselines_);
  with_left_ = *std::move(seen);
  for (const auto pid : pids_below(*root, keeper)) {
    const auto* process = with_left_.snapshot.find(pid);
    if (process == nullptr || is_gone(*process)) continue;
    left_.steps.push_back(step_of(*process, static_cast<unsigned>(left_.steps.size()) + 1));
    if (const auto* holder = with_left_.attribution.find(pid))
      for (const auto& place : holder->gpus) used_.insert(place.index);
  }
  FreeRequest request;
  request.keep_shm = check_.keep_shm;
  shm_ = ShmOfEnded::look(request, left_, with_left_.snapshot, policy_.scan);
}

/// Whoever is not among those that are still there has ended.
std::vector<StepResult> UsedGpus::results_of(const EndOfFamily& left) const {
  std::vector<StepResult> results;
  for (const auto& step : left_.steps) {
    StepResult result{step.n, step.key.pid, StepStatus::gone, {}, 0, {}};
    for (const auto& process : left.processes)
      if (process.key.pid == step.key.pid && process.key.start_ticks == step.key.start_ticks)
        result.status = process.status;
    results.push_back(std::move(result));
  }
  return results;
}

/// GPUs that have more in use than before, which those who hold them do not explain.
std::vector<unsigned> UsedGpus::grown(const Sighting& now) const {
  std::vector<unsigned> gpus;
  for (const auto& gpu : now.snapshot.gpus) {
    const auto before = used_of(before_.snapshot, gpu.index);
    if (!before.known() || !gpu.memory.used.known()) continue;
    const bool has_grown = *gpu.memory.used > *before + policy_.memory_tolerance;
    if (has_grown && pinning_holders(now.attribution, gpu.index).empty()) gpus.push_back(gpu.index);
  }
  return gpus;
}

void UsedGpus::judge(const GpuOutcome& gpu, const Sighting& last, RunOutcome& outcome) const {
  const auto start = used_of(before_.snapshot, gpu.index);
  const bool is_as_before = start.known() && gpu.after.known() && *gpu.after <= *start + policy_.memory_tolerance;
  if (is_as_before || gpu.verdict == GpuVerdict::released) return;
  if (gpu.verdict == GpuVerdict::in_use && gpu.after.known()) {
    // Others hold it: what they are charged has to explain what is in use, beside what nobody held before.
    const auto floor = baselines_.find(gpu.index);
    Reading<Bytes> charged = floor == baselines_.end() ? Bytes{0} : floor->second.amount;
    for (const auto& charge : last.snapshot.charges)
      if (charge.gpu == gpu.index && charged.known())
        charged = charge.memory.known() ? Reading<Bytes>(*charged + *charge.memory) : charge.memory;
    if (charged.known() && *gpu.after <= *charged + policy_.memory_tolerance) return;
  }
  const bool unknown = gpu.verdict == GpuVerdict::cannot_tell || gpu.verdict == GpuVerdict::in_use;
  outcome.release_unknown = unknown && (outcome.unreleased.empty() || outcome.release_unknown);
  outcome.unreleased.push_back(
      fmt::format("gpu {}: {}{}{}", gpu.index, verdict_words(gpu.verdict), gpu.detail.empty() ? "" : ": ", gpu.detail));
}

void UsedGpus::verify(RunOutcome& outcome, int wake) {
  if (!can_be_used()) return;
  const Deadline deadline = Deadline::after(check_.timeout);
  const auto results = results_of(outcome.left);
  auto driver = DriverSession::start();
  if (!driver) {
    if (!used_.empty()) outcome.failure = driver.error().message;
    return;
  }
  WatchTools tools;
  tools.look = [&] {
    Look seen = look_at_machine(*driver, policy_);
    seen.scan.snapshot.caller.self = {};  // what is left of the command is vacate's own child now, and a holder
    seen.attribution = attribute_holders(seen.scan.snapshot, policy_, baselines_);
    return Sighting{std::move(seen.scan.snapshot), std::move(seen.attribution)};
  };
  tools.sample = [&](Deadline limit) { return driver->sample(limit); };
  tools.reopen_driver = [&] {
    driver->close(Deadline::after(policy_.driver_deadline));
    if (auto fresh = DriverSession::start()) *driver = std::move(*fresh);
  };
  tools.wake = wake;
  Sighting first = tools.look();
  for (const auto index : grown(first)) used_.insert(index);
  const auto now = Clock::now();
  const WatchRequest request{with_left_, left_, results, {used_.begin(), used_.end()}, now, now, false};
  Watched watched = watch_release(request, std::move(first), tools, policy_, deadline);
  outcome.visibility = watched.last.snapshot.visibility;
  for (auto& release : watched.releases) {
    release.outcome.before = used_of(before_.snapshot, release.outcome.index);
    if (watched.end == Watched::End::interrupted && release.proof != Proof::seen) {
      release.outcome.verdict = GpuVerdict::cannot_tell;
      release.outcome.detail = "interrupted before the release was checked";
    }
    judge(release.outcome, watched.last, outcome);
    outcome.gpus.push_back(std::move(release.outcome));
  }
  if (outcome.left.somebody_left || left_.steps.empty()) return;
  MachineLog log;
  outcome.shm = shm_.clean(left_, results, log, wake);
  add(outcome.record, log.outcome());
}

}  // namespace vacate
