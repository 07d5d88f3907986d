// SPDX-License-Identifier: Apache-2.0
// Runs a program under ptrace and spoils one of its system calls: lets it fail, or sends a signal just before or after
// it. What the program starts is followed too. Knows nothing of what the program is for.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace fault {

/// Which call of a run: the same one in the next run, as long as the program does the same.
struct CallKey {
  std::string process;   ///< "0" the program, "0.2" its third child, "0.2.0" the first child of that
  std::string call;      ///< "openat"
  unsigned ordinal = 0;  ///< among the calls of that name that this process made
  bool operator==(const CallKey&) const = default;
};

enum class Act { fail, fail_from, signal_before, signal_after, signal_twice, stop };

/// fail_from: that call fails, and from then on every one of its name, whoever makes it.
struct Fault {
  CallKey at;
  Act act = Act::fail;
  int value = 0;  ///< an errno for the first two, a signal for the others (none for `stop`)
};

struct Call {
  CallKey key;
  std::string thread_name;  ///< comm of the process when it made the call
  std::string object;       ///< the path or what the descriptor leads to, numbers as N
};

struct Trace {
  int status = -1;  ///< of the program, as waitpid gives it
  bool reached = false;
  bool overdue = false;           ///< it did not end in time and was killed
  std::vector<std::string> left;  ///< names of children that outlived it by more than kPatience
  std::vector<Call> calls;        ///< where recording was asked for
};

/// How long a child may outlive the program.
constexpr std::chrono::milliseconds kPatience{3000};

enum class Record { nothing, calls };

/// Runs `argv` until it and all it started have ended.
[[nodiscard]] Trace run_traced(const std::vector<std::string>& argv, const std::optional<Fault>& fault, Record record,
                               std::chrono::milliseconds limit);

/// As words of a command line, and back. Nothing: not understood.
[[nodiscard]] std::string to_text(const Fault& fault);
[[nodiscard]] std::optional<Fault> parse_fault(const std::string& text);

}  // namespace fault
