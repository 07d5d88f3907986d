// SPDX-License-Identifier: Apache-2.0
#include "probe/frozen.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "os/freezer.h"

namespace vacate {

std::vector<FrozenGroup> read_frozen_groups(const ProcDirectory& root, const std::vector<Process>& processes) {
  std::vector<FrozenGroup> groups;
  std::optional<Freezers> freezers;  // most machines have nothing frozen
  for (const auto& process : processes) {
    if (process.condition != Condition::frozen) continue;
    const auto directory = root.open(process.key.pid);
    const auto text = directory ? directory->read("cgroup", 65536) : Result<std::string>(directory.error());
    if (!text) continue;
    if (!freezers) freezers.emplace(Freezers::read());
    auto group = freezers->frozen_group(parse_freezer_paths(*text));
    const auto is_same = [&](const FrozenGroup& known) {
      return known.path == group->path && known.freezer == group->freezer;
    };
    if (group && std::none_of(groups.begin(), groups.end(), is_same)) groups.push_back(*std::move(group));
  }
  std::sort(groups.begin(), groups.end(), [](const FrozenGroup& a, const FrozenGroup& b) {
    return std::tie(a.path, a.freezer) < std::tie(b.path, b.freezer);
  });
  return groups;
}

}  // namespace vacate
