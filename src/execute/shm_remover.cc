// SPDX-License-Identifier: Apache-2.0
#include "execute/shm_remover.h"

#include <map>
#include <optional>

#include "execute/wait.h"
#include "os/shm_files.h"
#include "os/shm_tables.h"

namespace vacate {
namespace {

/// The directories of the look, each opened once.
class Places {
 public:
  explicit Places(const ShmSnapshot& seen) : seen_(seen) {}

  /// The directory of `index` if it is still on the file system that was looked at.
  [[nodiscard]] Result<const ShmDirectory*> find(std::size_t index) {
    const auto known = open_.find(index);
    if (known != open_.end()) return &known->second;
    const auto& place = seen_.places.at(index);
    auto directory = ShmDirectory::open(place.path, place.device);
    if (!directory) return directory.error();
    const auto system = directory->file_system();
    if (!system) return system.error();
    if (system->device != place.device) return Error{ErrorCode::refused, place.path + " is another file system by now"};
    return &open_.emplace(index, *std::move(directory)).first->second;
  }

 private:
  const ShmSnapshot& seen_;
  std::map<std::size_t, ShmDirectory> open_;
};

/// Files of one set, or one alone.
std::vector<ShmResult> remove_files(const std::vector<const ShmSegment*>& segments, Places& places) {
  std::vector<ShmFile> files;
  for (const auto* segment : segments) {
    const auto directory = segment->kind == ShmKind::file
                               ? places.find(segment->place)
                               : Result<const ShmDirectory*>(Error{ErrorCode::refused, "it is no segment"});
    if (!directory) return std::vector<ShmResult>(segments.size(), {0, ShmStatus::changed, directory.error().message});
    files.push_back({*directory, segment->name, segment->identity});
  }
  return unlink_unused_together(files);
}

/// Indexes of the steps of each set, those that stand alone as one of their own, in the order of their first steps.
std::vector<std::vector<std::size_t>> sets_of(const ShmPlan& plan) {
  std::vector<std::vector<std::size_t>> sets;
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& set = plan.steps[i].set;
    const auto [at, is_new] = known.emplace(set, sets.size());
    if (set.empty() || is_new) {
      if (set.empty()) known.erase(at);
      sets.push_back({i});
    } else {
      sets[at->second].push_back(i);
    }
  }
  return sets;
}

DeedResult deed_result_of(ShmStatus status) {
  switch (status) {
    case ShmStatus::removed:
      return DeedResult::done;
    case ShmStatus::already_gone:
      return DeedResult::gone;
    case ShmStatus::denied:
      return DeedResult::denied;
    case ShmStatus::changed:
    case ShmStatus::in_use:
    case ShmStatus::cannot_tell:
    case ShmStatus::skipped:
      return DeedResult::left_alone;
  }
  return DeedResult::failed;
}

/// A step as it is recorded: the path says which file, a System V segment has none.
IntendedAction removal_of(const ShmPlan& plan, const ShmStep& step, const ShmSnapshot& seen) {
  const auto& segment = seen.segments.at(step.segment);
  IntendedAction action;
  action.deed = Deed::unlink;
  action.plan = plan.id;
  action.n = step.n;
  action.target =
      segment.kind == ShmKind::file ? seen.places.at(segment.place).path + "/" + segment.name : segment.name;
  action.because = {step.because};
  return action;
}

/// The results of one set.
std::vector<ShmResult> remove_set(const std::vector<const ShmSegment*>& segments, Places& places) {
  if (segments.front()->kind == ShmKind::sysv) return {remove_sysv_unused(*segments.front())};
  return remove_files(segments, places);
}

}  // namespace

std::vector<ShmResult> remove_shm(const ShmPlan& plan, const ShmSnapshot& seen, ActionLog& log, int wake) {
  const LeaseBreaksIgnored guard;
  std::vector<ShmResult> results;
  for (const auto& step : plan.steps) results.push_back({step.n, ShmStatus::skipped, "interrupted"});
  Places places(seen);
  for (const auto& set : sets_of(plan)) {
    if (is_readable(wake)) break;
    std::vector<const ShmSegment*> segments;
    std::vector<IntendedAction> actions;
    std::vector<ActionTicket> tickets;
    for (const auto index : set) {
      segments.push_back(&seen.segments.at(plan.steps[index].segment));
      actions.push_back(removal_of(plan, plan.steps[index], seen));
      tickets.push_back(log.about_to(actions.back()));
    }
    const auto removed = remove_set(segments, places);
    for (std::size_t i = 0; i < set.size() && i < removed.size(); ++i) {
      results[set[i]] = removed[i];
      results[set[i]].n = plan.steps[set[i]].n;
      const auto& detail = removed[i].detail.empty() ? std::string(describe(removed[i].status)) : removed[i].detail;
      log.came_of(tickets[i], actions[i], deed_result_of(removed[i].status), detail);
    }
  }
  return results;
}

std::vector<ShmResult> record_shm(const ShmPlan& plan) {
  std::vector<ShmResult> results;
  for (const auto& step : plan.steps) results.push_back({step.n, ShmStatus::skipped, "dry run"});
  return results;
}

}  // namespace vacate
