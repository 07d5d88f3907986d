// SPDX-License-Identifier: Apache-2.0
// What `vacate unit lint` found in a systemd unit, and the drop-in that `vacate unit dropin` makes: plain
// values for text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/exit_code.h"

namespace vacate {

/// One file of a unit, as it was read.
struct UnitSource {
  std::string path;
  std::string text;
};

/// `hint`: works, and would work better otherwise; changes no exit code.
enum class UnitSeverity { error, warning, hint };
[[nodiscard]] std::string_view describe(UnitSeverity severity) noexcept;

struct UnitFinding {
  UnitSeverity severity = UnitSeverity::error;
  std::string code;        ///< stable for scripts: "undefined-variable"
  std::string file;        ///< hostile, as all texts here
  std::uint32_t line = 0;  ///< from 1, where the setting begins; 0: the unit says nothing about it
  std::string key;         ///< "ExecStartPre"; empty: none
  std::string reason;      ///< what systemd makes of it, and what that does to a service that uses GPUs
  std::string fix;
};

struct UnitLint {
  std::string unit;                ///< "llm.service"
  std::vector<std::string> files;  ///< in the order in which systemd reads them, later ones win
  std::string masked_by;           ///< the file that makes systemd refuse to start it; empty: none
  std::vector<UnitFinding> findings;
  std::vector<std::string> unread;  ///< files that the unit names and that could not be read, with the reason
};

/// What was made for a unit and where it is.
struct UnitDropin {
  std::string unit;
  std::string path;  ///< where it belongs
  std::string text;
  bool installed = false;
  bool reloaded = false;           ///< the manager has read it
  std::vector<std::string> notes;  ///< a line each: what was not done or not known, and what to do
};

/// 1 with an error or a warning; hints alone are 0.
[[nodiscard]] ExitCode exit_code_of(const UnitLint& lint) noexcept;

}  // namespace vacate
