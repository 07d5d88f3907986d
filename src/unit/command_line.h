// SPDX-License-Identifier: Apache-2.0
// The command lines of ExecStart= and its kin as systemd takes them apart (systemd.service(5), "Command lines";
// measured on 252). No shell is in it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vacate {

/// One command. Words are without their quotes and escapes; variables and specifiers are still in them.
struct UnitCommand {
  bool ignores_failure = false;    ///< `-`
  bool keeps_variables = false;    ///< `:`: variables are not replaced
  bool has_all_rights = false;     ///< `+`: root, whatever User= and the sandbox say
  bool is_of_root = false;         ///< `!`, `!!`: root in the sandbox
  std::vector<std::string> words;  ///< the program first; the name of `@` is left out

  /// What follows the last slash of the program; empty if there is none.
  [[nodiscard]] std::string_view program() const noexcept;
};

struct UnitCommands {
  std::vector<UnitCommand> commands;  ///< those before the flaw, if there is one
  std::optional<std::string> flaw;    ///< why systemd refuses the line
};

/// A value of ExecStart= or its kin; " ; " separates commands.
[[nodiscard]] UnitCommands parse_command_line(std::string_view value);

/// Words of a value that is a list, as Environment= and EnvironmentFile= have it: quotes and escapes as above.
[[nodiscard]] std::vector<std::string> parse_quoted_words(std::string_view value);

}  // namespace vacate
