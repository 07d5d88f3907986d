// SPDX-License-Identifier: Apache-2.0
#include "report/plan_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "model/process.h"
#include "report/json_parts.h"
#include "report/json_shape.h"

namespace vacate {
namespace {

using json::Json;

constexpr std::string_view kPlanSchema = "vacate.free/1";
constexpr std::size_t kMostSteps = 65536;
constexpr std::uint64_t kMostGpus = 4096;
constexpr double kLongestGrace = 1e6;  // seconds

enum class Need { required, optional };

/// Reads members of one object; the first thing that is wrong is kept, with its place.
class Members {
 public:
  Members(const Json& object, std::string path, std::string& complaint)
      : object_(object), path_(std::move(path)), complaint_(complaint) {
    if (!object_.is_object()) complain("", "an object", object_);
  }

  /// nullptr: it is missing or null, or something was wrong before.
  [[nodiscard]] const Json* find(const char* name, Need need, std::string_view wanted) {
    if (!complaint_.empty()) return nullptr;
    const auto at = object_.find(name);
    const bool has = at != object_.end() && !at->is_null();
    if (!has && need == Need::required) complaint_ = fmt::format("{}/{}: expected {}, found none", path_, name, wanted);
    return has ? &*at : nullptr;
  }
  [[nodiscard]] std::uint64_t number(const char* name, Need need, std::uint64_t smallest, std::uint64_t largest) {
    const std::string wanted = fmt::format("a number from {} to {}", smallest, largest);
    const auto* found = find(name, need, wanted);
    if (found == nullptr) return 0;
    if (is_number_in(*found, smallest, largest)) return found->get<std::uint64_t>();
    complain(name, wanted, *found);
    return 0;
  }
  [[nodiscard]] std::string text(const char* name, Need need) {
    const auto* found = find(name, need, "a text");
    if (found == nullptr) return {};
    if (found->is_string()) return found->get<std::string>();
    complain(name, "a text", *found);
    return {};
  }
  [[nodiscard]] bool flag(const char* name) {
    const auto* found = find(name, Need::optional, "true or false");
    if (found == nullptr) return false;
    if (!found->is_boolean()) complain(name, "true or false", *found);
    return found->is_boolean() && found->get<bool>();
  }
  /// Elements that `fits`, in their order.
  template <class Fits>
  [[nodiscard]] std::vector<Json> list(const char* name, std::string_view wanted, Fits fits) {
    const auto* found = find(name, Need::optional, wanted);
    if (found == nullptr) return {};
    if (found->is_array() && std::all_of(found->begin(), found->end(), fits)) return {found->begin(), found->end()};
    complain(name, wanted, *found);
    return {};
  }
  void complain(std::string_view name, std::string_view wanted, const Json& found) {
    static constexpr std::size_t kMostShown = 40;
    const std::string shown = found.is_structured()
                                  ? found.type_name()
                                  : printable(found.dump(-1, ' ', true, Json::error_handler_t::replace), kMostShown);
    if (complaint_.empty())
      complaint_ = fmt::format("{}{}{}: expected {}, found {}", path_.empty() && name.empty() ? "the whole" : path_,
                               name.empty() ? "" : "/", name, wanted, shown);
  }
  [[nodiscard]] static bool is_number_in(const Json& found, std::uint64_t smallest, std::uint64_t largest) {
    if (!found.is_number_unsigned()) return false;
    const auto value = found.get<std::uint64_t>();
    return value >= smallest && value <= largest;
  }
  [[nodiscard]] bool failed() const { return !complaint_.empty(); }

 private:
  const Json& object_;
  std::string path_;
  std::string& complaint_;
};

std::optional<Action> action_of(std::string_view word) {
  for (const auto action :
       {Action::signal, Action::terminate_client, Action::stop_unit, Action::unlink, Action::refuse})
    if (describe(action) == word) return action;
  return std::nullopt;
}

void read_key(Members& members, ProcessKey& key) {
  static constexpr std::string_view kWanted = "PID@START, the same pid as in 'pid'";
  const auto pid = members.number("pid", Need::required, 1, kLargestPid);
  const auto* found = members.find("key", Need::required, kWanted);
  if (found == nullptr) return;
  const auto parsed = found->is_string() ? parse_process_selector(found->get<std::string>())
                                         : Result<ProcessSelector>(Error{ErrorCode::malformed, ""});
  if (!parsed || !parsed->start_ticks || parsed->pid != static_cast<pid_t>(pid))
    return members.complain("key", kWanted, *found);
  key.pid = parsed->pid;
  key.start_ticks = *parsed->start_ticks;
  key.pidfd_inode = members.number("pidfd_inode", Need::optional, 1, std::numeric_limits<std::uint64_t>::max());
}

/// What comes after TERM is for the command to say, and no plan says another signal.
void read_action(Members& members, Step& step) {
  const auto* found = members.find("action", Need::required, "an action");
  if (found == nullptr) return;
  const auto action = found->is_string() ? action_of(found->get<std::string>()) : std::nullopt;
  if (!action) return members.complain("action", "signal, terminate-client, stop-unit, unlink or refuse", *found);
  step.action = *action;
  const auto* signal = members.find("signal", Need::optional, "TERM");
  if (signal != nullptr && (*signal != "TERM" || step.action != Action::signal))
    members.complain("signal", step.action == Action::signal ? "TERM" : "none for this action", *signal);
}

void read_terms(Members& members, EndingTerms& terms) {
  static constexpr std::string_view kWanted = "seconds from 0 to 1000000";
  terms.term_only = members.flag("term_only");
  const auto* grace = members.find("grace", Need::optional, kWanted);
  if (grace == nullptr) return;
  const double seconds = grace->is_number() ? grace->get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kLongestGrace)) return members.complain("grace", kWanted, *grace);
  terms.grace = std::chrono::milliseconds(std::llround(seconds * 1000));
}

Step read_step(const Json& object, std::size_t index, std::string& complaint) {
  Members members(object, fmt::format("/plan/steps/{}", index), complaint);
  Step step;
  step.n = static_cast<unsigned>(members.number("n", Need::required, index + 1, index + 1));
  read_action(members, step);
  read_key(members, step.key);
  step.title = members.text("title", Need::optional);
  step.holder = members.flag("holder");  // one that does not say so cannot be said to have let go
  step.rule = members.text("rule", Need::optional);
  for (const auto& reason : members.list("because", "a list of texts", [](const Json& e) { return e.is_string(); }))
    step.because.push_back(reason.get<std::string>());
  const auto is_gpu = [](const Json& e) { return Members::is_number_in(e, 0, kMostGpus); };
  for (const auto& gpu : members.list("gpus", "a list of indices", is_gpu)) step.gpus.push_back(gpu.get<unsigned>());
  step.mps_server = static_cast<pid_t>(members.number("mps_server", Need::optional, 1, kLargestPid));
  read_terms(members, step.terms);
  // Their names are what is agreed to; what they are now is for a fresh plan to say.
  if (step.action == Action::stop_unit) step.unit = UnitTarget{members.text("unit", Need::required), {}, {}};
  if (auto path = members.text("thaw", Need::optional); !path.empty()) step.thaw = ThawTarget{std::move(path)};
  return step;
}

Plan read_plan(const Json& object, std::string& complaint) {
  Members members(object, "/plan", complaint);
  Plan plan;
  plan.id = members.text("id", Need::required);
  plan.boot_id = members.text("boot_id", Need::required);
  plan.pid_namespace = members.number("pid_namespace", Need::required, 0, std::numeric_limits<std::uint64_t>::max());
  const auto* steps = members.find("steps", Need::required, "a list of steps");
  if (steps == nullptr) return plan;
  if (!steps->is_array() || steps->size() > kMostSteps) members.complain("steps", "a list of steps", *steps);
  std::set<pid_t> pids;
  for (std::size_t i = 0; !members.failed() && i < steps->size(); ++i) {
    plan.steps.push_back(read_step((*steps)[i], i, complaint));
    plan.steps.back().key.pid_namespace = plan.pid_namespace;
    if (!members.failed() && !pids.insert(plan.steps.back().key.pid).second)
      complaint = fmt::format("/plan/steps/{}/pid: {} is in an earlier step", i, plan.steps.back().key.pid);
  }
  return plan;
}

Error malformed_plan(std::string_view what) {
  return Error{ErrorCode::malformed, fmt::format("not a plan of vacate free --dry-run --json: {}", what)};
}

}  // namespace

Result<Plan> parse_plan_json(std::string_view text) {
  if (const auto excess = json::excess_of(text)) return malformed_plan("it " + *excess);
  const Json found = Json::parse(text.begin(), text.end(), nullptr, false);
  if (found.is_discarded()) return malformed_plan("it " + json::why_no_json(text));
  std::string complaint;
  Members members(found, "", complaint);
  const std::string schema = members.text("schema", Need::required);
  if (!members.failed() && schema != kPlanSchema)
    return malformed_plan(fmt::format("its schema is '{}', not {}", printable(schema, 64), kPlanSchema));
  if (members.flag("replay")) return malformed_plan("it was made from a recorded machine");
  const auto* object = members.find("plan", Need::required, "a plan");
  Plan plan = object != nullptr ? read_plan(*object, complaint) : Plan{};
  if (members.failed()) return malformed_plan(complaint);
  return plan;
}

}  // namespace vacate
