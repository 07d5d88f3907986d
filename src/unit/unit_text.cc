// SPDX-License-Identifier: Apache-2.0
#include "unit/unit_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace vacate {
namespace {

constexpr std::size_t kMostFlaws = 50;

std::string_view without_leading_blanks(std::string_view text) noexcept {
  const auto at = text.find_first_not_of(kUnitBlanks);
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

/// Does it go on in the next line? A backslash that is itself escaped does not count.
bool goes_on(std::string_view text) noexcept {
  bool escaped = false;
  for (const char c : text) escaped = !escaped && c == '\\';
  return escaped;
}

}  // namespace

UnitSettings UnitSettings::parse(const std::vector<UnitSource>& sources) {
  UnitSettings settings;
  for (const auto& source : sources) settings.add(source);
  return settings;
}

void UnitSettings::add(const UnitSource& source) {
  std::string section;
  std::string joined;
  std::uint32_t number = 0;
  std::uint32_t first = 0;
  std::string_view text = source.text;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (const auto raw : split(text, '\n')) {
    ++number;
    const auto line = without_leading_blanks(raw);
    // A comment between two lines of one setting is no end of it.
    if (!line.empty() && (line.front() == '#' || line.front() == ';')) continue;
    if (joined.empty()) first = number;
    joined += line;
    if (goes_on(joined)) {
      joined.back() = ' ';
      continue;
    }
    take_line(source, joined, first, section);
    joined.clear();
  }
  take_line(source, joined, first, section);
}

void UnitSettings::take_line(const UnitSource& source, std::string_view text, std::uint32_t line,
                             std::string& section) {
  text = trim(text);
  if (text.empty()) return;
  const auto flaw = [&](std::string what) {
    if (flaws_.size() < kMostFlaws) flaws_.push_back({source.path, line, std::move(what)});
  };
  if (text.find('\0') != std::string_view::npos) return flaw("a NUL byte stands in it: this is no text");
  if (text.front() == '[') {
    if (!text.ends_with(']')) return flaw("a section begins with [ and does not end with ]");
    section = text.substr(1, text.size() - 2);
    return;
  }
  const auto equals = text.find('=');
  if (equals == std::string_view::npos)
    return flaw(fmt::format("'{}' has no '=': systemd ignores the line", printable(text, 40)));
  if (equals == 0) return flaw("nothing stands before the '=': systemd ignores the line");
  const auto key = trim(text.substr(0, equals));
  if (section.empty())
    return flaw(fmt::format("{}= stands before any [Section]: systemd ignores it", printable(key, 40)));
  settings_.push_back({section, std::string(key), std::string(trim(text.substr(equals + 1))), source.path, line});
}

const UnitSetting* UnitSettings::last(std::string_view section, std::string_view key) const noexcept {
  const auto found = std::find_if(settings_.rbegin(), settings_.rend(), [&](const UnitSetting& setting) {
    return setting.section == section && setting.key == key;
  });
  return found == settings_.rend() || found->value.empty() ? nullptr : &*found;
}

std::vector<const UnitSetting*> UnitSettings::list(std::string_view section, std::string_view key) const {
  std::vector<const UnitSetting*> found;
  for (const auto& setting : settings_) {
    if (setting.section != section || setting.key != key) continue;
    if (setting.value.empty())
      found.clear();
    else
      found.push_back(&setting);
  }
  return found;
}

}  // namespace vacate
