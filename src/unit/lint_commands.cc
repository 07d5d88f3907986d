// SPDX-License-Identifier: Apache-2.0
// What the commands of a unit do: waits in a shell, kills by name, blind removals, and calls of vacate that cannot do
// what they are there for (incidents.md 1; reports.md classes K, L, N).
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "unit/lint_parts.h"

namespace vacate {
namespace {

template <class Words>
bool has_any(const std::vector<std::string>& tokens, const Words& words) {
  return std::any_of(tokens.begin(), tokens.end(), [&](const std::string& token) {
    const std::string_view base = std::string_view{token}.substr(token.rfind('/') + 1);
    return std::find(words.begin(), words.end(), base) != words.end();
  });
}

bool has_word(const std::vector<std::string>& tokens, std::string_view word) {
  return has_any(tokens, std::array<std::string_view, 1>{word});
}

/// Every word of the command, those of a shell's script one by one.
std::vector<std::string> tokens_of(const UnitCommand& command) {
  static constexpr std::string_view kEnds = " \t\n;|&(){}`\"'<>";
  std::vector<std::string> tokens;
  for (const auto& word : command.words) {
    std::size_t at = 0;
    while (at < word.size()) {
      const auto begin = word.find_first_not_of(kEnds, at);
      if (begin == std::string::npos) break;
      at = std::min(word.find_first_of(kEnds, begin), word.size());
      tokens.push_back(word.substr(begin, at - begin));
    }
  }
  return tokens;
}

constexpr auto kGpuQueries = std::to_array<std::string_view>({"nvidia-smi", "fuser", "lsof", "rocm-smi", "amd-smi"});

/// incidents.md 1: the loop before the start that never ended. A loop in ExecStart itself may be the service's work.
void lint_loop(const PlacedCommand& placed, const std::vector<std::string>& tokens, UnitFindings& findings) {
  static constexpr auto kLoops = std::to_array<std::string_view>({"while", "until"});
  static constexpr auto kWaits = std::to_array<std::string_view>({"sleep", "pgrep", "pidof", "curl", "nc"});
  if (!shell_script(placed.command) || !has_any(tokens, kLoops)) return;
  const bool asks_gpu = has_any(tokens, kGpuQueries);
  if (!asks_gpu && (placed.setting->key == "ExecStart" || !has_any(tokens, kWaits))) return;
  findings.add(
      asks_gpu ? UnitSeverity::error : UnitSeverity::warning, *placed.setting,
      {"wait-in-shell",
       asks_gpu ? "a shell loop waits for the GPU: it cannot say who is in the way, and one wrong $ or % in it "
                  "makes it wait for ever"
                : "a shell loop waits: systemd cannot see for what, and kills it when the time is over",
       asks_gpu ? "ExecStartPre=+/usr/bin/vacate wait --gpu LIST --reap --timeout 5min; 'vacate unit dropin' "
                  "writes it"
                : "let the service say when it is ready: Type=notify, a socket, or After= and Requires="});
}

bool kills_by_name(const std::vector<std::string>& tokens) {
  static constexpr auto kKillers = std::to_array<std::string_view>({"pkill", "killall", "killall5", "skill"});
  static constexpr auto kByNumber =
      std::to_array<std::string_view>({"-P", "--parent", "-F", "--pidfile", "-s", "--session"});
  if (has_any(tokens, kKillers)) return !has_any(tokens, kByNumber);
  const bool has_list = has_word(tokens, "pgrep") || has_word(tokens, "pidof") || has_word(tokens, "$pgrep") ||
                        has_word(tokens, "$$pgrep") || has_word(tokens, "--query-compute-apps") ||
                        has_word(tokens, "lsof");
  if (has_word(tokens, "kill") && has_list) return true;
  if (!has_word(tokens, "fuser")) return false;
  return std::any_of(tokens.begin(), tokens.end(), [](const std::string& token) {
    return token == "--kill" || (token.size() > 1 && token[0] == '-' && token[1] != '-' &&
                                 token.find('k') != std::string::npos && token.size() <= 6);
  });
}

void lint_kills(const PlacedCommand& placed, const std::vector<std::string>& tokens, UnitFindings& findings) {
  if (!kills_by_name(tokens)) return;
  findings.add(UnitSeverity::warning, *placed.setting,
               {"kill-by-name",
                "a name is no evidence: workers rename themselves and survive this, and whoever else fits the name or "
                "has the device open is killed",
                placed.is_of_start() ? "ExecStartPre=+/usr/bin/vacate wait --reap ends proven leftovers only"
                                     : "ExecStopPost=+/usr/bin/vacate free --unit NAME --all --yes ends what this unit "
                                       "left, and proves it"});
}

void lint_removals(const PlacedCommand& placed, const std::vector<std::string>& tokens, UnitFindings& findings) {
  const bool removes =
      (has_word(tokens, "rm") || has_word(tokens, "unlink") || has_word(tokens, "find")) &&
      std::any_of(tokens.begin(), tokens.end(), [](const std::string& token) { return token.starts_with("/dev/shm"); });
  const bool is_find = has_word(tokens, "find") && !has_word(tokens, "-delete") && !has_word(tokens, "rm");
  if (!removes || is_find) return;
  findings.add(
      UnitSeverity::warning, *placed.setting,
      {"shm-removal", "it removes shared memory whether or not somebody uses it: the next worker of a live job dies",
       "vacate shm clean --yes removes what is proven unused"});
}

void lint_reset(const PlacedCommand& placed, const std::vector<std::string>& tokens, UnitFindings& findings) {
  static constexpr auto kResets = std::to_array<std::string_view>({"--gpu-reset", "-r"});
  if (!has_word(tokens, "nvidia-smi") || !has_any(tokens, kResets)) return;
  findings.add(UnitSeverity::warning, *placed.setting,
               {"gpu-reset", "a reset fails while anybody holds the GPU, and hurts whoever uses its neighbours",
                "vacate wait --reap; reset by hand, and only where vacate ends with exit code 5"});
}

/// A line that runs vacate itself.
class VacateLine {
 public:
  VacateLine(const PlacedCommand& placed, const ServiceFacts& facts, std::vector<std::string> arguments,
             UnitFindings& findings)
      : placed_(placed), facts_(facts), arguments_(std::move(arguments)), findings_(findings) {}

  void lint() const {
    const std::string_view verb = arguments_.empty() ? std::string_view() : arguments_.front();
    if (verb != "wait" && verb != "free" && verb != "run" && verb != "shm") return;
    if (verb != "run") lint_rights();
    if (verb == "wait") lint_wait();
    if (verb == "free" || (verb == "shm" && has("clean"))) lint_consent(verb);
    if (verb == "free") lint_account();
    if (verb == "run" && !facts_.delegates) lint_run();
  }

 private:
  [[nodiscard]] bool has(std::string_view word) const {
    return std::find(arguments_.begin(), arguments_.end(), word) != arguments_.end();
  }
  void add(UnitSeverity severity, UnitFindings::Words words) const {
    findings_.add(severity, *placed_.setting, std::move(words));
  }

  [[nodiscard]] bool runs_as_root() const {
    return facts_.is_of_root() || placed_.command.has_all_rights || placed_.command.is_of_root;
  }

  void lint_rights() const {
    if (runs_as_root()) return;
    add(UnitSeverity::error,
        {"needs-root",
         fmt::format(
             "it runs as {}: vacate then sees and ends that user's processes only, and cannot tell whether a GPU "
             "is free",
             printable(facts_.user, 40)),
         fmt::format("{}=+/usr/bin/vacate ...: + runs this one line as root", placed_.setting->key)});
  }

  void lint_wait() const {
    const bool is_gate = placed_.is_of_start();
    if (is_gate && placed_.command.ignores_failure)
      add(UnitSeverity::warning,
          {"ignored-wait", "with - before it the service starts even where the GPU is not free", "leave the - out"});
    if (!is_gate) return;
    const auto word = option_value(arguments_, "--timeout");
    const auto wait = word ? parse_duration(*word) : Result<std::chrono::milliseconds>(std::chrono::minutes(5));
    if (!wait || facts_.may_extend()) return;
    const bool for_ever = wait->count() == 0;
    const bool is_cut =
        facts_.start_timeout != std::chrono::milliseconds::max() && (for_ever || facts_.start_timeout <= *wait);
    if (!is_cut)
      return add(
          UnitSeverity::hint,
          {"no-notify-access",
           fmt::format("with NotifyAccess={} systemd ignores what the wait reports: systemctl status cannot show "
                       "who is in the way",
                       printable(facts_.notify_access, 20)),
           "NotifyAccess=exec"});
    add(UnitSeverity::error,
        {"start-timeout",
         fmt::format(
             "the wait may take {}, and TimeoutStartSec={}{} ends it before; it asks for more time, which systemd "
             "ignores with NotifyAccess={}",
             for_ever ? "for ever" : time_span_text(*wait), time_span_text(facts_.start_timeout),
             facts_.sets_start_timeout ? "" : " (the default)", printable(facts_.notify_access, 20)),
         for_ever ? "NotifyAccess=exec"
                  : fmt::format("NotifyAccess=exec and TimeoutStartSec={}",
                                time_span_text(*wait + std::chrono::minutes(1)))});
  }

  void lint_consent(std::string_view verb) const {
    if (has("--yes") || has("--dry-run") || has("--help")) return;
    add(UnitSeverity::error,
        {"no-consent",
         fmt::format("vacate {} asks before it ends anything, and a service has no terminal: it does nothing", verb),
         "add --yes"});
  }

  /// What others are at work with has to be named beside --all and --unsure, and root's line does not mean the
  /// service's user by itself.
  void lint_account() const {
    static constexpr auto kOwners = std::to_array<std::string_view>({"--pid", "--user", "--container", "--job"});
    const bool is_wide = has("--all") || has("--unsure");
    const bool is_named = std::any_of(kOwners.begin(), kOwners.end(), [&](std::string_view name) {
      return has(name) || option_value(arguments_, name).has_value();
    });
    if (facts_.is_of_root() || !runs_as_root() || !is_wide || is_named || has("--dry-run")) return;
    add(UnitSeverity::warning,
        {"needs-user",
         fmt::format(
             "the service runs as {}, whom {} does not mean unless named: what is not proven to be left over is "
             "refused, and the stop fails",
             printable(facts_.user, 40), has("--all") ? "--all" : "--unsure"),
         facts_.account.empty() ? std::string("User= with a name of its own, and --user with that name")
                                : fmt::format("add --user {},root", facts_.account)});
  }

  void lint_run() const {
    add(UnitSeverity::warning, {"no-delegate",
                                "vacate run keeps what it starts in a control group of its own, which systemd lets it "
                                "make with Delegate= only",
                                "Delegate=yes"});
  }

  const PlacedCommand& placed_;
  const ServiceFacts& facts_;
  std::vector<std::string> arguments_;
  UnitFindings& findings_;
};

}  // namespace

void lint_commands(const ServiceFacts& facts, UnitFindings& findings) {
  for (const auto& placed : facts.commands) {
    const auto tokens = tokens_of(placed.command);
    lint_loop(placed, tokens, findings);
    lint_kills(placed, tokens, findings);
    lint_removals(placed, tokens, findings);
    lint_reset(placed, tokens, findings);
    if (auto arguments = vacate_arguments(placed.command))
      VacateLine(placed, facts, std::move(*arguments), findings).lint();
  }
}

}  // namespace vacate
