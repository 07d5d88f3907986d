// SPDX-License-Identifier: Apache-2.0
// See actor.h. The loop waits on one word of the board; handlers and the conductor bump it.
#include "lab/actor/actor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>

#include "lab/actor/dumping.h"
#include "lab/actor/holdings.h"
#include "lab/actor/passing.h"
#include "lab/actor/plan.h"
#include "lab/actor/shm_holdings.h"
#include "lab/actor/signals.h"
#include "lab/actor/spawn.h"
#include "lab/actor/title.h"
#include "lab/driver/protocol.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr auto kCallLimit = std::chrono::seconds(10);

class Actor {
 public:
  Actor(const Board& board, std::uint32_t slot) : board_(board), index_(slot) { Unpacker(board.plan(slot))(plan_); }

  /// After exec.
  [[noreturn]] void begin() {
    if (plan_.pipe) {
      holdings_.birth.reset(kBirthFd);
      fcntl(kBirthFd, F_SETFD, FD_CLOEXEC);
    }
    private_mounts_ = !plan_.exe.empty();
    start();
  }

 private:
  [[noreturn]] void start();
  [[noreturn]] void go_on(std::uint32_t slot, ActorPlan plan, UniqueFd birth);
  [[noreturn]] void live();
  [[noreturn]] void live_in_second_thread();
  [[noreturn]] void be_ready();
  static void* second_thread(void* self);
  static void* calling_thread(void* self);
  void stay_in_driver();
  void await_call();

  [[nodiscard]] Result<void> set_names() const;
  [[nodiscard]] Result<void> take_holds();
  [[nodiscard]] Result<void> prepare_for_kill();
  void watch_parent();
  void fork_requested();
  void fork_copies();
  void take_final_state();
  void obey_control_daemon();
  [[nodiscard]] Slot& mine() const noexcept { return board_.slot(index_); }
  void must(Result<void> done) const {
    if (!done) board_.fail(index_, done.error().message);
  }

  Board board_;
  std::uint32_t index_;
  ActorPlan plan_;
  Holdings holdings_;
  ShmHoldings shm_;
  bool private_mounts_ = false;
  bool turned_ = false;
  std::uint32_t copies_ = 0;
  std::optional<Deadline> end_;   // slow: when it has had its time
  int driver_fd_ = -1;            // on_kill: what the driver is asked through; owned by holdings_
  std::atomic<pid_t> caller_{0};  // the thread that is stuck in the driver
  FutexWord leader_may_go_{0};    // zombie-leader: the first thread is to end
};

/// comm of a program follows from the file that was executed; for one that is not there, what its argv says.
Result<void> Actor::set_names() const {
  if (!plan_.title.empty()) {
    set_comm(plan_.title);
    return set_cmdline({plan_.title});
  }
  if (plan_.exe.empty() || plan_.fork_only) set_comm(base_name(plan_.argv.front()));
  return plan_.fork_only ? set_cmdline(plan_.argv) : Result<void>{};
}

Result<void> Actor::take_holds() {
  for (std::uint32_t number = 0; number < plan_.holds.size(); ++number) {
    const HoldPlan& hold = plan_.holds[number];
    if (auto done = holdings_.acquire(hold); !done) return done;
    if (hold.kind != HoldKind::exported) continue;
    auto file = ask_for_export(board_, index_, number, hold.exporter);
    if (!file) return file.error().within("import");
    if (auto done = holdings_.take_import(std::move(*file), hold); !done) return done;
  }
  for (const ShmPlan& shm : plan_.shms) {
    if (auto done = shm_.acquire(shm); !done) return done;
  }
  return holdings_.listen(plan_.listen);
}

/// Sees to it that a KILL finds what the case says (facts.md 2.3, 3.6); ends of other kinds let go first.
Result<void> Actor::prepare_for_kill() {
  driver_fd_ = -1;
  if (plan_.on_kill == KillHabit::exit) return {};
  driver_fd_ = holdings_.any_descriptor();
  if (driver_fd_ < 0) return Error{ErrorCode::malformed, "on_kill needs an open descriptor of a device file"};
  const DelayRequest request{plan_.stuck_ms};
  if (plan_.on_kill == KillHabit::exiting && ioctl(driver_fd_, kDelayExit, &request) != 0)
    return system_error("a slow end");
  return {};
}

void Actor::watch_parent() {
  if (!plan_.exits_with_parent) return;
  prctl(PR_SET_PDEATHSIG, parent_ended_signal());
  if (getppid() != mine().parent_pid.load()) _exit(0);  // it ended before the kernel was asked to tell
}

void Actor::start() {
  set_own_namespace(mine().ns.load());
  // Changing users makes a process undumpable, which exec undoes; a fork without exec has to do it itself.
  prctl(PR_SET_DUMPABLE, 1);
  if (plan_.subreaper) prctl(PR_SET_CHILD_SUBREAPER, 1);
  must(set_names());
  must(take_holds());
  must(prepare_for_kill());
  SignalPolicy policy;
  policy.board = board_;
  policy.slot = index_;
  policy.on_term = plan_.on_term;
  policy.parent = mine().parent_pid.load();
  policy.driver_fd = driver_fd_;
  set_signal_policy(policy);
  install_handlers();
  watch_parent();
  unblock_signals();
  mine().group.store(getpgrp());
  be_ready();
}

/// Ready, and on with its life in the thread that its end needs it in.
void Actor::be_ready() {
  if (plan_.state == FinalState::zombie_leader || plan_.on_kill == KillHabit::stuck) live_in_second_thread();
  board_.enter(index_, Phase::ready);
  live();
}

/// In a fork without exec: this object is the parent's, seen from the child.
void Actor::go_on(std::uint32_t slot, ActorPlan plan, UniqueFd birth) {
  index_ = slot;
  plan_ = std::move(plan);
  turned_ = false;
  copies_ = 0;
  end_.reset();
  leader_may_go_.store(0);
  must(holdings_.keep_inherited(plan_));
  shm_.drop();
  holdings_.birth = std::move(birth);
  start();
}

void Actor::fork_requested() {
  const Parent parent{board_, private_mounts_};
  const GoOn go = [this](std::uint32_t slot, ActorPlan plan, UniqueFd birth) {
    go_on(slot, std::move(plan), std::move(birth));
  };
  const std::uint32_t count = board_.count();
  for (std::uint32_t i = 0; i < count; ++i) {
    const Slot& slot = board_.slot(i);
    if (slot.parent.load() == index_ && slot.phase.load() == Phase::requested) {
      spawn_requested(parent, i, holdings_.children, go);
    }
  }
}

/// on_term = "fork": a copy that holds the same, told apart by its name on the board only.
void Actor::fork_copies() {
  while (take_copy_wanted()) {
    const std::string name = std::string(mine().name) + "+" + std::to_string(++copies_);
    const std::uint32_t slot = board_.add(name, SlotKind::copy, index_);
    if (slot == kNoSlot) return;
    board_.slot(slot).plan_at = mine().plan_at;
    board_.slot(slot).plan_size = mine().plan_size;
    board_.slot(slot).ns.store(mine().ns.load());
    const SignalsBlocked blocked;
    if (fork() != 0) continue;
    index_ = slot;
    copies_ = 0;
    holdings_.children.clear();
    if (mine().ns.load() == kNoSlot) mine().pid.store(getpid());
    mine().own_pid.store(getpid());
    mine().parent_pid.store(getppid());
    must(prepare_for_kill());
    set_signal_policy({board_, index_, plan_.on_term, getppid(), driver_fd_});
    watch_parent();
    mine().group.store(getpgrp());
    unblock_signals();
    be_ready();
  }
}

void Actor::take_final_state() {
  turned_ = true;
  switch (plan_.state) {
    case FinalState::zombie:
      _exit(0);
    case FinalState::stopped:
      kill(getpid(), SIGSTOP);
      break;
    case FinalState::zombie_leader:
      futex_bump(leader_may_go_);
      break;
    case FinalState::dumping:
      must(prepare_dump(index_, plan_.stuck_ms));
      die_by(SIGABRT);
    case FinalState::traced:  // these are done to it
    case FinalState::frozen:
    case FinalState::frozen_v1:
    case FinalState::running:
    case FinalState::spinning:
      break;
  }
}

/// Its MPS server has ended its contexts. The driver knows of it when this is done, which is when the daemon is told.
void Actor::obey_control_daemon() {
  const MpsOrder order = mine().mps.load();
  if (order != MpsOrder::end_contexts && order != MpsOrder::end_contexts_and_exit) return;
  must(holdings_.end_mps_contexts());
  mine().mps.store(MpsOrder::done);
  board_.announce();
  if (order == MpsOrder::end_contexts_and_exit) _exit(1);  // as a program does whose calls fail from now on
}

void Actor::live() {
  for (;;) {
    const std::uint32_t seen = mine().word.load();
    if (dying_by() != 0 && !end_) end_ = Deadline::after(std::chrono::milliseconds(plan_.slow_ms));
    if (end_ && end_->passed()) die_by(dying_by());
    fork_copies();
    if (take_let_go_wanted()) holdings_.let_go();
    fork_requested();
    serve_exports(board_, index_, [this](const HoldPlan& hold) { return holdings_.make_export(hold); });
    obey_control_daemon();
    if (!turned_ && mine().turn.load() != 0) take_final_state();
    if (plan_.state == FinalState::spinning && turned_ && !end_) continue;
    futex_wait(mine().word, seen, end_.value_or(Deadline::never()));
  }
}

void* Actor::second_thread(void* self) {
  auto& actor = *static_cast<Actor*>(self);
  if (actor.plan_.on_kill == KillHabit::stuck) actor.await_call();
  actor.board_.enter(actor.index_, Phase::ready);
  actor.live();
}

void* Actor::calling_thread(void* self) {
  static_cast<Actor*>(self)->stay_in_driver();
  return nullptr;
}

/// A call that the driver does not answer until KILL, or, at another end, until it is let go.
void Actor::stay_in_driver() {
  caller_.store(gettid());
  const DelayRequest request{plan_.stuck_ms};
  ioctl(driver_fd_, kStuck, &request);
}

/// Until the call is in the driver. There is no event for that, hence the short looks.
void Actor::await_call() {
  const Deadline limit = Deadline::after(kCallLimit);
  const FutexWord never{0};
  for (;;) {
    const UniqueFd file(
        open(("/proc/self/task/" + std::to_string(caller_.load()) + "/wchan").c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 64> word{};
    if (file && read(file.get(), word.data(), word.size() - 1) > 0 &&
        std::string_view(word.data()) == "request_wait_answer") {
      return;
    }
    if (limit.passed()) board_.fail(index_, "the driver answered a call that it should not");
    futex_wait(never, 0, Deadline::after(std::chrono::milliseconds(1)));
  }
}

/// The loop, and with it every fork, runs in a thread that lives on. The leader is in the driver, or it ends by the
/// bare system call, so that the process goes on without it and without glibc noticing.
void Actor::live_in_second_thread() {
  pthread_t thread{};
  caller_.store(0);
  if (pthread_create(&thread, nullptr, second_thread, this) != 0) board_.fail(index_, "cannot make a second thread");
  const SignalsBlocked blocked;
  if (plan_.state != FinalState::zombie_leader) {
    stay_in_driver();
    for (;;) pause();
  }
  if (plan_.on_kill == KillHabit::stuck && pthread_create(&thread, nullptr, calling_thread, this) != 0)
    board_.fail(index_, "cannot make a third thread");
  while (leader_may_go_.load() == 0) futex_wait(leader_may_go_, 0, Deadline::never());
  for (;;) syscall(SYS_exit, 0);
}

}  // namespace

void run_actor(const Board& board, std::uint32_t slot) {
  static Actor actor(board, slot);  // the second thread of a zombie leader uses it when main's stack is gone
  actor.begin();
}

}  // namespace lab
