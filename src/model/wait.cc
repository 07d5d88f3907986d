// SPDX-License-Identifier: Apache-2.0
#include "model/wait.h"

#include <algorithm>

namespace vacate {

std::string_view describe(ConditionKind kind) noexcept {
  switch (kind) {
    case ConditionKind::idle:
      return "idle";
    case ConditionKind::used_below:
      return "used-below";
    case ConditionKind::free:
      return "free";
  }
  return "idle";
}

std::string_view describe(GateState state) noexcept {
  switch (state) {
    case GateState::free:
      return "free";
    case GateState::in_use:
      return "in-use";
    case GateState::releasing:
      return "releasing";
    case GateState::held_by_nobody:
      return "held-by-nobody";
    case GateState::cannot_tell:
      return "cannot-tell";
    case GateState::locked:
      return "locked";
  }
  return "cannot-tell";
}

std::string_view describe(WaitVerdict verdict) noexcept {
  switch (verdict) {
    case WaitVerdict::free:
      return "free";
    case WaitVerdict::timeout:
      return "timeout";
    case WaitVerdict::cannot_tell:
      return "cannot-tell";
  }
  return "cannot-tell";
}

WaitVerdict verdict_at_deadline(const std::vector<GpuGate>& gates) noexcept {
  const auto is_known = [](const GpuGate& gate) {
    return gate.state != GateState::free && gate.state != GateState::cannot_tell;
  };
  const auto is_unknown = [](const GpuGate& gate) { return gate.state == GateState::cannot_tell; };
  if (std::any_of(gates.begin(), gates.end(), is_known)) return WaitVerdict::timeout;
  const bool blind = gates.empty() || std::any_of(gates.begin(), gates.end(), is_unknown);
  return blind ? WaitVerdict::cannot_tell : WaitVerdict::timeout;
}

ExitCode exit_code_of(WaitVerdict verdict) noexcept {
  switch (verdict) {
    case WaitVerdict::free:
      return ExitCode::done;
    case WaitVerdict::timeout:
      return ExitCode::holders_remain;
    case WaitVerdict::cannot_tell:
      return ExitCode::cannot_tell;
  }
  return ExitCode::cannot_tell;
}

}  // namespace vacate
