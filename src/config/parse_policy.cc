// SPDX-License-Identifier: Apache-2.0
#include "config/parse_policy.h"

// A file can break what this library asserts ("[[="). With NDEBUG that is a promise to the compiler, without it the end
// of the program; neither, and the checks behind it answer.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(expr) static_assert(true)
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/utf8.h"
#include "config/ascii_text.h"
#include "model/device.h"
#include "model/holder.h"

namespace vacate {
namespace {

using std::chrono::milliseconds;
using Keys = std::vector<std::string>;

constexpr std::size_t kLongestText = 1024;
constexpr milliseconds kLongestGrace{3'600'000};

/// A table of the file and what to call it in messages.
struct Entry {
  const toml::table& table;
  std::string name;
};

struct SizeRange {
  Bytes least, most;
};
struct TimeRange {
  milliseconds least, most;
};

/// As one would write them in the file.
std::string size_words(Bytes size) {
  if (size == Bytes{}) return "0";
  const bool is_whole = size.mib() != 0 && size.mib() % 1024 == 0;
  return is_whole ? fmt::format("{}GiB", size.mib() / 1024) : fmt::format("{}MiB", size.mib());
}
std::string time_words(milliseconds time) {
  const auto ms = time.count();
  if (ms % 3'600'000 == 0) return fmt::format("{}h", ms / 3'600'000);
  if (ms % 60'000 == 0) return fmt::format("{}min", ms / 60'000);
  return ms % 1000 == 0 ? fmt::format("{}s", ms / 1000) : fmt::format("{}ms", ms);
}

std::string_view word_for(toml::node_type type) noexcept {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "something else";
  }
}

bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

/// Has to begin where a path of the kernel begins, or anywhere.
bool can_be_path(std::string_view pattern) { return pattern.starts_with('/') || pattern.starts_with('*'); }

class PolicyReader {
 public:
  PolicyReader(Policy policy, std::string_view path, const FindUser& find_user)
      : policy_(std::move(policy)), path_(printable(path, 256)), find_user_(find_user) {}

  Result<Policy> read(const toml::table& root) && {
    check_keys({root, "the file"}, {"rule", "baseline", "numbers"});
    for (const auto* table : tables(root, "rule")) read_rule(*table);
    for (const auto* table : tables(root, "baseline")) read_baseline(*table);
    policy_.baselines.insert(policy_.baselines.begin(), baselines_.begin(), baselines_.end());
    if (const auto* node = root.get("numbers")) {
      if (const auto* table = node->as_table())
        read_numbers(*table);
      else
        complain(line_of(*node), "'numbers' is a table: write [numbers]");
    }
    if (complaints_.empty()) return std::move(policy_);
    const auto first = std::min_element(complaints_.begin(), complaints_.end(),
                                        [](const Complaint& a, const Complaint& b) { return a.line < b.line; });
    return Error{ErrorCode::malformed, fmt::format("{}:{}: {}", path_, first->line, first->text)};
  }

 private:
  struct Complaint {
    std::uint32_t line = 0;
    std::string text;
  };

  static std::uint32_t line_of(const toml::node& node) { return node.source().begin.line; }
  void complain(std::uint32_t line, std::string text) { complaints_.push_back({line, std::move(text)}); }

  static const Keys& rule_keys() {
    static const Keys kKeys = {"name", "why", "exe", "user", "unit", "cgroup", "role", "action", "grace"};
    return kKeys;
  }

  /// False, with a complaint each, where the table has other keys too.
  bool check_keys(const Entry& entry, const Keys& known) {
    const auto before = complaints_.size();
    for (auto&& [key, node] : entry.table) {
      const auto name = from_ascii(key.str());
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const auto best = closest_match(name, known);
      complain(
          key.source().begin.line,
          fmt::format("{}: unknown key '{}'; {} {}", entry.name, printable(name, 64),
                      best ? fmt::format("did you mean '{}'? There are", *best) : "there are", fmt::join(known, ", ")));
    }
    return complaints_.size() == before;
  }

  std::vector<const toml::table*> tables(const toml::table& root, std::string_view key) {
    std::vector<const toml::table*> found;
    const auto* node = root.get(key);
    if (node == nullptr) return found;
    const auto* array = node->as_array();
    if (array != nullptr)
      for (const auto& item : *array)
        if (const auto* table = item.as_table()) found.push_back(table);
    if (array == nullptr || found.size() != array->size())
      complain(line_of(*node), fmt::format("'{0}' is a list of tables: write [[{0}]]", key));
    return found;
  }

  /// A text that is there, is one and is sensible; nothing otherwise, with a complaint unless it is merely absent.
  std::optional<std::string> text_of(const Entry& entry, std::string_view key) {
    const auto* node = entry.table.get(key);
    if (node == nullptr) return std::nullopt;
    const auto* text = node->as_string();
    if (text == nullptr) {
      complain(line_of(*node),
               fmt::format("{}: '{}' is {}, and has to be a text in quotes", entry.name, key, word_for(node->type())));
      return std::nullopt;
    }
    const std::string value = from_ascii(text->get());
    if (value.empty() || value.size() > kLongestText || !is_one_line(value)) {
      complain(line_of(*node),
               fmt::format("{}: '{}' has to be one line of 1 to {} bytes", entry.name, key, kLongestText));
      return std::nullopt;
    }
    return value;
  }

  std::optional<std::string> required(const Entry& entry, std::string_view key) {
    if (entry.table.get(key) == nullptr)
      complain(line_of(entry.table), fmt::format("{}: '{}' is missing", entry.name, key));
    return text_of(entry, key);
  }

  std::uint32_t line_of_key(const Entry& entry, std::string_view key) const { return line_of(*entry.table.get(key)); }

  void read_rule(const toml::table& table) {
    Entry entry{table, "the rule"};
    const auto name = required(entry, "name");
    if (name) entry.name = fmt::format("rule '{}'", printable(*name, 64));
    const auto why = required(entry, "why");
    PolicyRule rule;
    rule.name = name.value_or("");
    rule.detail = why.value_or("");
    rule.source = fmt::format("{}:{}", path_, line_of(table));
    read_whom(entry, rule);
    read_action(entry, rule);
    policy_.rules.push_back(std::move(rule));
  }

  void read_whom(const Entry& entry, PolicyRule& rule) {
    const bool has_unknown_key = !check_keys(entry, rule_keys());
    rule.exe = path_pattern(entry, "exe");
    rule.cgroup = path_pattern(entry, "cgroup");
    rule.uid = user_of(entry);
    rule.unit = unit_of(entry);
    rule.role = role_of(entry);
    static constexpr std::array<std::string_view, 5> kWhom = {"exe", "user", "unit", "cgroup", "role"};
    const bool says =
        std::any_of(kWhom.begin(), kWhom.end(), [&](std::string_view key) { return entry.table.contains(key); });
    if (says || has_unknown_key) return;  // a misspelt key is the better complaint
    complain(line_of(entry.table), fmt::format("{}: it does not say whom it is for; give at least one of {}",
                                               entry.name, fmt::join(kWhom, ", ")));
  }

  std::optional<std::string> path_pattern(const Entry& entry, std::string_view key) {
    auto pattern = text_of(entry, key);
    if (pattern && !can_be_path(*pattern))
      complain(line_of_key(entry, key),
               fmt::format("{}: '{}' is compared with a whole path, which '{}' can never be; begin it with / or *",
                           entry.name, key, printable(*pattern, 64)));
    return pattern;
  }

  std::optional<uid_t> user_of(const Entry& entry) {
    const auto* node = entry.table.get("user");
    if (node == nullptr) return std::nullopt;
    if (const auto* number = node->as_integer()) {
      if (number->get() >= 0 && number->get() < 0xFFFFFFFF) return static_cast<uid_t>(number->get());
      complain(line_of(*node), fmt::format("{}: no user can have the number {}", entry.name, number->get()));
      return std::nullopt;
    }
    if (!node->is_string()) {
      complain(line_of(*node), fmt::format("{}: 'user' is {}, and has to be a name in quotes or a number", entry.name,
                                           word_for(node->type())));
      return std::nullopt;
    }
    const auto name = text_of(entry, "user");
    const auto uid = name ? find_user_(*name) : std::nullopt;
    if (name && !uid)
      complain(line_of(*node), fmt::format("{}: no user is called '{}'; give a name of /etc/passwd or a number",
                                           entry.name, printable(*name, 64)));
    return uid;
  }

  std::optional<std::string> unit_of(const Entry& entry) {
    auto pattern = text_of(entry, "unit");
    if (!pattern) return pattern;
    if (pattern->find('/') != std::string::npos)
      complain(line_of_key(entry, "unit"),
               fmt::format("{}: 'unit' is a name like llm.service, not a path; a path is for 'cgroup'", entry.name));
    if (pattern->find_first_of(".*?") == std::string::npos) *pattern += ".service";
    return pattern;
  }

  std::optional<std::string> role_of(const Entry& entry) {
    static const std::vector<std::string> kRoles = [] {
      std::vector<std::string> words;
      for (const auto role : {HolderRole::context, HolderRole::inheritor, HolderRole::mapped, HolderRole::files,
                              HolderRole::importer, HolderRole::unresolved})
        words.emplace_back(describe(role));
      return words;
    }();
    auto role = text_of(entry, "role");
    if (role && std::find(kRoles.begin(), kRoles.end(), *role) == kRoles.end())
      complain(line_of_key(entry, "role"), fmt::format("{}: there is no role '{}'; there are {}", entry.name,
                                                       printable(*role, 64), fmt::join(kRoles, ", ")));
    return role;
  }

  void read_action(const Entry& entry, PolicyRule& rule) {
    const auto action = text_of(entry, "action");
    if (const auto grace = text_of(entry, "grace"))
      rule.grace = time_of(entry, "grace", {milliseconds{1}, kLongestGrace});
    rule.forbid = action == "forbid";
    rule.term_only = action == "term-only";
    if (action && action != "protect" && action != "forbid" && action != "term-only")
      complain(line_of_key(entry, "action"),
               fmt::format("{}: there is no action '{}'; there are protect, forbid, term-only", entry.name,
                           printable(*action, 64)));
    if (action && entry.table.contains("grace"))
      complain(
          line_of_key(entry, "grace"),
          fmt::format("{}: 'grace' is for who may be killed, and action = \"{}\" says that nobody is; leave one out",
                      entry.name, printable(*action, 64)));
  }

  std::optional<milliseconds> time_of(const Entry& entry, std::string_view key, TimeRange range) {
    const auto text = text_of(entry, key);
    if (!text) return std::nullopt;
    const auto time = parse_duration(*text);
    if (time && *time >= range.least && *time <= range.most) return *time;
    complain(line_of_key(entry, key),
             time ? fmt::format("{}: '{}' is {}, and has to be between {} and {}", entry.name, key,
                                printable(*text, 64), time_words(range.least), time_words(range.most))
                  : fmt::format("{}: '{}': {}", entry.name, key, time.error().message));
    return std::nullopt;
  }

  std::optional<Bytes> size_of(const Entry& entry, std::string_view key, SizeRange range) {
    const auto text = text_of(entry, key);
    if (!text) return std::nullopt;
    const auto size = parse_size(*text);
    if (size && *size >= range.least && *size <= range.most) return *size;
    complain(line_of_key(entry, key),
             size ? fmt::format("{}: '{}' is {}, and has to be between {} and {}", entry.name, key,
                                printable(*text, 64), size_words(range.least), size_words(range.most))
                  : fmt::format("{}: '{}': {}", entry.name, key, size.error().message));
    return std::nullopt;
  }

  void read_baseline(const toml::table& table) {
    const Entry entry{table, "the baseline"};
    check_keys(entry, {"gpu", "amount"});
    const auto gpu = required(entry, "gpu");
    if (gpu && *gpu != "*" && !is_gpu_word(*gpu))
      complain(line_of_key(entry, "gpu"),
               fmt::format("{}: no GPU can be '{}'; give an index, a GPU- UUID, a PCI address or \"*\"", entry.name,
                           printable(*gpu, 64)));
    static_cast<void>(required(entry, "amount"));
    if (!entry.table.contains("amount")) return;
    const auto amount = size_of(entry, "amount", {Bytes{0}, gibibytes(16)});
    if (gpu && amount) baselines_.push_back({*gpu, *amount});
  }

  void read_numbers(const toml::table& table) {
    const Entry entry{table, "numbers"};
    check_keys(entry, {"memory_tolerance", "largest_assumed_baseline", "driver_deadline", "held_by_nobody_after"});
    if (const auto size = size_of(entry, "memory_tolerance", {mebibytes(1), gibibytes(4)}))
      policy_.memory_tolerance = *size;
    if (const auto size = size_of(entry, "largest_assumed_baseline", {Bytes{0}, gibibytes(16)}))
      policy_.largest_assumed_baseline = *size;
    if (const auto time = time_of(entry, "driver_deadline", {milliseconds{100}, milliseconds{600'000}}))
      policy_.driver_deadline = *time;
    if (const auto time = time_of(entry, "held_by_nobody_after", {milliseconds{10'000}, milliseconds{3'600'000}}))
      policy_.held_by_nobody_after = *time;
  }

  Policy policy_;
  std::string path_;
  const FindUser& find_user_;
  std::vector<ConfiguredBaseline> baselines_;
  std::vector<Complaint> complaints_;
};

/// The letter past ASCII that stands at this place of to_ascii()'s text; empty if none does.
std::string letter_at(std::string_view ascii, const toml::source_position& place) {
  const auto lines = split(ascii, '\n');
  if (place.line == 0 || place.line > lines.size()) return {};
  const auto line = lines[place.line - 1];
  if (place.column == 0 || place.column > line.size()) return {};
  static constexpr std::size_t kLongestLetter = 12;  // four bytes, three characters each
  const auto text = from_ascii(line.substr(place.column - 1, kLongestLetter));
  const auto [point, length] = decode_utf8(text);
  return point < 0x80 ? std::string() : text.substr(0, length);
}

Error no_toml(const PolicyFile& file, std::uint32_t line, std::string_view why) {
  return Error{ErrorCode::malformed,
               fmt::format("{}:{}: this is no TOML: {}", printable(file.path, 256), line, printable(why, 256))};
}

}  // namespace

Result<Policy> add_policy(Policy policy, const PolicyFile& file, const FindUser& find_user) {
  static constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const auto text = file.text.substr(file.text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  if (const auto line = first_unfit_line(text)) return no_toml(file, line->number, line->why);
  const auto ascii = to_ascii(text);
  const auto parsed = toml::parse(ascii);
  if (parsed) return PolicyReader(std::move(policy), file.path, find_user).read(parsed.table());
  const auto& error = parsed.error();
  const auto place = error.source().begin;
  const auto letter = letter_at(ascii, place);
  if (letter.empty()) return no_toml(file, place.line, from_ascii(error.description()));
  return no_toml(file, place.line, fmt::format("'{}' belongs into quotes or a comment", letter));
}

}  // namespace vacate
