// SPDX-License-Identifier: Apache-2.0
// Reads the members of one table of a case by key and type and complains about whatever does not fit: wrong types,
// numbers out of range, words that do not exist and, at finish(), keys that nobody asked for. It expands `{i}`. It
// knows no key by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/case/complaints.h"
#include "lab/case/document.h"

namespace lab {

/// A string of the file and where it stands, for what is checked later.
struct PlacedText {
  std::string text;
  Position at;
};

/// Both ends are allowed.
template <class T>
struct Bounds {
  T min;
  T max;
};

/// The words of an enumeration as the format spells them.
template <class E>
using Words = std::span<const std::pair<std::string_view, E>>;

class TableReader {
 public:
  /// `where` names the table in messages, e.g. "[[actor]]". `counter` is the value of `{i}`, none outside counted
  /// entries. Complains, and then reads as an empty table, if `node` is no table. Both references must outlive this.
  TableReader(const TomlNode& node, std::string where, Complaints& complaints,
              std::optional<int> counter = std::nullopt);

  /// The member, which is known from now on, or nullptr.
  [[nodiscard]] const TomlMember* find(std::string_view key);
  /// Where the value of `key` stands; the table itself if there is none.
  [[nodiscard]] Position at(std::string_view key) const;
  [[nodiscard]] bool is_empty_array(std::string_view key) const;
  [[nodiscard]] Position at() const noexcept { return node_.at; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] Complaints& complaints() noexcept { return complaints_; }

  // Each gives `fallback` where the key is absent or, with a complaint, where its value does not fit.
  [[nodiscard]] std::string text(std::string_view key, std::string fallback = {});
  [[nodiscard]] bool boolean(std::string_view key, bool fallback);
  [[nodiscard]] std::int64_t integer(std::string_view key, Bounds<std::int64_t> range, std::int64_t fallback);
  [[nodiscard]] double number(std::string_view key, Bounds<double> range, double fallback);
  template <class E>
  [[nodiscard]] E word(std::string_view key, Words<E> words, E fallback);
  /// An array of strings.
  [[nodiscard]] std::vector<PlacedText> texts(std::string_view key);
  /// A string, or an array of strings.
  [[nodiscard]] std::vector<PlacedText> one_or_more(std::string_view key);
  /// The tables of an array of tables, `[[key]]` or inline.
  [[nodiscard]] std::span<const TomlNode> tables(std::string_view key);

  /// `text` with `{i}` replaced.
  [[nodiscard]] std::string expand(std::string_view text) const;
  /// The string in `node`, expanded, or nothing and a complaint.
  [[nodiscard]] std::optional<std::string> string_in(const TomlNode& node, std::string_view key);
  /// The integer in `node`, or nothing and a complaint.
  [[nodiscard]] std::optional<std::int64_t> integer_in(const TomlNode& node, std::string_view key,
                                                       Bounds<std::int64_t> range);
  /// Complains that the value of `key` in this table is not `wanted`, e.g. "a string".
  void wrong_type(const TomlNode& node, std::string_view key, std::string_view wanted);
  /// Complains about a member that is needed and not there.
  void missing(std::string_view key, std::string_view what_to_do);
  /// Complains about every member that nobody asked for.
  void finish();

 private:
  void wrong_word(const TomlMember& member, const std::string& found, const std::vector<std::string>& words);

  const TomlNode& node_;
  const TomlNode::Table& members_;
  std::string where_;
  Complaints& complaints_;
  std::optional<int> counter_;
  std::vector<std::string> asked_;
};

/// "'a', 'b' or 'c'".
[[nodiscard]] std::string join_words(const std::vector<std::string>& words);
/// The plain strings of `texts`.
[[nodiscard]] std::vector<std::string> plain(const std::vector<PlacedText>& texts);

template <class E>
E TableReader::word(std::string_view key, Words<E> words, E fallback) {
  const TomlMember* member = find(key);
  if (member == nullptr) return fallback;
  const auto found = string_in(member->value, key);
  if (!found) return fallback;
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == *found) return value;
    known.emplace_back(word);
  }
  wrong_word(*member, *found, known);
  return fallback;
}

}  // namespace lab
