// SPDX-License-Identifier: Apache-2.0
// A TOML document as a small tree of values that know where they stand, members in the order of the file. It exists so
// that only document.cc has to include toml++, and so that every message about a case has a line and a column. It knows
// nothing about cases.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lab/case/case.h"
#include "lab/case/complaints.h"

namespace lab {

struct TomlMember;

/// A date or time: valid TOML that no case uses.
struct Temporal {};

struct TomlNode {
  using Array = std::vector<TomlNode>;
  using Table = std::vector<TomlMember>;
  std::variant<bool, std::int64_t, double, std::string, Temporal, Array, Table> value;
  Position at;

  template <class T>
  [[nodiscard]] const T* as() const noexcept {
    return std::get_if<T>(&value);
  }
  /// "a boolean", "an integer", "a string", ...: for messages.
  [[nodiscard]] std::string_view kind() const noexcept;
};

struct TomlMember {
  std::string key;
  Position at;  ///< of the key
  TomlNode value;
};

/// The root table of `text`, or an empty one and a complaint with the parser's reason.
[[nodiscard]] TomlNode parse_document(std::string_view text, Complaints& complaints);

}  // namespace lab
