// SPDX-License-Identifier: Apache-2.0
// Process numbers across pid namespaces: which number in the machine belongs to a process of a child namespace, and
// when a number is free to be given again.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "lab/machine/files.h"
#include "lab/machine/machine_impl.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;

constexpr auto kLook = std::chrono::milliseconds(1);

std::string namespace_of(const std::string& process) {
  std::error_code gone;
  return std::filesystem::read_symlink(process + "/ns/pid", gone).string();
}

/// The number that the process behind this /proc/PID/status has in its innermost namespace (facts.md 3.6); 0: unknown.
pid_t innermost_number(const std::string& status) {
  for (const std::string_view line : vacate::split(status, '\n')) {
    if (!line.starts_with("NSpid:")) continue;
    const auto numbers = vacate::split(line, '\t');
    return static_cast<pid_t>(vacate::parse_unsigned(vacate::trim(numbers.back())).value_or(0));
  }
  return 0;
}

}  // namespace

void Machine::Impl::find_number(std::uint32_t index) const {
  Slot& slot = board.slot(index);
  const pid_t inner = slot.own_pid.load();
  if (slot.pid.load() != 0 || inner == 0 || slot.ns.load() == kNoSlot) return;
  const std::string wanted = namespace_of(fmt::format("/proc/{}", board.slot(slot.ns.load()).pid.load()));
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failure)) {
    const auto number = vacate::parse_unsigned(entry.path().filename().string());
    if (!number || wanted.empty()) continue;
    const std::string process = entry.path().string();
    if (innermost_number(read_file(process + "/status")) != inner || namespace_of(process) != wanted) continue;
    slot.pid.store(static_cast<pid_t>(*number));
    board.nudge(index);
    return;
  }
}

Result<std::uint32_t> Machine::Impl::first_in(const std::string& pidns) const {
  const auto known = namespaces.find(pidns);
  if (known == namespaces.end() || exited(known->second))
    return Error{ErrorCode::malformed, fmt::format("there is no pid namespace '{}' with a process in it", pidns)};
  return known->second;
}

Result<void> Machine::Impl::reserve_number(std::uint32_t index, std::uint32_t of, Deadline deadline) {
  Slot& slot = board.slot(index);
  const pid_t number = board.slot(of).pid.load();
  slot.wanted_pid.store(number);
  if (number <= 0) return Error{ErrorCode::malformed, fmt::format("'{}' has never had a number", board.slot(of).name)};
  // The number of the machine means nothing in a child namespace: there it is free unless chance has it.
  if (slot.ns.load() != kNoSlot) return {};
  const auto in_use = [number] { return kill(number, 0) == 0 || kill(-number, 0) == 0; };
  while (in_use()) {
    if (deadline.passed()) {
      return Error{ErrorCode::busy, fmt::format("{} is still the number of a process or a group", number)};
    }
    const std::uint32_t seen = board.region().event.load();
    if (in_use()) futex_wait(board.region().event, seen, Deadline::earlier(deadline, Deadline::after(kLook)));
  }
  return {};
}

}  // namespace lab
