// SPDX-License-Identifier: Apache-2.0
#include "report/action_line.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/format.h"
#include "report/json_parts.h"
#include "report/json_shape.h"

namespace vacate {
namespace {

using json::Json;

constexpr std::string_view kRecordSchema = "vacate.record/1";
constexpr std::size_t kLongestText = 512;
constexpr std::size_t kLongestPath = 8192;
constexpr std::size_t kMostReasons = 16;

Json text_or_null(std::string_view text, std::size_t longest = kLongestText) {
  return text.empty() ? Json(nullptr) : Json(printable(text, longest));
}

std::string_view describe(EntryPhase phase) { return phase == EntryPhase::intent ? "intent" : "result"; }

/// Takes keys of one object; what is there and of another kind makes the whole line none of ours.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  std::string text(const char* name) {
    const auto* value = find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail<std::string>();
    return value->get_ref<const std::string&>();
  }
  template <class T>
  std::optional<T> number(const char* name) {
    const auto* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_unsigned()) return fail<std::optional<T>>();
    const auto figure = value->get<std::uint64_t>();
    if (figure > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return fail<std::optional<T>>();
    return static_cast<T>(figure);
  }
  double seconds(const char* name) {
    const auto* value = find(name);
    if (value == nullptr || !value->is_number()) return fail<double>();
    const auto figure = value->get<double>();
    return figure >= 0 && figure < 1e11 ? figure : fail<double>();
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> list;
    const auto* value = find(name);
    if (value == nullptr) return list;
    if (!value->is_array()) return fail<std::vector<std::string>>();
    for (const auto& element : *value) {
      if (!element.is_string()) return fail<std::vector<std::string>>();
      list.push_back(element.get_ref<const std::string&>());
    }
    return list;
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  /// Nothing where it is absent or null.
  const Json* find(const char* name) const {
    const auto at = object_.find(name);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  template <class T>
  T fail() {
    failed_ = true;
    return T{};
  }

  const Json& object_;
  bool failed_ = false;
};

std::string subject_of(const ActionEntry& entry) {
  std::string subject = printable(entry.key.empty() ? entry.target : entry.key, 256);
  if (!entry.title.empty()) subject += fmt::format(" ({})", printable(entry.title, 80));
  return subject;
}

}  // namespace

std::string action_line(const ActionEntry& entry) {
  Json object;
  object["schema"] = kRecordSchema;
  object["time"] = format_rfc3339(entry.time);
  object["epoch"] = json::seconds_of(entry.time);
  object["run"] = printable(entry.author.run, 64);
  object["number"] = entry.number;
  object["phase"] = describe(entry.phase);
  object["plan"] = text_or_null(entry.plan, 64);
  object["n"] = entry.n;
  object["action"] = printable(entry.action, 64);
  object["signal"] = text_or_null(entry.signal, 64);
  object["key"] = text_or_null(entry.key, 64);
  object["pid"] = entry.pid != 0 ? Json(entry.pid) : Json(nullptr);
  object["target"] = text_or_null(entry.target, kLongestPath);
  object["title"] = text_or_null(entry.title);
  Json because = Json::array();
  for (std::size_t i = 0; i < entry.because.size() && i < kMostReasons; ++i)
    because.push_back(printable(entry.because[i], kLongestText));
  object["because"] = std::move(because);
  object["result"] = text_or_null(entry.result, 64);
  object["detail"] = text_or_null(entry.detail);
  object["boot_id"] = text_or_null(entry.boot_id, 64);
  object["vacate_pid"] = entry.author.pid;
  object["uid"] = entry.author.uid;
  object["login_uid"] = entry.author.login_uid ? Json(*entry.author.login_uid) : Json(nullptr);
  std::string line = json::one_line(object);
  line.pop_back();
  return line;
}

std::optional<ActionEntry> parse_action_line(std::string_view line) {
  if (line.size() > kLongestActionLine || json::excess_of(line)) return std::nullopt;
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  Fields fields(object);
  if (fields.text("schema") != kRecordSchema) return std::nullopt;
  ActionEntry entry;
  entry.time = fields.seconds("epoch");
  entry.author.run = fields.text("run");
  entry.author.pid = fields.number<pid_t>("vacate_pid").value_or(0);
  const auto uid = fields.number<uid_t>("uid");
  entry.author.login_uid = fields.number<uid_t>("login_uid");
  entry.number = fields.number<std::uint64_t>("number").value_or(0);
  const auto phase = fields.text("phase");
  entry.phase = phase == "result" ? EntryPhase::result : EntryPhase::intent;
  entry.boot_id = fields.text("boot_id");
  entry.plan = fields.text("plan");
  entry.n = fields.number<unsigned>("n").value_or(0);
  entry.action = fields.text("action");
  entry.signal = fields.text("signal");
  entry.pid = fields.number<pid_t>("pid").value_or(0);
  entry.key = fields.text("key");
  entry.target = fields.text("target");
  entry.title = fields.text("title");
  entry.because = fields.texts("because");
  entry.result = fields.text("result");
  entry.detail = fields.text("detail");
  if (fields.failed() || !uid || (phase != "intent" && phase != "result")) return std::nullopt;
  if (entry.author.run.empty() || entry.number == 0 || entry.action.empty()) return std::nullopt;
  if ((entry.phase == EntryPhase::result) == entry.result.empty()) return std::nullopt;
  entry.author.uid = *uid;
  return entry;
}

std::string action_sentence(const ActionEntry& entry) {
  const std::string what = printable(entry.signal.empty() ? entry.action : entry.signal, 64);
  if (entry.phase == EntryPhase::result) {
    const std::string detail = entry.detail.empty() ? "" : fmt::format(" ({})", printable(entry.detail, 200));
    return fmt::format("{} {}: {}{}", what, subject_of(entry), printable(entry.result, 64), detail);
  }
  const std::string because = printable(fmt::format("{}", fmt::join(entry.because, "; ")), 400);
  return fmt::format("about to: {} {}{}{}", what, subject_of(entry), because.empty() ? "" : ", because ", because);
}

}  // namespace vacate
