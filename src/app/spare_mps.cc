// SPDX-License-Identifier: Apache-2.0
#include "app/spare_mps.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/look.h"
#include "attribute/attribute.h"
#include "attribute/charges.h"
#include "execute/mps_client.h"
#include "os/descendants.h"
#include "os/procfs.h"
#include "plan/mps.h"

namespace vacate {
namespace {

constexpr std::string_view kComm = "nvidia-cuda-mps";  // of control daemon and server alike: comm has 15 bytes
constexpr std::string_view kControl = "/nvidia-cuda-mps-control";

bool is_mps_here() {
  const auto root = ProcDirectory::open_root();
  DirectoryReader reader;
  const auto pids = root ? list_numbers(*root, reader) : Result<std::vector<pid_t>>(root.error());
  if (!pids) return true;  // it cannot be told
  return std::any_of(pids->begin(), pids->end(), [&](pid_t pid) {
    const auto stat = root->stat_of(pid);
    return stat && stat->comm == kComm;
  });
}

bool is_client(const Snapshot& snapshot, pid_t pid) {
  return std::any_of(snapshot.charges.begin(), snapshot.charges.end(), [&](const DriverCharge& row) {
    return row.pid == pid && std::find(row.kinds.begin(), row.kinds.end(), ContextKind::mps) != row.kinds.end();
  });
}

/// One look, and what is done about whom.
class Sparing {
 public:
  Sparing(Look seen, const Family& family, const PinSet& pins, ActionLog& log)
      : seen_(std::move(seen)), family_(family), pins_(pins), log_(log) {}

  [[nodiscard]] std::vector<EndedProcess> run() {
    const auto& snapshot = seen_.scan.snapshot;
    const bool are_clients_known = can_trust_lists(snapshot);
    for (const auto& each : family_.members) {
      const auto* holder = seen_.attribution.find(each.key.pid);
      if (is_client(snapshot, each.key.pid)) {
        if (const auto why = end_contexts(each.key)) spare(each, *why);
      } else if (!are_clients_known && holder != nullptr && !holder->gpus.empty()) {
        spare(each, "a client of MPS perhaps: the driver does not say");
      }
    }
    spare_servers();
    return std::move(spared_);
  }

 private:
  /// By the control daemon; why it could not.
  [[nodiscard]] std::optional<std::string> end_contexts(const ProcessKey& key);
  void spare_servers();
  void spare(const Descendant& each, std::string_view why) {
    spared_.push_back(
        {each.key, each.stat.comm, StepStatus::refused, {}, 0, fmt::format("{}; it was not signalled", why)});
  }
  [[nodiscard]] bool is_spared(pid_t pid) const {
    return std::any_of(spared_.begin(), spared_.end(), [&](const EndedProcess& each) { return each.key.pid == pid; });
  }

  Look seen_;
  const Family& family_;
  const PinSet& pins_;
  ActionLog& log_;
  std::vector<EndedProcess> spared_;
};

std::optional<std::string> Sparing::end_contexts(const ProcessKey& key) {
  static constexpr std::chrono::seconds kAnswer{5};
  const auto& snapshot = seen_.scan.snapshot;
  const auto* holder = seen_.attribution.find(key.pid);
  const auto* process = pins_.find(key);
  if (holder == nullptr || process == nullptr || holder->key.start_ticks != key.start_ticks)
    return "a client of MPS by the word of the driver";
  const auto way = mps_way(snapshot, {holder, nullptr}, FreeRequest{});
  if (const auto* why = std::get_if<std::string>(&way)) return fmt::format("a client of MPS: {}", *why);
  const pid_t server = std::get<pid_t>(way);
  const IntendedAction action{Deed::terminate_client,
                              {},
                              0,
                              key,
                              fmt::format("MPS server {}", server),
                              {},
                              std::string(),
                              {"it descends from the command", mps_sentence(snapshot, server)}};
  const auto ended =
      recorded(log_, action, [&] { return end_mps_contexts(*process, server, snapshot, Deadline::after(kAnswer)); });
  if (ended || process->exited()) return std::nullopt;
  return fmt::format("a client of MPS: {}", ended.error().message);
}

/// The rule of plans, with a step for each descendant: a server stays with any client that stays, and so does the
/// daemon of such a server.
void Sparing::spare_servers() {
  Plan plan;
  for (const auto& each : family_.members) {
    Step step;
    step.n = static_cast<unsigned>(plan.steps.size()) + 1;
    step.key = each.key;
    if (is_spared(each.key.pid)) step.action = Action::refuse;
    plan.steps.push_back(std::move(step));
  }
  plan = spare_mps_servers(std::move(plan), seen_.scan.snapshot);
  bool has_server = false;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.action != Action::refuse || is_spared(step.key.pid)) continue;
    has_server = true;
    spare(family_.members[i], step.because.empty() ? "a server of MPS" : "a server of MPS: " + step.because.front());
  }
  for (const auto& each : family_.members) {
    const auto* process = seen_.scan.snapshot.find(each.key.pid);
    const bool is_daemon = process != nullptr && process->exe.known() && process->exe->ends_with(kControl);
    if (has_server && is_daemon && !is_spared(each.key.pid))
      spare(each, "the control daemon of an MPS server that stays");
  }
}

}  // namespace

std::vector<EndedProcess> spare_mps(const Policy& policy, ActionLog& log) {
  if (!is_mps_here()) return {};
  auto driver = DriverSession::start();
  if (!driver) return {};
  Look seen = look_at_machine(*driver, policy);
  driver->close(Deadline::after(policy.driver_deadline));
  seen.scan.snapshot.caller.self = {};  // what the command left is the caller's own child, and a holder
  seen.attribution = attribute_holders(seen.scan.snapshot, policy, {});
  PinSet pins;
  const auto family = find_descendants(pins);
  if (!family) return {};
  return Sparing(std::move(seen), *family, pins, log).run();
}

}  // namespace vacate
