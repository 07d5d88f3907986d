// SPDX-License-Identifier: Apache-2.0
#include "attribute/explain.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attribute/accounts.h"

namespace vacate {
namespace {

std::string list_of_pids(const std::vector<pid_t>& pids) {
  static constexpr std::size_t kShown = 6;
  if (pids.size() <= kShown) return fmt::format("{}", fmt::join(pids, ", "));
  return fmt::format("{} and {} others", fmt::join(pids.begin(), pids.begin() + kShown, ", "), pids.size() - kShown);
}

std::string processes(const std::vector<pid_t>& pids) {
  return fmt::format("{} {}", pids.size() == 1 ? "process" : "processes", list_of_pids(pids));
}

class Explainer {
 public:
  Explainer(const Gpu& gpu, const GpuAccount& account, const ExplainedBy& by) : gpu_(gpu), account_(account), by_(by) {
    for (const auto& holder : by_.holders)
      if (holder.pins_memory() && is_on_gpu(holder)) pinning_.push_back(&holder);
  }

  std::vector<Explanation> explain() && {
    if (has_unowned_memory(gpu_, account_, by_.policy)) explain_memory();
    explain_utilization();
    return std::move(found_);
  }

 private:
  [[nodiscard]] const Snapshot& snapshot() const { return by_.census.snapshot(); }

  [[nodiscard]] bool is_on_gpu(const Holder& holder) const {
    return std::any_of(holder.gpus.begin(), holder.gpus.end(),
                       [&](const HolderOnGpu& place) { return place.index == gpu_.index; });
  }

  void add(std::string_view code, std::string text, std::vector<pid_t> pids = {}) {
    std::sort(pids.begin(), pids.end());
    found_.push_back({std::string(code), std::move(text), std::move(pids)});
  }

  void explain_memory() {
    for (const auto& opener : by_.charges.openers()) explain_opener(opener);
    explain_managed();
    explain_exported();
    explain_hidden();
    if (gpu_.unified_memory)
      add("unified-memory",
          "the memory is the system's own: pages may stay in use after the process that used them has ended");
    explain_unseen();
    explain_residue();
  }

  void explain_opener(const Opener& opener) {
    const bool charged = std::any_of(opener.charges.begin(), opener.charges.end(), [&](const DriverCharge& charge) {
      return charge.gpu == gpu_.index && (!charge.memory.known() || charge.memory->count > 0);
    });
    if (!charged) return;
    switch (opener.fate) {
      case OpenerFate::exiting:
        return add("lag", fmt::format("process {} is exiting: its memory is being released", opener.pid), {opener.pid});
      case OpenerFate::dead:
      case OpenerFate::replaced:
        return explain_dead(opener);
      case OpenerFate::unreadable:
      case OpenerFate::unseen:
        return add("unseen",
                   fmt::format("the driver charges part of it to number {}, and what that process holds cannot be seen "
                               "from here",
                               opener.pid),
                   {opener.pid});
      case OpenerFate::no_process_id:
        return;
    }
  }

  void explain_dead(const Opener& opener) {
    if (!opener.inheritors.empty())
      return add("dead-opener",
                 fmt::format("process {} made it and is dead; {} may keep it alive, until the last of them ends",
                             opener.pid, processes(opener.inheritors)),
                 opener.inheritors);
    add("lag",
        fmt::format("the driver still charges process {}, which has ended: its memory may be on its way back",
                    opener.pid),
        {opener.pid});
  }

  // Allocated by the nvidia-uvm module, not by the client: in nobody's figure (facts.md 1.5).
  void explain_managed() {
    std::vector<pid_t> pids;
    for (const auto* holder : pinning_)
      if (by_.census.has_uvm(holder->key.pid)) pids.push_back(holder->key.pid);
    if (pids.empty()) return;
    add("managed-memory",
        fmt::format("{} may have managed memory, which the driver charges to nobody; it ends with {}", processes(pids),
                    pids.size() == 1 ? "the process" : "them"),
        pids);
    is_explained_ = true;
  }

  // A descriptor of exported memory is an nvidiactl file of its own, charged to nobody (facts.md 2.2.6).
  void explain_exported() {
    std::vector<pid_t> pids;
    for (const auto& holder : by_.holders)
      if (may_keep_exported(holder)) pids.push_back(holder.key.pid);
    if (pids.empty()) return;
    add("exported-memory",
        fmt::format("{} may keep memory that another process exported, by control files that no list of the driver "
                    "shows; it comes back when they are closed",
                    processes(pids)),
        pids);
    is_explained_ = true;
  }

  [[nodiscard]] bool may_keep_exported(const Holder& holder) const {
    if (holder.role == HolderRole::importer) return true;
    if (holder.gpus.empty()) return may_hold_unseen(holder) && control_files(holder.key.pid) > 0;
    return holder.pins_memory() && is_on_gpu(holder) && control_files(holder.key.pid) > 1;
  }

  [[nodiscard]] unsigned control_files(pid_t pid) const {
    unsigned count = 0;
    for (const auto& reference : by_.census.references().at(pid))
      if (by_.census.role_of(reference.node) == NodeRole::ctl) count += reference.count;
    return count;
  }

  void explain_hidden() {
    std::set<pid_t> owners;
    for (const auto& hidden : snapshot().hidden_references) owners.insert(hidden.pid);
    if (owners.empty()) return;
    const std::vector<pid_t> pids(owners.begin(), owners.end());
    add("hidden-reference",
        fmt::format("files that wait on sockets or are registered with rings of {} may be the driver's, and keep it",
                    processes(pids)),
        pids);
    is_explained_ = true;
  }

  void explain_unseen() {
    std::set<std::string> codes;
    for (const auto& spot : snapshot().visibility.blind_spots) codes.insert(spot.code);
    if (codes.empty()) return;
    add("unseen",
        fmt::format("not everything could be seen ({}): a process out of sight may hold it", fmt::join(codes, ", ")));
    is_explained_ = true;
  }

  [[nodiscard]] std::string_view recovery() const {
    const auto action = gpu_.recovery_action.value_or(0);
    if (action == 2) return "; the driver asks for a reboot";
    return action != 0 ? "; the driver asks for a reset" : "";
  }

  // Last, because it is the only one that no ending of processes helps against.
  void explain_residue() {
    const bool asked = gpu_.recovery_action.value_or(0) != 0;
    // Nobody is told of a reset while somebody out of sight may hold it.
    const bool all_seen = snapshot().visibility.complete();
    if ((!pinning_.empty() || !all_seen) && !asked) return;
    const bool evident =
        pinning_.empty() && !is_explained_ && found_.empty() && all_seen && can_trust_lists(snapshot());
    std::string text = evident ? "no process holds it and nothing unseen could: it is the driver's own"
                               : "it may be the driver's own, left by a fault or kept for itself";
    text += fmt::format("{}; what is left then is a reset of the GPU or a reboot", recovery());
    if (gpu_.persistence.value_or(false))
      text += "; persistence mode keeps the GPU awake: turn it off before a reset (nvidia-smi -pm 0)";
    add("driver-residue", std::move(text));
  }

  // Latched when a process ends in the middle of a kernel (BR-086): not memory, and no reason to wait for anything.
  void explain_utilization() {
    static constexpr std::uint32_t kBusy = 90;
    if (gpu_.utilization.value_or(0) < kBusy || !pinning_.empty() || gpu_.state != GpuState::ok) return;
    const bool evident = snapshot().visibility.complete() && account_.holders.empty();
    add("ghost-utilization",
        fmt::format("its utilisation reads high with no process on it: {} a counter that was left behind, which keeps "
                    "no memory and is cleared by the next context or by a reset",
                    evident ? "that is" : "that may be"));
  }

  const Gpu& gpu_;
  const GpuAccount& account_;
  const ExplainedBy& by_;
  std::vector<const Holder*> pinning_;
  std::vector<Explanation> found_;
  bool is_explained_ = false;  ///< by something that a process may hold
};

}  // namespace

std::vector<Explanation> explanations_of(const Gpu& gpu, const GpuAccount& account, const ExplainedBy& by) {
  return Explainer(gpu, account, by).explain();
}

}  // namespace vacate
