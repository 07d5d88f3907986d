// SPDX-License-Identifier: Apache-2.0
#include "lab/case/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace lab {
namespace {

const TomlNode::Table kNoMembers;

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const auto close = vacate::closest_match(word, known);
  return close ? fmt::format("did you mean '{}'?", *close) : std::string("remove it or see docs/cases.md");
}

}  // namespace

std::string join_words(const std::vector<std::string>& words) {
  std::string joined;
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (n > 0) joined += n + 1 == words.size() ? " or " : ", ";
    joined += fmt::format("'{}'", words[n]);
  }
  return joined;
}

std::vector<std::string> plain(const std::vector<PlacedText>& texts) {
  std::vector<std::string> strings;
  strings.reserve(texts.size());
  for (const PlacedText& text : texts) strings.push_back(text.text);
  return strings;
}

TableReader::TableReader(const TomlNode& node, std::string where, Complaints& complaints, std::optional<int> counter)
    : node_(node),
      members_(node.as<TomlNode::Table>() != nullptr ? *node.as<TomlNode::Table>() : kNoMembers),
      where_(std::move(where)),
      complaints_(complaints),
      counter_(counter) {
  if (node.as<TomlNode::Table>() == nullptr) {
    complaints_.add(node.at, fmt::format("{} is {}, but has to be a table", where_, node.kind()));
  }
}

const TomlMember* TableReader::find(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const TomlMember& m) { return m.key == key; });
  return found == members_.end() ? nullptr : &*found;
}

Position TableReader::at(std::string_view key) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const TomlMember& m) { return m.key == key; });
  return found == members_.end() ? node_.at : found->value.at;
}

bool TableReader::is_empty_array(std::string_view key) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const TomlMember& m) { return m.key == key; });
  const auto* items = found != members_.end() ? found->value.as<TomlNode::Array>() : nullptr;
  return items != nullptr && items->empty();
}

std::string TableReader::expand(std::string_view text) const {
  constexpr std::string_view kMark = "{i}";
  std::string result(text);
  if (!counter_) return result;
  const std::string number = std::to_string(*counter_);
  for (std::size_t at = 0; (at = result.find(kMark, at)) != std::string::npos; at += number.size()) {
    result.replace(at, kMark.size(), number);
  }
  return result;
}

std::optional<std::string> TableReader::string_in(const TomlNode& node, std::string_view key) {
  const auto* found = node.as<std::string>();
  if (found == nullptr) {
    wrong_type(node, key, "a string");
    return std::nullopt;
  }
  if (found->find('\0') != std::string::npos) {
    complaints_.add(node.at, fmt::format("'{}' in {} holds a NUL character, which no argument, title or file name can "
                                         "hold: remove it",
                                         key, where_));
    return std::nullopt;
  }
  return expand(*found);
}

std::optional<std::int64_t> TableReader::integer_in(const TomlNode& node, std::string_view key,
                                                    Bounds<std::int64_t> range) {
  const auto* found = node.as<std::int64_t>();
  if (found == nullptr) {
    wrong_type(node, key, "an integer");
    return std::nullopt;
  }
  if (*found < range.min || *found > range.max) {
    complaints_.add(node.at, fmt::format("'{}' in {} is {}, but has to be from {} to {}", key, where_, *found,
                                         range.min, range.max));
    return std::nullopt;
  }
  return *found;
}

void TableReader::wrong_type(const TomlNode& node, std::string_view key, std::string_view wanted) {
  complaints_.add(node.at, fmt::format("'{}' in {} is {}, but has to be {}", key, where_, node.kind(), wanted));
}

void TableReader::missing(std::string_view key, std::string_view what_to_do) {
  if (node_.as<TomlNode::Table>() == nullptr) return;  // said already
  complaints_.add(node_.at, fmt::format("{} has no '{}': {}", where_, key, what_to_do));
}

void TableReader::wrong_word(const TomlMember& member, const std::string& found,
                             const std::vector<std::string>& words) {
  complaints_.add(member.value.at,
                  fmt::format("'{}' in {} is '{}', but has to be {}", member.key, where_, found, join_words(words)));
}

std::string TableReader::text(std::string_view key, std::string fallback) {
  const TomlMember* member = find(key);
  if (member == nullptr) return fallback;
  return string_in(member->value, key).value_or(std::move(fallback));
}

bool TableReader::boolean(std::string_view key, bool fallback) {
  const TomlMember* member = find(key);
  if (member == nullptr) return fallback;
  if (const auto* found = member->value.as<bool>()) return *found;
  wrong_type(member->value, key, "true or false");
  return fallback;
}

std::int64_t TableReader::integer(std::string_view key, Bounds<std::int64_t> range, std::int64_t fallback) {
  const TomlMember* member = find(key);
  return member == nullptr ? fallback : integer_in(member->value, key, range).value_or(fallback);
}

double TableReader::number(std::string_view key, Bounds<double> range, double fallback) {
  const TomlMember* member = find(key);
  if (member == nullptr) return fallback;
  double found = 0;
  if (const auto* integer = member->value.as<std::int64_t>()) {
    found = static_cast<double>(*integer);
  } else if (const auto* real = member->value.as<double>()) {
    found = *real;
  } else {
    wrong_type(member->value, key, "a number");
    return fallback;
  }
  if (std::isnan(found) || found < range.min || found > range.max) {
    complaints_.add(member->value.at, fmt::format("'{}' in {} is {}, but has to be from {} to {}", key, where_, found,
                                                  range.min, range.max));
    return fallback;
  }
  return found;
}

std::vector<PlacedText> TableReader::texts(std::string_view key) {
  const TomlMember* member = find(key);
  std::vector<PlacedText> result;
  if (member == nullptr) return result;
  const auto* items = member->value.as<TomlNode::Array>();
  if (items == nullptr) {
    wrong_type(member->value, key, "an array of strings");
    return result;
  }
  for (const TomlNode& item : *items) {
    if (auto found = string_in(item, key)) result.push_back({std::move(*found), item.at});
  }
  return result;
}

std::vector<PlacedText> TableReader::one_or_more(std::string_view key) {
  const TomlMember* member = find(key);
  if (member == nullptr || member->value.as<std::string>() == nullptr) return texts(key);
  auto found = string_in(member->value, key);
  if (!found) return {};
  return {{std::move(*found), member->value.at}};
}

std::span<const TomlNode> TableReader::tables(std::string_view key) {
  const TomlMember* member = find(key);
  if (member == nullptr) return {};
  const auto* items = member->value.as<TomlNode::Array>();
  if (items == nullptr) {
    wrong_type(member->value, key, fmt::format("an array of tables, [[{}]]", key));
    return {};
  }
  return *items;
}

void TableReader::finish() {
  for (const TomlMember& member : members_) {
    if (std::find(asked_.begin(), asked_.end(), member.key) != asked_.end()) continue;
    complaints_.add(member.at,
                    fmt::format("unknown key '{}' in {}: {}", member.key, where_, suggestion(member.key, asked_)));
  }
}

}  // namespace lab
