// SPDX-License-Identifier: Apache-2.0
#include "probe/clients.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include "os/expendable_pass.h"
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
    if (hint < all_.size() && compare(hit, all_[hint].representative) == 0) {
      all_[hint].pids.push_back(hit.pid);
      return;
    }
    std::size_t low = 0;
    std::size_t high = order_.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      const auto order = compare(hit, all_[order_[middle]].representative);
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
  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  std::optional<int> compare(const NodeHit& a, const NodeHit& b) {
    const auto order = compare_(a, b);
    if (order) return *order;
    complete_ = complete_ && order.error().code == ErrorCode::gone;
    return std::nullopt;
  }

  const CompareHits& compare_;
  std::vector<Description> all_;
  std::vector<std::size_t> order_;
  std::map<std::pair<NodeKey, int>, std::size_t> hints_;
  bool complete_ = true;
};

}  // namespace

Result<int> compare_descriptions(const NodeHit& a, const NodeHit& b) {
  switch (compare_files(a.tid, a.fd, b.tid, b.fd)) {
    case 0:
      return 0;
    case 1:
      return -1;
    case 2:
      return 1;
    case 3:
      return Error{ErrorCode::unsupported, "kcmp gives no order"};
    default:
      return errno == EBADF ? Error{ErrorCode::gone, "kcmp: closed"} : system_error("kcmp");
  }
}

SharedClients group_by_description(const std::vector<NodeHit>& hits, const CompareHits& compare) {
  Descriptions descriptions(compare);
  for (const auto& hit : hits) descriptions.add(hit);
  SharedClients clients;
  clients.complete = descriptions.complete();
  auto& sets = clients.sets;
  for (auto& description : descriptions.all()) {
    auto& pids = description.pids;
    std::sort(pids.begin(), pids.end());
    pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
    if (pids.size() > 1) sets.push_back(std::move(pids));
  }
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return clients;
}

SharedClients find_shared_clients(const std::vector<NodeHit>& hits) {
  static constexpr std::chrono::milliseconds kLongest{2000};
  SharedClients clients;
  const bool one_process =
      std::all_of(hits.begin(), hits.end(), [&](const NodeHit& hit) { return hit.pid == hits.front().pid; });
  if (one_process) return clients;
  ExpendablePass pass("vacate-kcmp", 1,
                      [&](std::size_t, FrameWriter& answer) {
                        const auto found = group_by_description(hits, compare_descriptions);
                        answer.number(static_cast<std::uint8_t>(found.complete));
                        answer.number(static_cast<std::uint32_t>(found.sets.size()));
                        for (const auto& set : found.sets) {
                          answer.number(static_cast<std::uint32_t>(set.size()));
                          for (const pid_t pid : set) answer.number(static_cast<std::int32_t>(pid));
                        }
                      },
                      {kLongest, 0, std::size_t{64} << 20U});
  const auto missing = pass.finish([&](std::size_t, std::string_view bytes) {
    FrameReader answer(bytes);
    clients.complete = answer.number<std::uint8_t>() != 0;
    const auto sets = answer.count(sizeof(std::uint32_t));
    for (std::uint32_t i = 0; i < sets; ++i) {
      std::vector<pid_t> set(answer.count(sizeof(std::int32_t)));
      for (auto& pid : set) pid = answer.number<std::int32_t>();
      clients.sets.push_back(std::move(set));
    }
    if (!answer.complete()) clients = {{}, false};
  });
  clients.complete = clients.complete && missing.empty();
  return clients;
}

}  // namespace vacate
