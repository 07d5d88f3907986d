// SPDX-License-Identifier: Apache-2.0
#include "probe/clients.h"

#include <algorithm>
#include <map>

#include "os/system_calls.h"

namespace vacate {
namespace {

struct Description {
  NodeHit representative;
  std::vector<pid_t> pids;
};

/// Descriptions in the order of `compare`. The order of std::sort is not used: a process that ends half way makes the
/// comparison inconsistent, which that must not see.
class Descriptions {
 public:
  explicit Descriptions(const CompareHits& compare) : compare_(compare) {}

  void add(const NodeHit& hit) {
    // A forked child has its parent's descriptions under the same numbers: one comparison instead of a search.
    auto& hint = hints_[{hit.node, hit.fd}];
    if (hint < all_.size() && compare_(hit, all_[hint].representative) == 0) {
      all_[hint].pids.push_back(hit.pid);
      return;
    }
    std::size_t low = 0;
    std::size_t high = order_.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      const auto order = compare_(hit, all_[order_[middle]].representative);
      if (!order) return;  // one of the two is gone; at worst a set stays in two parts
      if (*order == 0) {
        hint = order_[middle];
        all_[hint].pids.push_back(hit.pid);
        return;
      }
      (*order < 0 ? high : low) = *order < 0 ? middle : middle + 1;
    }
    hint = all_.size();
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(low), all_.size());
    all_.push_back({hit, {hit.pid}});
  }

  [[nodiscard]] std::vector<Description>& all() noexcept { return all_; }

 private:
  const CompareHits& compare_;
  std::vector<Description> all_;
  std::vector<std::size_t> order_;
  std::map<std::pair<NodeKey, int>, std::size_t> hints_;
};

}  // namespace

std::optional<int> compare_descriptions(const NodeHit& a, const NodeHit& b) {
  switch (compare_files(a.tid, a.fd, b.tid, b.fd)) {
    case 0:
      return 0;
    case 1:
      return -1;
    case 2:
      return 1;
    default:
      return std::nullopt;
  }
}

std::vector<std::vector<pid_t>> group_by_description(const std::vector<NodeHit>& hits, const CompareHits& compare) {
  Descriptions descriptions(compare);
  for (const auto& hit : hits) descriptions.add(hit);
  std::vector<std::vector<pid_t>> sets;
  for (auto& description : descriptions.all()) {
    auto& pids = description.pids;
    std::sort(pids.begin(), pids.end());
    pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
    if (pids.size() > 1) sets.push_back(std::move(pids));
  }
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return sets;
}

}  // namespace vacate
