// SPDX-License-Identifier: Apache-2.0
#include "report/advice.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "model/origin.h"
#include "report/format.h"

namespace vacate {
namespace {

/// A client of MPS that its control daemon can be asked to end.
bool is_listed_client(const Snapshot& snapshot, const Holder& holder) {
  return holder.protection->rule == "mps-client" && holder.protection->source.empty() &&
         std::any_of(snapshot.mps_daemons.begin(), snapshot.mps_daemons.end(),
                     [&](const MpsDaemon& daemon) { return daemon.server_of(holder.key.pid) != nullptr; });
}

std::vector<const Holder*> endable(const Snapshot& snapshot, const Attribution& attribution, Standing standing) {
  std::vector<const Holder*> found;
  for (const auto& holder : attribution.holders)
    if (holder.standing == standing && holder.pins_memory() &&
        (!holder.protection || is_listed_client(snapshot, holder)))
      found.push_back(&holder);
  return found;
}

/// " --gpu 1" where fewer GPUs were selected than there are: the advice must not reach further than the question did.
std::string gpu_option(const Snapshot& snapshot, const Attribution& attribution) {
  if (attribution.accounts.size() == snapshot.gpus.size()) return "";
  std::string list;
  for (const auto& account : attribution.accounts) list += fmt::format("{}{}", list.empty() ? "" : ",", account.index);
  return list.empty() ? "" : " --gpu " + list;
}

std::string pid_option(const std::vector<const Holder*>& holders) {
  std::string list;
  for (const auto* holder : holders) list += fmt::format("{}{}", list.empty() ? "" : ",", holder->key.pid);
  return " --pid " + list;
}

/// Means the same to every shell, and to vacate as one word of a list.
bool needs_no_quotes(std::string_view word) {
  static constexpr std::string_view kPlain = "@%+=:./_-";
  const bool is_plain = std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kPlain.find(c) != std::string_view::npos;
  });
  return is_plain && !word.empty() && word.front() != '-';
}

/// The options that say again what was asked. Nothing where one would have to be quoted.
class Repeated {
 public:
  Repeated(const Snapshot& snapshot, const Attribution& attribution, const Asked& asked)
      : gpus_(gpu_option(snapshot, attribution)) {
    const auto& selection = asked.selection;
    std::vector<std::string> pids;
    std::vector<std::string> users;
    for (const auto& wanted : selection.pids)
      pids.push_back(std::to_string(wanted.pid) + (wanted.start_ticks ? fmt::format("@{}", *wanted.start_ticks) : ""));
    for (const auto uid : selection.users) users.push_back(std::to_string(uid));
    add(pids_, "--pid", pids);
    add(others_, "--user", users);
    add(others_, "--unit", selection.units);
    add(others_, "--container", selection.containers);
    add(others_, "--job", selection.jobs);
    add(others_, "--cgroup", selection.cgroups);
    if (asked.policy_file) add(policy_, "--policy", {*asked.policy_file});
  }

  /// `command` for exactly these holders.
  [[nodiscard]] std::string for_pids(std::string_view command, const std::vector<const Holder*>& holders) const {
    return is_plain_ ? fmt::format("{}{}{}", command, pid_option(holders), policy_) : "";
  }
  /// `command` for whoever was asked about; to `free` a pid would mean more than to a look.
  [[nodiscard]] std::string for_asked(std::string_view command) const {
    return is_plain_ ? fmt::format("{}{}{}{}", command, gpus_, others_, policy_) : "";
  }
  [[nodiscard]] std::string for_look(std::string_view command) const {
    return is_plain_ ? fmt::format("{}{}{}{}{}", command, gpus_, pids_, others_, policy_) : "";
  }
  [[nodiscard]] const std::string& policy() const noexcept { return policy_; }
  [[nodiscard]] bool is_plain() const noexcept { return is_plain_; }

 private:
  void add(std::string& options, std::string_view name, const std::vector<std::string>& words) {
    std::string list;
    for (const auto& word : words) {
      is_plain_ = is_plain_ && needs_no_quotes(word);
      list += (list.empty() ? "" : ",") + word;
    }
    if (!list.empty()) options += fmt::format(" {} {}", name, list);
  }

  std::string gpus_, pids_, others_, policy_;
  bool is_plain_ = true;
};

void advise_on_holders(const Snapshot& snapshot, const Attribution& attribution, const Asked& asked,
                       const Repeated& repeated, std::vector<Advice>& advice) {
  static constexpr std::size_t kMostNamed = 4;
  const bool named = !asked.selection.pids.empty();
  if (const auto leftover = endable(snapshot, attribution, Standing::leftover); !leftover.empty())
    advice.push_back({fmt::format("{} can be ended", counted(leftover.size(), "leftover", "leftovers")),
                      named ? repeated.for_pids("vacate free", leftover) : repeated.for_asked("vacate free")});
  if (const auto unsure = endable(snapshot, attribution, Standing::unsure); !unsure.empty()) {
    const auto text = fmt::format("{} may be left over, see 'vacate status'; to end {}",
                                  counted(unsure.size(), "holder", "holders"), unsure.size() == 1 ? "it" : "them");
    advice.push_back({text, named || unsure.size() <= kMostNamed ? repeated.for_pids("vacate free --unsure", unsure)
                                                                 : repeated.for_asked("vacate free --unsure")});
  }
}

bool is_held(const Attribution& attribution, const GpuAccount& account) {
  return std::any_of(account.holders.begin(), account.holders.end(), [&](pid_t pid) {
    const auto* holder = attribution.find(pid);
    return holder == nullptr || holder->pins_memory();
  });
}

/// Memory beside no holder: only watching it tells a late release from what no process holds.
void advise_on_residue(const Attribution& attribution, const Repeated& repeated, std::vector<Advice>& advice) {
  static constexpr Bytes kTolerance = mebibytes(128);
  std::vector<std::uint64_t> gpus;
  for (const auto& account : attribution.accounts)
    if (!is_held(attribution, account) && account.remainder.known() && *account.remainder > kTolerance)
      gpus.push_back(account.index);
  if (gpus.empty()) return;
  std::string list;
  for (const auto index : gpus) list += fmt::format("{}{}", list.empty() ? "" : ",", index);
  advice.push_back({fmt::format("memory without a holder on GPU {}: watch whether it still falls", format_ranges(gpus)),
                    repeated.is_plain() ? "vacate free --gpu " + list + repeated.policy() : ""});
}

}  // namespace

bool narrows_holders(const Selection& selection) noexcept {
  return !selection.pids.empty() || !selection.users.empty() || !selection.units.empty() ||
         !selection.containers.empty() || !selection.jobs.empty() || !selection.cgroups.empty();
}

std::vector<Advice> advise(const Snapshot& snapshot, const Attribution& attribution, const Asked& asked) {
  const Repeated repeated(snapshot, attribution, asked);
  std::vector<Advice> advice;
  advise_on_holders(snapshot, attribution, asked, repeated, advice);
  // With holders left out that may explain it, memory is not without one.
  if (snapshot.visibility.complete() && !narrows_holders(asked.selection))
    advise_on_residue(attribution, repeated, advice);
  if (!snapshot.caller.root && !snapshot.visibility.complete())
    advice.push_back({"other users' processes are not visible: root sees them", repeated.for_look("sudo vacate")});
  return advice;
}

namespace {

/// A container's id as its runtime's own lists show it; a name as it is.
std::string shown_id(const std::string& id) {
  static constexpr std::size_t kDigits = 64;
  static constexpr std::size_t kShown = 12;
  const bool is_id = id.size() == kDigits && id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_id ? id.substr(0, kShown) : id;
}

/// Empty where the path of the control group does not tell whose container it is.
std::string_view stop_command(std::string_view runtime) {
  struct Command {
    std::string_view runtime, words;
  };
  static constexpr Command kCommands[] = {{"docker", "docker stop"},         {"podman", "podman stop"},
                                          {"nerdctl", "nerdctl stop"},       {"containerd", "crictl stop"},
                                          {"cri-o", "crictl stop"},          {"lxc", "lxc-stop -n"},
                                          {"nspawn", "machinectl terminate"}};
  for (const auto& command : kCommands)
    if (command.runtime == runtime) return command.words;
  return {};
}

Advice stop_advice(const Origin& origin, const std::vector<std::uint64_t>& pids) {
  const std::string id = shown_id(*origin.container);
  const auto words = stop_command(origin.runtime);
  std::string text = fmt::format("{} in container {}", format_ranges(pids), id);
  if (origin.pod && words == "crictl stop")
    text += ", which the kubelet starts again unless its pod is deleted; to stop it until then";
  else if (words.empty())
    text += ": stop that by its own runtime";
  else
    text += "; to stop that as a whole";
  // A manager of a user's own has containers that only this user's runtime knows.
  if (origin.user_manager && !words.empty()) text += fmt::format(", as user {}", *origin.user_manager);
  const bool is_plain = !words.empty() && needs_no_quotes(id);
  return {text, is_plain ? fmt::format("{} {}", words, id) : ""};
}

bool is_known_gone(const Snapshot& snapshot, const std::string& container) {
  return std::any_of(snapshot.containers.begin(), snapshot.containers.end(), [&](const Existence& each) {
    return each.id == container && each.exists.known() && !*each.exists;
  });
}

}  // namespace

std::vector<Advice> advise_on_containers(const Snapshot& snapshot, const Plan& plan) {
  std::vector<std::pair<Origin, std::vector<std::uint64_t>>> found;
  for (const auto& step : plan.steps) {
    const auto* process = snapshot.find(step.key.pid);
    if (process == nullptr) continue;
    auto origin = parse_origin(process->cgroup);
    if (!origin.container || origin.is_outside || is_known_gone(snapshot, *origin.container)) continue;
    auto at = std::find_if(found.begin(), found.end(),
                           [&](const auto& known) { return known.first.container == origin.container; });
    if (at == found.end()) at = found.emplace(found.end(), std::move(origin), std::vector<std::uint64_t>());
    at->second.push_back(static_cast<std::uint64_t>(step.key.pid));
  }
  std::vector<Advice> advice;
  for (auto& entry : found) {
    std::sort(entry.second.begin(), entry.second.end());
    advice.push_back(stop_advice(entry.first, entry.second));
  }
  return advice;
}

std::string render_advice(const Advice& advice, const RenderStyle& style) {
  if (advice.command.empty()) return wrap(printable(advice.text), 0, style.width);
  const std::string text = printable(advice.text) + ":";
  const std::string command = printable(advice.command);
  const bool fits = display_width(text) + 1 + display_width(command) <= style.width;
  return fmt::format("{}{}{}\n", text, fits ? " " : "\n  ", painted(command, Paint::strong, style));
}

std::string render_container_advice(const std::vector<Advice>& containers, const RenderStyle& style) {
  static constexpr std::size_t kMostShown = 4;
  std::string text;
  for (std::size_t i = 0; i < containers.size() && i < kMostShown; ++i) text += render_advice(containers[i], style);
  if (containers.size() > kMostShown)
    text += fmt::format("members of {} more containers\n", containers.size() - kMostShown);
  return text;
}

}  // namespace vacate
