// SPDX-License-Identifier: Apache-2.0
// Reads what a `run` or `finish` step expects.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "lab/case/pointer.h"
#include "lab/case/read.h"

namespace lab {
namespace {

using Json = nlohmann::ordered_json;

/// The same value in JSON; nothing for dates, which JSON has not.
std::optional<Json> to_json(const TomlNode& node) {
  if (const auto* boolean = node.as<bool>()) return Json(*boolean);
  if (const auto* integer = node.as<std::int64_t>()) return Json(*integer);
  if (const auto* number = node.as<double>()) return Json(*number);
  if (const auto* text = node.as<std::string>()) return Json(*text);
  if (const auto* items = node.as<TomlNode::Array>()) {
    Json array = Json::array();
    for (const TomlNode& item : *items) {
      auto value = to_json(item);
      if (!value) return std::nullopt;
      array.push_back(std::move(*value));
    }
    return array;
  }
  if (const auto* members = node.as<TomlNode::Table>()) {
    Json object = Json::object();
    for (const TomlMember& member : *members) {
      auto value = to_json(member.value);
      if (!value) return std::nullopt;
      object[member.key] = std::move(*value);
    }
    return object;
  }
  return std::nullopt;
}

/// N of "NMiB".
std::optional<Mib> mib_text(std::string_view text) {
  constexpr std::string_view kUnit = "MiB";
  if (!text.ends_with(kUnit)) return std::nullopt;
  const auto number = vacate::parse_unsigned(text.substr(0, text.size() - kUnit.size()));
  return number && *number <= static_cast<std::uint64_t>(kMaxMib) ? number : std::nullopt;
}

class ExpectationReader {
 public:
  ExpectationReader(TableReader& table, const Case& so_far, const std::vector<std::string>& earlier)
      : table_(table), so_far_(so_far), earlier_(earlier) {}

  Expectations read();

 private:
  void read_exit(Expectations& expect);
  void read_used(Expectations& expect);
  void read_ended_by(Expectations& expect);
  void read_json(Expectations& expect);
  void read_json_same(Expectations& expect);
  std::optional<JsonExpectation> read_json_entry(const TomlMember& entry);
  void read_matcher(const TomlNode& node, JsonExpectation& wanted);
  std::vector<std::string> globs(std::string_view key);
  std::vector<std::string> marked_texts(std::string_view key);
  /// The members of the table `key`, or none.
  const TomlNode::Table& members(std::string_view key);
  void check_pointer(const TomlMember& entry);
  void check_earlier(const std::string& name, Position at);
  void complain(Position at, std::string text) { table_.complaints().add(at, std::move(text)); }

  TableReader& table_;
  const Case& so_far_;
  const std::vector<std::string>& earlier_;
};

std::vector<std::string> ExpectationReader::globs(std::string_view key) {
  const auto names = table_.texts(key);
  check_globs(names, so_far_, table_.complaints());
  return plain(names);
}

std::vector<std::string> ExpectationReader::marked_texts(std::string_view key) {
  const auto texts = table_.texts(key);
  for (const PlacedText& text : texts) check_pid_marks(text, so_far_, table_.complaints());
  return plain(texts);
}

const TomlNode::Table& ExpectationReader::members(std::string_view key) {
  static const TomlNode::Table kNone;
  const TomlMember* member = table_.find(key);
  if (member == nullptr) return kNone;
  if (const auto* entries = member->value.as<TomlNode::Table>()) return *entries;
  table_.wrong_type(member->value, key, "a table");
  return kNone;
}

void ExpectationReader::read_exit(Expectations& expect) {
  const TomlMember* member = table_.find("exit");
  if (member == nullptr) return;
  const auto take = [&](const TomlNode& node) {
    if (const auto code = table_.integer_in(node, "exit", {0, 255})) expect.exit.push_back(static_cast<int>(*code));
  };
  const auto* codes = member->value.as<TomlNode::Array>();
  if (codes == nullptr) return take(member->value);
  if (codes->empty()) complain(member->value.at, "'exit' is an empty list: leave it out to accept any code");
  for (const TomlNode& code : *codes) take(code);
}

void ExpectationReader::read_used(Expectations& expect) {
  for (const TomlMember& entry : members("used")) {
    const auto index = vacate::parse_unsigned(entry.key);
    if (!index || *index > INT32_MAX) {
      complain(entry.at, fmt::format("'{}' in 'used' is no GPU index: write \"0\" = MIB", entry.key));
      continue;
    }
    const auto mib = table_.integer_in(entry.value, "used", {0, kMaxMib});
    if (mib && check_gpu(static_cast<std::int64_t>(*index), so_far_.machine, entry.at, table_.complaints())) {
      expect.used[static_cast<int>(*index)] = static_cast<Mib>(*mib);
    }
  }
}

void ExpectationReader::read_ended_by(Expectations& expect) {
  for (const TomlMember& entry : members("ended_by")) {
    check_globs({{entry.key, entry.at}}, so_far_, table_.complaints());
    const auto how = table_.string_in(entry.value, "ended_by");
    if (!how) continue;
    if (*how != "exit" && !signal_number(*how)) {
      complain(entry.value.at,
               fmt::format("'{}' in 'ended_by' is no signal: write \"TERM\", \"KILL\", .. or \"exit\"", *how));
      continue;
    }
    expect.ended_by.emplace_back(entry.key, *how);
  }
}

void ExpectationReader::check_pointer(const TomlMember& entry) {
  if (const auto pointer = parse_pointer(entry.key); !pointer) complain(entry.at, pointer.error().message);
  check_pid_marks({entry.key, entry.at}, so_far_, table_.complaints());
}

/// `{ min, max }`, `{ contains }` or `{ length }`.
void ExpectationReader::read_matcher(const TomlNode& node, JsonExpectation& wanted) {
  TableReader matcher(node, "an expectation of 'json'", table_.complaints());
  const bool min = matcher.find("min") != nullptr;
  const bool max = matcher.find("max") != nullptr;
  const bool contains = matcher.find("contains") != nullptr;
  const bool length = matcher.find("length") != nullptr;
  if (static_cast<int>(min || max) + static_cast<int>(contains) + static_cast<int>(length) != 1) {
    complain(node.at, "a table in 'json' has to be { min = .., max = .. }, { contains = \"..\" } or { length = .. }");
  } else if (contains) {
    const std::string text = matcher.text("contains");
    check_pid_marks({text, node.at}, so_far_, table_.complaints());
    wanted.wanted = expect::Contains{text};
  } else if (length) {
    wanted.wanted = expect::Length{static_cast<std::uint64_t>(matcher.integer("length", {0, INT32_MAX}, 0))};
  } else {
    expect::Between between;
    if (min) between.min = matcher.number("min", {-1e300, 1e300}, 0);
    if (max) between.max = matcher.number("max", {-1e300, 1e300}, 0);
    if (min && max && *between.min > *between.max) complain(node.at, "'min' is above 'max': nothing can be in between");
    wanted.wanted = between;
  }
  matcher.finish();
}

std::optional<JsonExpectation> ExpectationReader::read_json_entry(const TomlMember& entry) {
  check_pointer(entry);
  JsonExpectation wanted{entry.key, expect::Present{}, entry.at};
  if (entry.value.as<TomlNode::Table>() != nullptr) {
    read_matcher(entry.value, wanted);
    return wanted;
  }
  const auto* text = entry.value.as<std::string>();
  if (text != nullptr && *text == "*") return wanted;
  if (const auto mib = text != nullptr ? mib_text(*text) : std::nullopt) {
    wanted.wanted = expect::MibOf{*mib};
    return wanted;
  }
  if (text != nullptr) check_pid_marks({*text, entry.value.at}, so_far_, table_.complaints());
  const auto value = to_json(entry.value);
  if (!value) {
    table_.wrong_type(entry.value, entry.key, "something that JSON can hold");
    return std::nullopt;
  }
  wanted.wanted = expect::Equal{{value->dump(-1, ' ', false, Json::error_handler_t::replace)}};
  return wanted;
}

void ExpectationReader::read_json(Expectations& expect) {
  for (const TomlMember& entry : members("json")) {
    if (auto wanted = read_json_entry(entry)) expect.json.push_back(std::move(*wanted));
  }
}

void ExpectationReader::check_earlier(const std::string& name, Position at) {
  if (std::find(earlier_.begin(), earlier_.end(), name) != earlier_.end()) return;
  complain(at, fmt::format("no earlier step has the name '{}': give it with name = \"{}\"", name, name));
}

void ExpectationReader::read_json_same(Expectations& expect) {
  for (const TomlMember& entry : members("json_same")) {
    check_pointer(entry);
    const auto step = table_.string_in(entry.value, "json_same");
    if (!step) continue;
    check_earlier(*step, entry.value.at);
    expect.json_same.emplace_back(entry.key, *step);
  }
}

Expectations ExpectationReader::read() {
  Expectations expect;
  expect.within = table_.number("within", {0, kMaxSeconds}, expect.within);
  expect.at_least = table_.number("at_least", {0, kMaxSeconds}, 0);
  if (expect.at_least > expect.within) {
    complain(table_.at("at_least"),
             fmt::format("'at_least' is above 'within' ({} s): no command can do both", expect.within));
  }
  read_exit(expect);
  expect.gone = globs("gone");
  expect.alive = globs("alive");
  read_used(expect);
  read_ended_by(expect);
  expect.shm_gone = plain(table_.texts("shm_gone"));
  expect.shm_kept = plain(table_.texts("shm_kept"));
  read_json(expect);
  expect.has = marked_texts("has");
  expect.lacks = marked_texts("lacks");
  expect.same_bytes_as = table_.text("same_bytes_as");
  if (!expect.same_bytes_as.empty()) check_earlier(expect.same_bytes_as, table_.at("same_bytes_as"));
  read_json_same(expect);
  return expect;
}

}  // namespace

const std::vector<std::string_view>& expectation_keys() {
  static const std::vector<std::string_view> kKeys{"within", "at_least", "exit",          "gone",     "alive",
                                                   "used",   "ended_by", "shm_gone",      "shm_kept", "json",
                                                   "has",    "lacks",    "same_bytes_as", "json_same"};
  return kKeys;
}

Expectations read_expectations(TableReader& table, const Case& so_far, const std::vector<std::string>& earlier) {
  return ExpectationReader(table, so_far, earlier).read();
}

}  // namespace lab
