// SPDX-License-Identifier: Apache-2.0
// The text of systemd's unit files as settings (systemd.syntax(7), systemd.unit(5); measured on 252): comments, lines
// that go on after a backslash, sections, keys that repeat, an empty value that forgets what was before. Pure; hostile
// bytes at worst give flaws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/unit_lint.h"

namespace vacate {

constexpr std::string_view kUnitBlanks = " \t\n\r";  ///< what systemd skips between words

struct UnitSetting {
  std::string section;  ///< "Service"
  std::string key;
  std::string value;  ///< without blanks at both ends, continued lines joined by a blank
  std::string file;
  std::uint32_t line = 0;  ///< where it begins
};

/// A line that systemd ignores, or a file that it does not load.
struct UnitFlaw {
  std::string file;
  std::uint32_t line = 0;
  std::string what;
};

class UnitSettings {
 public:
  /// Every setting of `sources` in their order: the unit's file first, then its drop-ins.
  [[nodiscard]] static UnitSettings parse(const std::vector<UnitSource>& sources);

  /// The one that counts where a key has one value; nothing if it is not there or was emptied last.
  [[nodiscard]] const UnitSetting* last(std::string_view section, std::string_view key) const noexcept;
  /// Those that count where a key adds up: all after the last empty one.
  [[nodiscard]] std::vector<const UnitSetting*> list(std::string_view section, std::string_view key) const;

  [[nodiscard]] const std::vector<UnitSetting>& all() const noexcept { return settings_; }
  [[nodiscard]] const std::vector<UnitFlaw>& flaws() const noexcept { return flaws_; }

 private:
  void add(const UnitSource& source);
  void take_line(const UnitSource& source, std::string_view text, std::uint32_t line, std::string& section);

  std::vector<UnitSetting> settings_;
  std::vector<UnitFlaw> flaws_;
};

}  // namespace vacate
