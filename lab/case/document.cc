// SPDX-License-Identifier: Apache-2.0
#include "lab/case/document.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <array>

namespace lab {
namespace {

Position position(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

TomlNode convert(const toml::node& node);

TomlNode::Array convert_array(const toml::array& array) {
  TomlNode::Array items;
  items.reserve(array.size());
  for (const auto& item : array) items.push_back(convert(item));
  return items;
}

/// toml++ sorts tables by key; a reader of messages expects the order of the file.
TomlNode::Table convert_table(const toml::table& table) {
  TomlNode::Table members;
  members.reserve(table.size());
  for (const auto& [key, value] : table) {
    members.push_back({std::string(key.str()), position(key.source()), convert(value)});
  }
  std::stable_sort(members.begin(), members.end(), [](const TomlMember& a, const TomlMember& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  return members;
}

TomlNode convert(const toml::node& node) {
  TomlNode result{false, position(node.source())};
  if (const auto* table = node.as_table()) {
    result.value = convert_table(*table);
  } else if (const auto* array = node.as_array()) {
    result.value = convert_array(*array);
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else if (const auto* integer = node.as_integer()) {
    result.value = std::int64_t{integer->get()};
  } else if (const auto* number = node.as_floating_point()) {
    result.value = number->get();
  } else if (const auto* boolean = node.as_boolean()) {
    result.value = boolean->get();
  } else {
    result.value = Temporal{};
  }
  return result;
}

}  // namespace

std::string_view TomlNode::kind() const noexcept {
  constexpr std::array<std::string_view, 7> kKinds{"a boolean",      "an integer", "a number", "a string",
                                                   "a date or time", "an array",   "a table"};
  return kKinds.at(value.index());
}

TomlNode parse_document(std::string_view text, Complaints& complaints) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    complaints.add(position(error.source()), std::string(error.description()));
    return {TomlNode::Table{}, {}};
  }
  return {convert_table(parsed.table()), {1, 1}};
}

}  // namespace lab
