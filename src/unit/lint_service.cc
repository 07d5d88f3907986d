// SPDX-License-Identifier: Apache-2.0
// Settings of a service that leave GPU holders behind, cut the clean-up short or start it again for ever (reports.md
// BR-122 to BR-124, BR-155).
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "unit/lint_parts.h"

namespace vacate {
namespace {

using std::chrono::milliseconds;

class ServiceRules {
 public:
  ServiceRules(const UnitToLint& unit, const ServiceFacts& facts, UnitFindings& findings)
      : unit_(unit), settings_(unit.settings), facts_(facts), findings_(findings) {}

  void lint() const {
    lint_kill_mode();
    lint_stop_timeout();
    lint_clean_up();
    lint_restart();
    lint_type();
  }

 private:
  void lint_kill_mode() const {
    const auto* setting = settings_.last("Service", "KillMode");
    if (setting == nullptr || (facts_.kill_mode != "process" && facts_.kill_mode != "none")) return;
    // Hubs are restarted beside the work of their users, logins beside their background jobs, and a job that ends by
    // itself leaves what it was to leave: right there.
    const auto* input = settings_.last("Service", "StandardInput");
    const bool is_login = input != nullptr && input->value.starts_with("tty");
    const bool is_job = facts_.type == "oneshot" && !facts_.has_remain_after_exit;
    const bool is_meant = facts_.kill_mode == "process" && !facts_.mentions_gpus &&
                          (unit_.work == UnitWork::of_others || is_login || is_job);
    findings_.add(
        is_meant ? UnitSeverity::hint : UnitSeverity::error, *setting,
        {"kill-mode",
         facts_.kill_mode == "none"
             ? "systemd ends nothing at a stop: every process of the service stays, with its GPU memory"
             : "systemd ends the main process only: workers stay, each with its GPU memory, and the next start "
               "finds the GPU full",
         is_meant ? "keep it where the work of users has to survive a restart of this service"
                  : "KillMode=mixed: the main process is asked first, then everything left is ended"});
  }

  /// BR-155: the tool's own deadline has to be the shorter one.
  void lint_stop_timeout() const {
    for (const auto& placed : facts_.commands) {
      if (!placed.is_of_stop()) continue;
      const auto arguments = vacate_arguments(placed.command);
      if (!arguments || arguments->empty() || (arguments->front() != "free" && arguments->front() != "wait")) continue;
      const auto otherwise = arguments->front() == "free" ? milliseconds(60'000) : milliseconds(300'000);
      const auto word = option_value(*arguments, "--timeout");
      const auto needs = word ? parse_duration(*word).value_or(otherwise) : otherwise;
      if (facts_.stop_timeout > needs) continue;
      findings_.add(
          UnitSeverity::warning, *placed.setting,
          {"stop-timeout",
           fmt::format("the clean-up may take {}, and TimeoutStopSec={}{} ends it before it could say what is left",
                       time_span_text(needs), time_span_text(facts_.stop_timeout),
                       facts_.sets_stop_timeout ? "" : " (the default)"),
           fmt::format("TimeoutStopSec={}", time_span_text(needs + std::chrono::seconds(30)))});
    }
  }

  void lint_clean_up() const {
    if (!facts_.mentions_gpus || facts_.type == "oneshot" || facts_.commands.empty()) return;
    const bool cleans = std::any_of(facts_.commands.begin(), facts_.commands.end(), [](const PlacedCommand& placed) {
      const auto arguments = vacate_arguments(placed.command);
      if (!arguments || arguments->empty()) return false;
      return arguments->front() == "run" || (placed.is_of_stop() && arguments->front() == "free");
    });
    if (cleans) return;
    findings_.add_missing(
        UnitSeverity::hint, "ExecStopPost",
        {"no-clean-up",
         "nothing checks after a stop that the GPU memory came back: what left the control group, or "
         "cannot be killed, is met by the next start",
         "ExecStopPost=+/usr/bin/vacate free --unit NAME --all --yes; 'vacate unit dropin' writes it"});
  }

  /// systemd gives up after StartLimitBurst starts within StartLimitIntervalSec; with a pause between them that is too
  /// long for that it never does.
  void lint_restart() const {
    if (facts_.restart == "no") return;
    const auto* setting = settings_.last("Service", "Restart");
    if (setting == nullptr) return;
    const auto interval = span_of("Unit", {"StartLimitIntervalSec", "StartLimitInterval"}, milliseconds(10'000));
    const auto pause = span_of("Service", {"RestartSec"}, milliseconds(100));
    const std::uint64_t burst = number_of_starts();
    const double longest = static_cast<double>(pause.count()) * static_cast<double>(burst);
    const bool never_stops = interval.count() == 0 || burst == 0 || longest >= static_cast<double>(interval.count());
    if (never_stops && facts_.restart == "always") {
      findings_.add(
          facts_.mentions_gpus ? UnitSeverity::warning : UnitSeverity::hint, *setting,
          {"restart-without-limit",
           fmt::format("a service that cannot start is started again for ever: {}",
                       interval.count() == 0 || burst == 0
                           ? "the limit is switched off"
                           : fmt::format("{} starts, {} apart, never fit into the {} of StartLimitIntervalSec", burst,
                                         time_span_text(pause), time_span_text(interval))),
           "[Unit] StartLimitIntervalSec=30min and StartLimitBurst=5; the unit is then failed until 'systemctl "
           "reset-failed NAME'"});
    } else if (!never_stops && facts_.mentions_gpus) {
      findings_.add(UnitSeverity::hint, *setting,
                    {"reset-failed",
                     fmt::format("after {} starts within {} systemd refuses any more, also by hand", burst,
                                 time_span_text(interval)),
                     "systemctl reset-failed NAME, then start; a wait before the start makes fast failures rare"});
    }
  }

  [[nodiscard]] milliseconds span_of(std::string_view section, const std::vector<std::string_view>& keys,
                                     milliseconds otherwise) const {
    for (const auto key : keys)
      for (const auto place : {section, std::string_view("Service")})
        if (const auto* setting = settings_.last(place, key))
          if (const auto span = parse_time_span(setting->value)) return *span;
    return otherwise;
  }

  [[nodiscard]] std::uint64_t number_of_starts() const {
    static constexpr std::uint64_t kDefault = 5;
    for (const auto section : {std::string_view("Unit"), std::string_view("Service")})
      if (const auto* setting = settings_.last(section, "StartLimitBurst"))
        if (const auto number = parse_unsigned(setting->value)) return *number;
    return kDefault;
  }

  void lint_type() const {
    if (!facts_.mentions_gpus || (facts_.type != "simple" && facts_.type != "exec" && facts_.type != "idle")) return;
    const auto* setting = settings_.last("Service", "Type");
    const UnitFindings::Words words{
        "type-hides-readiness",
        fmt::format("with Type={} the service counts as started long before its model is loaded: what is ordered after "
                    "it starts too early, and a start that fails later looks like a success",
                    facts_.type),
        "Type=notify where the program says READY=1 itself, else keep it and check readiness where it is used"};
    if (setting != nullptr)
      findings_.add(UnitSeverity::hint, *setting, words);
    else
      findings_.add_missing(UnitSeverity::hint, "Type", words);
  }

  const UnitToLint& unit_;
  const UnitSettings& settings_;
  const ServiceFacts& facts_;
  UnitFindings& findings_;
};

}  // namespace

void lint_service(const UnitToLint& unit, const ServiceFacts& facts, UnitFindings& findings) {
  ServiceRules(unit, facts, findings).lint();
}

}  // namespace vacate
