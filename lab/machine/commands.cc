// SPDX-License-Identifier: Apache-2.0
// Commands of steps: forked by the machine's shell or by an actor, their output collected from files or a terminal. The
// command starts only when its pidfd is open, so that nothing about it is guessed from its number.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>

#include "lab/machine/files.h"
#include "lab/machine/machine_impl.h"
#include "lab/machine/plan.h"
#include "lab/machine/root.h"
#include "lab/machine/terminal.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr auto kForkLimit = std::chrono::seconds(10);
constexpr auto kTailLimit = std::chrono::milliseconds(200);
constexpr char kEndOfFile = 4;  // what a terminal in its usual mode takes for the end of input

Result<User> user_named(const std::string& name) {
  for (const User user : {User::root, User::alice, User::bob}) {
    if (word_of(user) == name) return user;
  }
  return Error{ErrorCode::malformed, fmt::format("no user is called '{}'", name)};
}

CommandPlan plan_command(const CommandSpec& spec, User user) {
  const Account account = account_of(user);
  CommandPlan plan;
  plan.argv = spec.argv;
  plan.uid = account.uid;
  plan.gid = account.gid;
  plan.job = spec.child_of == kShell;
  // A command of an actor has that actor's environment.
  if (plan.job || user != User::root) plan.env = base_environment(user);
  if (spec.tty) plan.env.emplace_back("TERM=xterm-256color");
  return plan;
}

/// The files of a command that has no terminal. Open to all: who it will run as opens them.
Result<void> make_files(const std::string& base, const std::string& input, CommandPlan& plan) {
  plan.in = base + ".in";
  plan.out = base + ".out";
  plan.err = base + ".err";
  for (const auto& [path, text] : {std::pair{plan.in, input}, {plan.out, ""}, {plan.err, ""}}) {
    if (auto written = write_file(path, text, 0666); !written) return written;
  }
  return {};
}

Result<UniqueFd> make_terminal(CommandPlan& plan) {
  UniqueFd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 64> name{};
  if (!master || grantpt(master.get()) != 0 || unlockpt(master.get()) != 0 ||
      ptsname_r(master.get(), name.data(), name.size()) != 0) {
    return system_error("terminal");
  }
  plan.tty = name.data();
  (void)!chown(plan.tty.c_str(), plan.uid, plan.gid);
  const winsize size{24, 80, 0, 0};
  ioctl(master.get(), TIOCSWINSZ, &size);
  return master;
}

/// Takes what the terminal has; false when there will be no more.
bool drain(int terminal, std::string& out) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = read(terminal, buffer.data(), buffer.size());
    if (n > 0) {
      out.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else {
      return n < 0 && errno == EAGAIN;
    }
  }
}

/// Reads until the command has ended and its terminal is empty. False: the deadline came first.
bool read_terminal(RunningCommand& command, Deadline deadline) {
  std::array<pollfd, 2> events{{{command.terminal.get(), POLLIN, 0}, {command.pidfd.get(), POLLIN, 0}}};
  bool ended = false;
  while (!ended) {
    if (deadline.passed()) return false;
    poll(events.data(), events.size(), deadline.poll_timeout_ms());
    ended = (events[1].revents & POLLIN) != 0;
    if (!drain(command.terminal.get(), command.out)) events[0].fd = -1;
  }
  // The last words pass through a kernel worker: until the hang-up, or a while if others keep the terminal open.
  const Deadline tail = Deadline::after(kTailLimit);
  while (events[0].fd >= 0 && !tail.passed() && drain(command.terminal.get(), command.out)) {
    poll(events.data(), 1, tail.poll_timeout_ms());
  }
  return true;
}

bool wait_end(const RunningCommand& command, Deadline deadline) {
  pollfd end{command.pidfd.get(), POLLIN, 0};
  while (poll(&end, 1, deadline.poll_timeout_ms()) != 1) {
    if (deadline.passed()) return false;
  }
  return true;
}

void kill_command(const RunningCommand& command, pid_t pid) {
  // Its group is its own and still has its number: the leader is not reaped before its status is on the board.
  if (command.job) kill(-pid, SIGKILL);
  syscall(SYS_pidfd_send_signal, command.pidfd.get(), SIGKILL, nullptr, 0);
}

}  // namespace

Result<int> Machine::start_command(const CommandSpec& spec) {
  if (spec.argv.empty()) return Error{ErrorCode::malformed, "a command without words"};
  auto parent = impl_->find(spec.child_of);
  if (!parent) return parent.error();
  if (impl_->exited(*parent))
    return Error{ErrorCode::gone, fmt::format("'{}' has exited and starts nothing", spec.child_of)};
  auto user = user_named(spec.user);
  if (!user) return user.error();
  std::uint32_t ns = impl_->board.slot(*parent).ns.load();
  if (!spec.in_pidns.empty()) {
    auto first = impl_->first_in(spec.in_pidns);
    if (!first) return first.error();
    ns = *first;
  }
  const int id = impl_->next_command++;
  RunningCommand command;
  CommandPlan plan = plan_command(spec, *user);
  command.job = plan.job;
  command.files = fmt::format("{}/{}", kIoDir, id);
  if (spec.tty) {
    auto terminal = make_terminal(plan);
    if (!terminal) return terminal.error();
    command.terminal = std::move(*terminal);
  } else if (auto made = make_files(command.files, spec.stdin_text, plan); !made) {
    return made.error();
  }
  Packer packer;
  packer(plan);
  {
    const std::lock_guard lock(impl_->orders);
    command.slot = impl_->board.add(spec.argv.front(), SlotKind::command, *parent);
    if (command.slot == kNoSlot) return Error{ErrorCode::refused, "too many processes for one machine"};
    impl_->board.slot(command.slot).ns.store(ns);
    if (auto written = impl_->board.write_plan(command.slot, packer.bytes()); !written) return written.error();
  }
  impl_->request(command.slot);
  if (auto up = impl_->await(command.slot, Phase::forked, Deadline::after(kForkLimit)); !up) return up.error();
  Slot& slot = impl_->board.slot(command.slot);
  command.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, slot.pid.load(), 0)));
  if (!command.pidfd) return system_error("pidfd of a command");
  if (spec.tty && !spec.stdin_text.empty()) {
    const std::string typed = spec.stdin_text + kEndOfFile;
    (void)!write(command.terminal.get(), typed.data(), typed.size());
  }
  command.started = std::chrono::steady_clock::now();
  slot.go.store(1);
  impl_->board.nudge(command.slot);
  impl_->commands.emplace(id, std::move(command));
  return id;
}

Result<CommandResult> Machine::finish_command(int id, Deadline deadline) {
  const auto entry = impl_->commands.find(id);
  if (entry == impl_->commands.end()) return Error{ErrorCode::malformed, "no such command is running"};
  RunningCommand command = std::move(entry->second);
  impl_->commands.erase(entry);
  const Slot& slot = impl_->board.slot(command.slot);
  CommandResult result;
  const auto over = [&](Deadline until) {
    return command.terminal ? read_terminal(command, until) : wait_end(command, until);
  };
  if (!over(deadline)) {
    result.timed_out = true;
    kill_command(command, slot.pid.load());
    if (!over(Deadline::after(kForkLimit))) return Error{ErrorCode::timed_out, "a command outlives SIGKILL"};
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - command.started).count();
  const Deadline reaped = Deadline::after(kForkLimit);
  while (slot.status.load() == kNoStatus && !reaped.passed()) {
    const std::uint32_t seen = impl_->board.region().event.load();
    if (slot.status.load() == kNoStatus) futex_wait(impl_->board.region().event, seen, reaped);
  }
  const int status = slot.status.load();
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  result.exit_code = result.signal != 0 ? 128 + result.signal : WEXITSTATUS(status);
  result.out = command.terminal ? std::move(command.out) : read_file(command.files + ".out");
  if (!command.terminal) result.err = read_file(command.files + ".err");
  for (const char* part : {".in", ".out", ".err"}) unlink((command.files + part).c_str());
  return result;
}

Result<CommandResult> Machine::run(const CommandSpec& spec, Deadline deadline) {
  auto id = start_command(spec);
  if (!id) return id.error();
  return finish_command(*id, deadline);
}

Result<int> Machine::shell(std::vector<std::string> argv) {
  CommandSpec spec;
  spec.argv = std::move(argv);
  spec.tty = true;
  auto id = start_command(spec);
  if (!id) return id.error();
  const RunningCommand& command = impl_->commands.at(*id);
  relay_terminal(command.terminal.get(), command.pidfd.get());
  auto result = finish_command(*id, Deadline::after(kForkLimit));
  if (!result) return result.error();
  return result->exit_code;
}

}  // namespace lab
