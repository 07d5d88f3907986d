// SPDX-License-Identifier: Apache-2.0
// What `vacate wait` is asked, what it says of each GPU, and the verdict of the whole wait. Plain values.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/reading.h"
#include "model/exit_code.h"
#include "model/holder.h"
#include "model/policy.h"

namespace vacate {

enum class ConditionKind {
  idle,        ///< nobody with a context or memory but protected processes; memory at the baseline beside theirs
  used_below,  ///< less memory in use than the limit
  free,        ///< at least the limit is free
};
[[nodiscard]] std::string_view describe(ConditionKind kind) noexcept;

/// An amount of memory, or a share of what the GPU has.
struct MemoryLimit {
  Bytes amount;
  std::optional<unsigned> percent = {};  ///< 0 to 100; then `amount` means nothing
  bool operator==(const MemoryLimit&) const = default;
};

struct WaitCondition {
  ConditionKind kind = ConditionKind::idle;
  MemoryLimit limit = {};  ///< not of idle
  bool operator==(const WaitCondition&) const = default;
};

/// Utilisation is not asked about: it is no evidence of anything (facts.md 1.7, report BR-086).
struct WaitRequest {
  WaitCondition condition;
  Selection selection;                         ///< whoever is outside of it does not count, nor does their memory
  std::vector<ProcessSelector> ignored_pids;   ///< nor do these
  std::vector<std::string> ignored_units;      ///< nor those in these, as Selection has them
  std::chrono::milliseconds hold{1000};        ///< the condition has to hold for so long
  std::chrono::milliseconds timeout{300'000};  ///< 0: for ever
};

enum class GateState {
  free,            ///< the condition holds
  in_use,          ///< somebody or something is in the way
  releasing,       ///< nobody is left, the memory is not back yet
  held_by_nobody,  ///< memory of no process, which did not fall for 10 s: waiting cannot help
  cannot_tell,     ///< no figure, or a process out of sight could have the memory
  locked,          ///< another vacate has the lock of this GPU
};
/// "free", "in-use", ...: the word in JSON.
[[nodiscard]] std::string_view describe(GateState state) noexcept;

/// One selected GPU at one moment.
struct GpuGate {
  unsigned index = 0;
  std::string uuid;
  GateState state = GateState::cannot_tell;
  Reading<Bytes> total, used, free;
  Reading<Bytes> limit;               ///< idle, used_below: what may be in use; free: what has to be free
  std::vector<pid_t> in_the_way;      ///< holders that keep the condition from holding, sorted
  std::vector<pid_t> charged_unseen;  ///< whom the driver charges here and no holder answers for, sorted
  std::string detail;                 ///< a sentence without figures that change, where the state does not say it all
  bool operator==(const GpuGate&) const = default;
};

enum class WaitVerdict { free, timeout, cannot_tell };
[[nodiscard]] std::string_view describe(WaitVerdict verdict) noexcept;

/// At the deadline: a timeout where anything is known to be in the way of any GPU, or all are free and were not for
/// long enough; cannot_tell where nothing is and the state of some GPU is not known (cli.md, order of the exit codes:
/// 1 before 4; memory of nobody is a deadline that passed, 1 before 5). No gates at all: cannot_tell.
[[nodiscard]] WaitVerdict verdict_at_deadline(const std::vector<GpuGate>& gates) noexcept;
[[nodiscard]] ExitCode exit_code_of(WaitVerdict verdict) noexcept;

}  // namespace vacate
