// SPDX-License-Identifier: Apache-2.0
// See spawn.h. Between fork and exec every signal is blocked, so that none is lost or charged to the parent: the
// program that follows unblocks them when its handlers stand.
#include "lab/actor/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "lab/actor/dumping.h"
#include "lab/actor/signals.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

/// For what happens in the child: success or the end of it, with the reason on the board.
class Child {
 public:
  Child(const Board& board, std::uint32_t slot) : board_(board), slot_(slot) {}
  [[noreturn]] void fail(const std::string& why) const { board_.fail(slot_, why); }
  void must(bool done, const std::string& what) const {
    if (!done) fail(system_error(what).message);
  }

 private:
  Board board_;
  std::uint32_t slot_;
};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

void become_user(const Child& child, std::uint32_t uid, std::uint32_t gid) {
  if (geteuid() == uid) return;
  if (geteuid() != 0) return;  // a command of somebody's process runs as that somebody
  const gid_t group = gid;
  child.must(setgroups(1, &group) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0, "setuid");
}

/// Leaves the mount namespace in which a parent's program is bound over another: its child is to see the real files.
void leave_private_mounts(const Child& child, const Parent& parent) {
  if (!parent.private_mounts || geteuid() != 0) return;
  const UniqueFd machine(open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC));
  child.must(machine && setns(machine.get(), CLONE_NEWNS) == 0, "back to the machine's mounts");
}

/// A first process of a pid namespace gets a /proc of that; whoever enters the namespace sees what the first sees.
void enter_mounts(const Child& child, const Board& board, std::uint32_t index, const std::string& options) {
  const Slot& slot = board.slot(index);
  const std::uint32_t first = slot.ns.load();
  if (first == board.slot(slot.parent.load()).ns.load()) return;
  if (first != index) {
    const std::string path = "/proc/" + std::to_string(board.slot(first).pid.load()) + "/ns/mnt";
    const UniqueFd theirs(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    child.must(theirs && setns(theirs.get(), CLONE_NEWNS) == 0, "entering " + path);
    return;
  }
  child.must(unshare(CLONE_NEWNS) == 0, "mount namespace");
  child.must(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
  const UniqueFd driver(open("/proc/driver", O_PATH | O_DIRECTORY | O_CLOEXEC));  // about to be mounted over
  const char* data = options.empty() ? nullptr : options.c_str();
  child.must(driver && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, data) == 0, "/proc of its own");
  const std::string shown = "/proc/self/fd/" + std::to_string(driver.get());
  child.must(mount(shown.c_str(), "/proc/driver", nullptr, MS_BIND, nullptr) == 0, "/proc/driver");
}

/// Puts the actor program over `exe` for this process and its descendants only; the rest of the machine has the real
/// file.
void bind_program(const Child& child, const std::string& exe) {
  child.must(unshare(CLONE_NEWNS) == 0, "mount namespace");
  child.must(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
  child.must(mount(kActorPath, exe.c_str(), nullptr, MS_BIND, nullptr) == 0, "binding the actor over " + exe);
}

void join_cgroup(const Child& child, const std::string& directory) {
  if (directory.empty()) return;
  const UniqueFd procs(open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  child.must(procs && write(procs.get(), "0", 1) == 1, "joining " + directory);
}

void set_relations(const Child& child, const ActorPlan& plan) {
  if (plan.new_session) {
    child.must(setsid() > 0, "setsid");
  } else if (plan.new_group) {
    child.must(setpgid(0, 0) == 0, "setpgid");
  }
  join_cgroup(child, plan.cgroup);
}

void redirect(const Child& child, const std::string& path, int flags, int to) {
  const UniqueFd file(open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0644));
  child.must(file && dup2(file.get(), to) == to, path);
}

/// Everything above 2 closes on exec except the board and the birth pipe, both at their known numbers.
void arrange_descriptors(const Child& child, std::uint32_t slot, UniqueFd& birth) {
  for (int fd = 0; fd < 3; ++fd) redirect(child, "/dev/null", O_RDWR, fd);
  UniqueFd board(open(kBoardPath, O_RDWR | O_CLOEXEC));
  child.must(board && lseek(board.get(), slot, SEEK_SET) == static_cast<off_t>(slot), kBoardPath);
  // Both first out of the way of the numbers they are to have.
  board.reset(fcntl(board.get(), F_DUPFD_CLOEXEC, kBoardFd + 1));
  if (birth) birth.reset(fcntl(birth.get(), F_DUPFD_CLOEXEC, kBoardFd + 1));
  child.must(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0, "close_range");
  child.must(dup2(board.get(), kBoardFd) == kBoardFd, "board");
  if (birth) child.must(dup2(birth.get(), kBirthFd) == kBirthFd, "birth pipe");
}

[[noreturn]] void exec_actor(const Child& child, std::uint32_t slot, ActorPlan plan, UniqueFd birth) {
  if (!plan.exe.empty() && geteuid() == 0) bind_program(child, plan.exe);  // else it is a copy (machine/actors.cc)
  arrange_descriptors(child, slot, birth);
  become_user(child, plan.uid, plan.gid);
  child.must(chdir("/") == 0, "/");
  const std::string program = plan.exe.empty() ? kActorPath : plan.exe;
  execve(program.c_str(), pointers(plan.argv).data(), pointers(plan.env).data());
  child.fail(system_error(program).message);
}

/// Leaves its numbers on the board. In a child pid namespace it cannot know that of the machine: whoever is outside
/// does.
void tell_numbers(const Board& board, std::uint32_t index) {
  Slot& slot = board.slot(index);
  set_own_namespace(slot.ns.load());
  if (slot.ns.load() == kNoSlot) slot.pid.store(getpid());
  slot.own_pid.store(getpid());
  board.announce();
  while (slot.pid.load() == 0) {
    const std::uint32_t seen = slot.word.load();
    if (slot.pid.load() == 0) futex_wait(slot.word, seen, Deadline::never());
  }
}

/// Runs in the new process, under blocked signals.
void enter_actor(const Parent& parent, std::uint32_t index, ActorPlan plan, UniqueFd birth, const GoOn& go_on) {
  const Child child(parent.board, index);
  Slot& slot = parent.board.slot(index);
  SignalPolicy policy;
  policy.board = parent.board;
  policy.slot = index;
  set_signal_policy(policy);
  tell_numbers(parent.board, index);
  while (plan.detached && slot.adopted.load() == 0) {
    const std::uint32_t seen = slot.word.load();
    if (slot.adopted.load() == 0) futex_wait(slot.word, seen, Deadline::never());
  }
  slot.parent_pid.store(getppid());
  parent.board.enter(index, Phase::forked);
  set_relations(child, plan);
  if (plan.state == FinalState::dumping) {
    if (auto allowed = allow_dump(); !allowed) child.fail(allowed.error().message);
  }
  if (!plan.fork_only) leave_private_mounts(child, parent);
  enter_mounts(child, parent.board, index, plan.proc_options);
  if (!plan.fork_only) exec_actor(child, index, std::move(plan), std::move(birth));
  become_user(child, plan.uid, plan.gid);
  go_on(index, std::move(plan), std::move(birth));
  _exit(125);
}

/// The job's process group gets the terminal; only its session's leader can hand it out.
void take_terminal(const Child& child) {
  child.must(tcsetpgrp(0, getpgrp()) == 0, "foreground of the terminal");  // TTOU is blocked
}

[[noreturn]] void enter_command(const Parent& parent, std::uint32_t index, CommandPlan plan) {
  const Child child(parent.board, index);
  Slot& slot = parent.board.slot(index);
  tell_numbers(parent.board, index);
  slot.parent_pid.store(getppid());
  if (plan.job) child.must(setpgid(0, 0) == 0, "setpgid");
  leave_private_mounts(child, parent);
  enter_mounts(child, parent.board, index, "");
  redirect(child, plan.tty.empty() ? plan.in : plan.tty, plan.tty.empty() ? O_RDONLY : O_RDWR, 0);
  redirect(child, plan.tty.empty() ? plan.out : plan.tty, O_RDWR | O_APPEND, 1);
  redirect(child, plan.tty.empty() ? plan.err : plan.tty, O_RDWR | O_APPEND, 2);
  if (!plan.tty.empty() && plan.job) take_terminal(child);
  parent.board.enter(index, Phase::forked);
  while (slot.go.load() == 0) {
    const std::uint32_t seen = slot.word.load();
    if (slot.go.load() == 0) futex_wait(slot.word, seen, Deadline::never());
  }
  child.must(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0, "close_range");
  become_user(child, plan.uid, plan.gid);
  for (std::string& entry : plan.env) putenv(entry.data());
  child.must(chdir("/") == 0, "/");
  remove_handlers();
  unblock_signals();
  execvp(plan.argv.front().c_str(), pointers(plan.argv).data());
  const std::string why = system_error(plan.argv.front()).message + "\n";
  (void)!write(2, why.data(), why.size());
  _exit(127);
}

/// Makes the calling process's next children be born in the pid namespace that `index` is to be in. Returns the way
/// back, which owns nothing where that is the one the caller is in.
Result<UniqueFd> enter_namespace(const Board& board, std::uint32_t index) {
  const std::uint32_t first = board.slot(index).ns.load();
  if (first == kNoSlot || first == board.slot(board.slot(index).parent.load()).ns.load()) return UniqueFd();
  UniqueFd home(open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
  if (!home) return system_error("own pid namespace");
  if (first == index) {
    if (unshare(CLONE_NEWPID) != 0) return system_error("new pid namespace");
    return home;
  }
  const std::string path = "/proc/" + std::to_string(board.slot(first).pid.load()) + "/ns/pid";
  const UniqueFd theirs(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!theirs || setns(theirs.get(), CLONE_NEWPID) != 0) return system_error("entering " + path);
  return home;
}

/// fork() with the number that the child is to have in its own pid namespace.
pid_t fork_numbered(pid_t wanted) {
  if (wanted <= 0) return fork();
  clone_args how{};
  how.exit_signal = SIGCHLD;
  how.set_tid = reinterpret_cast<std::uintptr_t>(&wanted);
  how.set_tid_size = 1;  // the innermost namespace only
  return static_cast<pid_t>(syscall(SYS_clone3, &how, sizeof how));
}

/// Forks the process of `index` itself; 0 in that.
Result<pid_t> fork_slot(const Board& board, std::uint32_t index) {
  auto home = enter_namespace(board, index);
  if (!home) return home.error();
  Slot& slot = board.slot(index);
  const bool from_machine = board.slot(slot.parent.load()).ns.load() == kNoSlot;
  const pid_t pid = fork_numbered(slot.wanted_pid.load());
  const int problem = errno;
  if (pid == 0) return pid;
  if (*home && setns(home->get(), CLONE_NEWPID) != 0) return system_error("back to the own pid namespace");
  errno = problem;
  if (pid < 0) return system_error("fork");
  if (from_machine && slot.ns.load() != kNoSlot) {
    slot.pid.store(pid);
    board.nudge(index);
  }
  return pid;
}

Result<pid_t> fork_intermediate() {
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork");
  return pid;
}

/// In the process between a detached child and its parent, which ends at once. 0: in the child.
void fork_from_intermediate(const Board& board, std::uint32_t index) {
  const auto pid = fork_slot(board, index);
  if (!pid) board.fail(index, pid.error().message);
  if (*pid != 0) _exit(0);
}

/// Reaps the intermediate parent of a detached child and tells the child that it has been adopted.
void end_intermediate(const Board& board, std::uint32_t slot, pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  board.slot(slot).adopted.store(1);
  board.nudge(slot);
}

}  // namespace

Result<UniqueFd> spawn_actor(const Parent& parent, std::uint32_t slot, const GoOn& go_on) {
  ActorPlan plan;
  Unpacker(parent.board.plan(slot))(plan);
  UniqueFd read_end;
  UniqueFd write_end;
  if (plan.pipe) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("birth pipe");
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  const SignalsBlocked blocked;
  const bool detached = plan.detached;
  const auto pid = detached ? fork_intermediate() : fork_slot(parent.board, slot);
  if (!pid) return pid.error();
  if (*pid == 0) {
    write_end.reset();
    if (detached) fork_from_intermediate(parent.board, slot);
    enter_actor(parent, slot, std::move(plan), std::move(read_end), go_on);
  }
  if (detached) end_intermediate(parent.board, slot, *pid);
  return write_end;
}

Result<void> spawn_command(const Parent& parent, std::uint32_t slot) {
  CommandPlan plan;
  Unpacker(parent.board.plan(slot))(plan);
  // A session leader without a terminal gets the first one that it opens; a job of it can then have it.
  UniqueFd terminal;
  if (!plan.tty.empty() && plan.job) terminal.reset(open(plan.tty.c_str(), O_RDWR | O_CLOEXEC));
  const SignalsBlocked blocked;
  const auto pid = fork_slot(parent.board, slot);
  if (!pid) return pid.error();
  if (*pid == 0) enter_command(parent, slot, std::move(plan));
  return {};
}

void spawn_requested(const Parent& parent, std::uint32_t slot, std::vector<UniqueFd>& ends, const GoOn& go_on) {
  Slot& child = parent.board.slot(slot);
  Phase expected = Phase::requested;
  if (!child.phase.compare_exchange_strong(expected, Phase::forking)) return;
  std::optional<Error> problem;
  if (child.kind.load() == SlotKind::command) {
    if (auto done = spawn_command(parent, slot); !done) problem = done.error();
  } else if (auto end = spawn_actor(parent, slot, go_on); !end) {
    problem = end.error();
  } else if (*end) {
    ends.push_back(std::move(*end));
  }
  if (!problem) return;
  problem->message.copy(child.error, sizeof child.error - 1);
  parent.board.enter(slot, Phase::failed);
}

}  // namespace lab
