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

}  // namespace

std::vector<ShmResult> remove_shm(const ShmPlan& plan, const ShmSnapshot& seen, int wake) {
  const LeaseBreaksIgnored guard;
  std::vector<ShmResult> results;
  for (const auto& step : plan.steps) results.push_back({step.n, ShmStatus::skipped, "interrupted"});
  Places places(seen);
  for (const auto& set : sets_of(plan)) {
    if (is_readable(wake)) break;
    std::vector<const ShmSegment*> segments;
    for (const auto index : set) segments.push_back(&seen.segments.at(plan.steps[index].segment));
    const bool is_sysv = segments.front()->kind == ShmKind::sysv;
    const auto removed =
        is_sysv ? std::vector<ShmResult>{remove_sysv_unused(*segments.front())} : remove_files(segments, places);
    for (std::size_t i = 0; i < set.size() && i < removed.size(); ++i) {
      results[set[i]] = removed[i];
      results[set[i]].n = plan.steps[set[i]].n;
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
