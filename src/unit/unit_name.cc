// SPDX-License-Identifier: Apache-2.0
#include "unit/unit_name.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"

namespace vacate {
namespace {

constexpr std::string_view kSuffix = ".service";
constexpr std::size_t kLongestName = 255;
constexpr auto kOtherKinds = std::to_array<std::string_view>(
    {".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"});

bool is_of_a_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view(":-_.\\").find(c) != std::string_view::npos;
}

Error wrong(std::string_view word, std::string_view what) {
  return Error{ErrorCode::malformed, fmt::format("'{}' {}", printable(word, 64), what)};
}

/// "a-b-c" gives "a-b-" and "a-": what is left of each dash, the longest first.
std::vector<std::string> shortened(std::string_view prefix) {
  std::vector<std::string> all;
  while (prefix.ends_with('-')) prefix.remove_suffix(1);
  for (;;) {
    const auto dash = prefix.rfind('-');
    if (dash == std::string_view::npos || dash == 0) return all;
    prefix = prefix.substr(0, dash);
    all.push_back(std::string(prefix) + "-");
    while (prefix.ends_with('-')) prefix.remove_suffix(1);
  }
}

}  // namespace

std::string ServiceName::full() const {
  return fmt::format("{}{}{}{}", prefix, instance ? "@" : "", instance.value_or(""), kSuffix);
}

std::optional<std::string> ServiceName::template_name() const {
  if (!instance) return std::nullopt;
  return fmt::format("{}@{}", prefix, kSuffix);
}

Result<ServiceName> parse_service_name(std::string_view word) {
  for (const auto kind : kOtherKinds)
    if (word.ends_with(kind)) return wrong(word, "is no service; name a .service");
  if (word.ends_with(kSuffix)) word.remove_suffix(kSuffix.size());
  const auto at = word.find('@');
  const std::string_view prefix = word.substr(0, at);
  const std::string_view instance = at == std::string_view::npos ? std::string_view() : word.substr(at + 1);
  const bool fits = std::all_of(prefix.begin(), prefix.end(), is_of_a_name) &&
                    std::all_of(instance.begin(), instance.end(), [](char c) { return is_of_a_name(c) || c == '@'; }) &&
                    word.size() + kSuffix.size() <= kLongestName && prefix != "." && prefix != "..";
  if (prefix.empty() || !fits)
    return wrong(word, "is no name of a service; it has letters, digits and :-_.\\ with @ before an instance");
  ServiceName name;
  name.prefix = prefix;
  if (at != std::string_view::npos) name.instance = std::string(instance);
  return name;
}

std::vector<std::string> dropin_folders(const ServiceName& name) {
  std::vector<std::string> folders{name.full() + ".d"};
  const auto prefixes = shortened(name.prefix);
  const auto whole = name.template_name();
  const bool is_instance = whole && !name.is_template();
  if (is_instance) folders.push_back(*whole + ".d");
  for (const auto& prefix : prefixes) folders.push_back(fmt::format("{}{}.d", prefix, kSuffix));
  if (!is_instance) return folders;
  for (const auto& prefix : prefixes) {
    folders.push_back(fmt::format("{}@{}{}.d", prefix, *name.instance, kSuffix));
    folders.push_back(fmt::format("{}@{}.d", prefix, kSuffix));
  }
  return folders;
}

}  // namespace vacate
