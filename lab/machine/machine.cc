// SPDX-License-Identifier: Apache-2.0
// Questions about actors and signals to them, by pidfd wherever one process is meant.
#include "lab/machine/machine.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "lab/driver/driver.h"
#include "lab/machine/files.h"
#include "lab/machine/machine_impl.h"
#include "lab/machine/root.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr auto kRecordLimit = std::chrono::seconds(1);

std::string describe_end(int status) {
  if (WIFEXITED(status)) return "exit";
  const std::string_view word = signal_word(WTERMSIG(status));
  return word.empty() ? fmt::format("{}", WTERMSIG(status)) : std::string(word);
}

bool is_recorded(int sig) { return sig != SIGCHLD && sig != SIGKILL && sig != SIGSTOP; }

/// Signals sent and not yet handled: the process is stopped, or has not had its turn.
void add_pending(pid_t pid, std::map<int, unsigned>& signals) {
  const std::string text = read_file(fmt::format("/proc/{}/status", pid));
  std::uint64_t pending = 0;
  for (const std::string_view line : vacate::split(text, '\n')) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    pending |= vacate::parse_hex(vacate::trim(line.substr(7))).value_or(0);
  }
  for (int sig = 1; sig < static_cast<int>(kSignals); ++sig) {
    if ((pending >> static_cast<unsigned>(sig - 1) & 1U) != 0 && is_recorded(sig)) ++signals[sig];
  }
}

unsigned handled(const Slot& slot, int sig) { return slot.received.at(static_cast<std::size_t>(sig)).load(); }

}  // namespace

ProcessStat read_stat(pid_t pid) {
  const std::string text = read_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t paren = text.rfind(')');
  if (pid <= 0 || paren == std::string::npos) return {};
  const auto words = vacate::split(vacate::trim(std::string_view(text).substr(paren + 1)), ' ');
  ProcessStat stat;
  stat.state = words.front().empty() ? '\0' : words.front().front();
  stat.exit_status = static_cast<int>(vacate::parse_unsigned(words.back()).value_or(0));
  return stat;
}

Result<std::uint32_t> Machine::Impl::find(std::string_view name) const {
  std::optional<std::uint32_t> ordered;  // and not forked yet, or never: whoever had the name before is the newest
  for (std::uint32_t i = board.count(); i-- > 1;) {
    const Slot& slot = board.slot(i);
    if (slot.kind.load() == SlotKind::command || name != slot.name) continue;
    if (slot.phase.load() >= Phase::forked || slot.pid.load() > 0) return i;
    if (!ordered) ordered = i;
  }
  if (ordered) return *ordered;
  return Error{ErrorCode::malformed, fmt::format("no actor is called '{}'", name)};
}

int Machine::Impl::pidfd(std::uint32_t index) const {
  const auto known = pidfds.find(index);
  if (known != pidfds.end()) return known->second.get();
  const Slot& slot = board.slot(index);
  find_number(index);
  if (slot.pid.load() <= 0 || slot.status.load() != kNoStatus) return -1;
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, slot.pid.load(), 0)));
  // Reaped in between, the number may be another's: the status is written before the reaping.
  if (!fd || slot.status.load() != kNoStatus) return -1;
  return pidfds.emplace(index, std::move(fd)).first->second.get();
}

bool Machine::Impl::exited(std::uint32_t index) const {
  const int fd = pidfd(index);
  if (fd < 0) return board.slot(index).status.load() != kNoStatus;
  pollfd end{fd, POLLIN, 0};
  return poll(&end, 1, 0) == 1;
}

Machine::Machine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Machine::~Machine() = default;

Result<std::vector<std::string>> Machine::expand(std::string_view pattern) const {
  std::vector<std::string> names;
  for (std::uint32_t i = 1; i < impl_->board.count(); ++i) {
    const Slot& slot = impl_->board.slot(i);
    if (slot.kind.load() == SlotKind::command || !glob_matches(pattern, slot.name)) continue;
    // The machine's shell is no actor of the case: only its own name means it.
    if (std::string_view(slot.name) == kShell && pattern != kShell) continue;
    if (std::find(names.begin(), names.end(), slot.name) != names.end()) continue;  // it was started again
    names.emplace_back(slot.name);
  }
  if (names.empty()) return Error{ErrorCode::malformed, fmt::format("no actor matches '{}'", pattern)};
  return names;
}

Result<ActorStatus> Machine::actor(std::string_view name) const {
  auto found = impl_->find(name);
  if (!found) return found.error();
  const Slot& slot = impl_->board.slot(*found);
  ActorStatus status;
  status.name = slot.name;
  status.exited = impl_->exited(*found);
  status.pid = slot.pid.load();
  if (status.exited) {
    // Its status is on the board once it has been reaped; a zombie has it in /proc.
    const ProcessStat stat = read_stat(status.pid);
    const int recorded = slot.status.load();
    // The kernel itself ends and reaps what is left when the first process of a namespace ends.
    const bool with_namespace = recorded == kNoStatus && stat.state == 0 && slot.ns.load() != kNoSlot;
    const int end = recorded != kNoStatus ? recorded : with_namespace ? SIGKILL : stat.exit_status;
    status.ended_by = describe_end(slot.died_by.load() != 0 ? slot.died_by.load() : end);
  } else {
    add_pending(status.pid, status.signals);
  }
  for (int sig = 1; sig < static_cast<int>(kSignals); ++sig) {
    if (handled(slot, sig) > 0) status.signals[sig] += handled(slot, sig);
  }
  for (const auto& [sig, times] : status.signals) status.signal_count += times;
  return status;
}

Result<void> Machine::wait_exit(std::string_view name, Deadline deadline) const {
  auto found = impl_->find(name);
  if (!found) return found.error();
  while (!impl_->exited(*found)) {
    if (deadline.passed()) return Error{ErrorCode::timed_out, fmt::format("'{}' has not exited", name)};
    pollfd end{impl_->pidfd(*found), POLLIN, 0};
    poll(&end, 1, deadline.poll_timeout_ms());
  }
  return {};
}

namespace {

/// Until the handler has counted the signal, or it will not for now: the process is stopped or over.
void wait_recorded(const Board& board, const Slot& slot, int sig, unsigned before) {
  if (!is_recorded(sig)) return;
  const Deadline deadline = Deadline::after(kRecordLimit);
  for (;;) {
    const std::uint32_t seen = board.region().event.load();
    if (handled(slot, sig) > before || slot.status.load() != kNoStatus || deadline.passed()) return;
    const char state = read_stat(slot.pid.load()).state;
    if (state == 0 || state == 'T' || state == 't') return;
    futex_wait(board.region().event, seen, deadline);
  }
}

}  // namespace

Result<void> Machine::send_signal(std::string_view target, int sig) {
  if (target.starts_with("group:")) {
    auto leader = impl_->find(target.substr(6));
    if (!leader) return leader.error();
    const std::int32_t group =
        impl_->board.slot(*leader).group.load();  // as the machine numbers it: start() sees to it
    std::vector<std::pair<const Slot*, unsigned>> members;
    for (std::uint32_t i = 1; i < impl_->board.count(); ++i) {
      const Slot& slot = impl_->board.slot(i);
      if (slot.group.load() == group && !impl_->exited(i)) members.emplace_back(&slot, handled(slot, sig));
    }
    if (group <= 0 || kill(-group, sig) != 0) return system_error(fmt::format("signal to {}", target));
    for (const auto& [slot, before] : members) wait_recorded(impl_->board, *slot, sig, before);
    return {};
  }
  auto names = expand(target);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    auto found = impl_->find(name);
    if (!found) return found.error();
    const Slot& slot = impl_->board.slot(*found);
    const unsigned before = handled(slot, sig);
    if (impl_->exited(*found)) return Error{ErrorCode::gone, fmt::format("'{}' has exited before the signal", name)};
    if (syscall(SYS_pidfd_send_signal, impl_->pidfd(*found), sig, nullptr, 0) != 0)
      return system_error("signal to " + name);
    wait_recorded(impl_->board, slot, sig, before);
  }
  return {};
}

Result<std::vector<std::uint64_t>> Machine::used_mib() const {
  auto state = read_driver_state(kDriverDir);
  if (!state) return state.error();
  std::vector<std::uint64_t> used;
  for (const GpuUsage& gpu : state->gpus) used.push_back(gpu.used.mib());
  return used;
}

}  // namespace lab
