// SPDX-License-Identifier: Apache-2.0
#include "app/select.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/narrowing.h"

namespace vacate {
namespace {

std::string what_there_is(const std::vector<Gpu>& gpus) {
  if (gpus.empty()) return "there is no GPU here";
  std::string list;
  for (const auto& gpu : gpus) list += fmt::format("{}{}", list.empty() ? "" : ", ", gpu.index);
  return "there is GPU " + list;
}

std::string uuids_of(const std::vector<unsigned>& indices, const std::vector<Gpu>& gpus) {
  std::string list;
  for (const auto& gpu : gpus)
    if (std::find(indices.begin(), indices.end(), gpu.index) != indices.end())
      list += fmt::format("{}{} (GPU {})", list.empty() ? "" : ", ", printable(gpu.uuid, 64), gpu.index);
  return list;
}

}  // namespace

Result<std::vector<unsigned>> resolve_gpus(const std::vector<std::string>& words, const std::vector<Gpu>& gpus) {
  std::vector<unsigned> indices;
  for (const auto& word : words) {
    std::vector<unsigned> found;
    for (const auto& gpu : gpus)
      if (word == "all" || names_gpu(word, gpu)) found.push_back(gpu.index);
    if (found.empty() && word != "all")
      return Error{ErrorCode::malformed,
                   fmt::format("--gpu: no GPU is '{}'; {}", printable(word, 64), what_there_is(gpus))};
    if (found.size() > 1 && word != "all")
      return Error{ErrorCode::malformed, fmt::format("--gpu: '{}' is the beginning of several UUIDs: {}",
                                                     printable(word, 64), uuids_of(found, gpus))};
    indices.insert(indices.end(), found.begin(), found.end());
  }
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

bool is_selected(const Holder& holder, const Snapshot& snapshot, const Selection& selection) {
  if (!selection.pids.empty() &&
      std::none_of(selection.pids.begin(), selection.pids.end(),
                   [&](const ProcessSelector& selector) { return selector.matches(holder.key); }))
    return false;
  return is_within(snapshot, holder.key.pid, selection);
}

Attribution narrowed(const Attribution& attribution, const Snapshot& snapshot, const Selection& selection) {
  const auto has_gpu = [&](unsigned index) {
    return selection.all_gpus || std::find(selection.gpus.begin(), selection.gpus.end(), index) != selection.gpus.end();
  };
  Attribution kept;
  for (const auto& holder : attribution.holders) {
    const bool on_selected =
        selection.all_gpus || std::any_of(holder.gpus.begin(), holder.gpus.end(),
                                          [&](const HolderOnGpu& place) { return has_gpu(place.index); });
    if (on_selected && is_selected(holder, snapshot, selection)) kept.holders.push_back(holder);
  }
  for (auto account : attribution.accounts) {
    if (!has_gpu(account.index)) continue;
    std::erase_if(account.holders, [&](pid_t pid) { return kept.find(pid) == nullptr; });
    kept.accounts.push_back(std::move(account));
  }
  for (const auto& group : attribution.groups)
    if (std::any_of(group.holders.begin(), group.holders.end(), [&](pid_t pid) { return kept.find(pid) != nullptr; }))
      kept.groups.push_back(group);
  for (const auto& charge : attribution.charged_to_nobody)
    if (has_gpu(charge.gpu)) kept.charged_to_nobody.push_back(charge);
  return kept;
}

}  // namespace vacate
