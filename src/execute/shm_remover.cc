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

ShmResult remove_one(const ShmSegment& segment, Places& places) {
  if (segment.kind == ShmKind::sysv) return remove_sysv_unused(segment);
  if (segment.kind != ShmKind::file) return {0, ShmStatus::changed, "it is no segment"};
  const auto directory = places.find(segment.place);
  if (!directory) return {0, ShmStatus::changed, directory.error().message};
  return unlink_unused(**directory, segment.name, segment.identity);
}

}  // namespace

std::vector<ShmResult> remove_shm(const ShmPlan& plan, const ShmSnapshot& seen, int wake) {
  const LeaseBreaksIgnored guard;
  std::vector<ShmResult> results;
  Places places(seen);
  for (const auto& step : plan.steps) {
    ShmResult result{0, ShmStatus::skipped, "interrupted"};
    if (!is_readable(wake)) result = remove_one(seen.segments.at(step.segment), places);
    result.n = step.n;
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<ShmResult> record_shm(const ShmPlan& plan) {
  std::vector<ShmResult> results;
  for (const auto& step : plan.steps) results.push_back({step.n, ShmStatus::skipped, "dry run"});
  return results;
}

}  // namespace vacate
