// SPDX-License-Identifier: Apache-2.0
// Real children, real signals.
#include "execute/live_executor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "execute/recording_executor.h"
#include "execute/wait.h"
#include "os/test_dialogue.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;

enum class Manner { obeys, ignores };

/// A child that waits to be ended; ends with its parent too. Ready, with its manners, once the constructor returns.
class Child {
 public:
  explicit Child(Manner manner) {
    int ready[2];
    if (pipe(ready) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      std::signal(SIGTERM, manner == Manner::ignores ? SIG_IGN : SIG_DFL);
      close(ready[0]);
      close(ready[1]);  // end of file: ready
      alarm(60);
      for (;;) pause();
    }
    close(ready[1]);
    char byte = 0;
    while (read(ready[0], &byte, 1) < 0 && errno == EINTR) {
    }
    close(ready[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (const auto ref = ProcessRef::open(pid_)) static_cast<void>(ref->send_signal(SIGKILL).has_value());
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The signal it ended by; reaps it.
  [[nodiscard]] int ended_by() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_ = -1;
};

class Observer final : public ExecutionObserver {
 public:
  void on_execution(const ExecutionProgress& progress) override { last = progress; }
  ExecutionProgress last;
};

/// What was said to it, one line a call; looks at whether the process is there still at each.
class NotedActions final : public ActionLog {
 public:
  ActionTicket about_to(const IntendedAction& action) override {
    lines.push_back(fmt::format("{} {} {}: {}", action.plan, action.n, action.signal, state_of(action)));
    return {lines.size()};
  }
  void came_of(ActionTicket ticket, const IntendedAction& action, DeedResult result, std::string_view) override {
    lines.push_back(fmt::format("{} {}: {}", ticket.number, action.signal, describe(result)));
  }
  [[nodiscard]] RecordOutcome outcome() override { return {}; }

  std::vector<std::string> lines;

 private:
  static std::string_view state_of(const IntendedAction& action) {
    const auto process = ProcessRef::open(action.key.value_or(ProcessKey{}).pid);
    return process && process->key() == action.key ? "alive" : "not there";
  }
};

class LiveExecutorTest : public ::testing::Test {
 protected:
  Step& add(pid_t pid, Ask ask = Ask::at_once) {
    const auto key = pins_.pin(pid);
    EXPECT_TRUE(key.has_value());
    Step step;
    step.n = static_cast<unsigned>(plan_.steps.size() + 1);
    step.ask = ask;
    step.key = *key;
    plan_.steps.push_back(step);
    Process process;
    process.key = *key;
    seen_.processes.push_back(process);
    return plan_.steps.back();
  }
  std::vector<StepResult> execute(ExecutionRules rules, std::chrono::milliseconds limit = 20s, int wake = -1) {
    LiveExecutor executor(pins_, holds_, rules, observer_, log_, wake);
    return executor.execute(plan_, seen_, Deadline::after(limit));
  }

  PinSet pins_;
  Plan plan_;
  Snapshot seen_;
  Observer observer_;
  NotedActions log_;
  StillHolds holds_ = [](const ProcessKey&) { return true; };
};

using Words = std::vector<std::string>;

TEST_F(LiveExecutorTest, OneThatObeysGoesByTerm) {
  Child child(Manner::obeys);
  add(child.pid());
  const auto results = execute({});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].status, StepStatus::gone);
  EXPECT_EQ(results[0].signals, Words{"TERM"});
  EXPECT_LT(results[0].seconds, 5);
  EXPECT_EQ(child.ended_by(), SIGTERM);
}

TEST_F(LiveExecutorTest, EverySignalIsAnnouncedBeforeItAndAnsweredForBeforeTheNext) {
  Child stubborn(Manner::ignores), other(Manner::obeys);
  plan_.id = "00c0ffee00c0ffee";
  add(stubborn.pid());
  add(other.pid());
  const auto results = execute({Escalation::kill_after_grace, 200ms, 2s});
  EXPECT_EQ(results.at(0).status, StepStatus::gone);
  EXPECT_EQ(log_.lines, (Words{"00c0ffee00c0ffee 1 TERM: alive", "1 TERM: done", "00c0ffee00c0ffee 2 TERM: alive",
                               "3 TERM: done", "00c0ffee00c0ffee 1 KILL: alive", "5 KILL: done"}));
}

TEST_F(LiveExecutorTest, WhatIsNotSignalledIsNotAnnounced) {
  Child child(Manner::obeys), gone(Manner::obeys);
  add(child.pid()).action = Action::refuse;
  add(gone.pid());
  ASSERT_TRUE(ProcessRef::open(gone.pid())->send_signal(SIGKILL));
  EXPECT_EQ(gone.ended_by(), SIGKILL);
  EXPECT_EQ(execute({}).at(1).status, StepStatus::already_gone);
  EXPECT_EQ(log_.lines, Words{});
}

TEST_F(LiveExecutorTest, APolicyOutlastsTheGraceOfTheRun) {
  Child asked_only(Manner::ignores), slow(Manner::ignores), plain(Manner::ignores);
  add(asked_only.pid()).terms.term_only = true;
  add(slow.pid()).terms.grace = 600ms;
  add(plain.pid());
  const auto results = execute({Escalation::kill_after_grace, 200ms, 2s}, 1200ms);
  EXPECT_EQ(results.at(0).status, StepStatus::timed_out);
  EXPECT_EQ(results.at(0).signals, Words{"TERM"});
  EXPECT_EQ(results.at(1).signals, (Words{"TERM", "KILL"}));
  EXPECT_GE(results.at(1).seconds, 0.6);
  EXPECT_EQ(results.at(2).signals, (Words{"TERM", "KILL"}));
  EXPECT_LT(results.at(2).seconds, 0.6);
  EXPECT_EQ(observer_.last.until_kill, std::nullopt) << "nobody is left who will be killed";
}

TEST_F(LiveExecutorTest, APolicyHoldsAfterTheGraceToo) {
  Child asked_only(Manner::ignores), plain(Manner::ignores);
  add(asked_only.pid()).terms.term_only = true;
  add(plain.pid());
  const auto results = execute({Escalation::kill_at_once, 200ms, 2s}, 400ms);
  EXPECT_EQ(results.at(0).signals, Words{"TERM"});
  EXPECT_EQ(results.at(1).signals, (Words{"STOP", "KILL"}));
}

TEST_F(LiveExecutorTest, OneThatIgnoresTermIsKilledAfterTheGraceAndNotBefore) {
  Child child(Manner::ignores);
  add(child.pid());
  const auto results = execute({Escalation::kill_after_grace, 300ms, 2s});
  EXPECT_EQ(results.at(0).status, StepStatus::gone);
  EXPECT_EQ(results.at(0).signals, (Words{"TERM", "KILL"}));
  EXPECT_GE(results.at(0).seconds, 0.29);
  EXPECT_EQ(child.ended_by(), SIGKILL);
}

TEST_F(LiveExecutorTest, TermOnlyNeverKills) {
  Child child(Manner::ignores);
  add(child.pid());
  const auto results = execute({Escalation::term_only, 50ms, 2s}, 400ms);
  EXPECT_EQ(results.at(0).status, StepStatus::timed_out);
  EXPECT_EQ(results.at(0).signals, Words{"TERM"});
}

TEST_F(LiveExecutorTest, AStoppedProcessGetsContAfterTerm) {
  Child child(Manner::obeys);
  add(child.pid());
  ASSERT_TRUE(pins_.find(plan_.steps[0].key)->send_signal(SIGSTOP).has_value());
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED | WNOWAIT), 0);
  seen_.processes[0].condition = Condition::stopped;
  const auto results = execute({});
  EXPECT_EQ(results.at(0).status, StepStatus::gone);
  EXPECT_EQ(results.at(0).signals, (Words{"TERM", "CONT"}));
  EXPECT_EQ(child.ended_by(), SIGTERM);
}

TEST_F(LiveExecutorTest, OneThatHasEndedIsAlreadyGone) {
  Child child(Manner::obeys);
  add(child.pid());
  ASSERT_TRUE(pins_.find(plan_.steps[0].key)->send_signal(SIGKILL).has_value());
  EXPECT_EQ(child.ended_by(), SIGKILL);
  const auto results = execute({});
  EXPECT_EQ(results.at(0).status, StepStatus::already_gone);
  EXPECT_TRUE(results.at(0).signals.empty());
}

TEST_F(LiveExecutorTest, AnotherProcessWithThePidGetsNoSignal) {
  Child child(Manner::obeys);
  add(child.pid()).key.start_ticks += 1;
  const auto results = execute({});
  EXPECT_EQ(results.at(0).status, StepStatus::identity_changed);
  EXPECT_TRUE(results.at(0).signals.empty());
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
}

TEST_F(LiveExecutorTest, AnotherProgramSinceTheScanGetsNoSignal) {
  testing::Dialogue cat([] {
    char byte = 0;
    if (write(1, "r", 1) == 1 && read(0, &byte, 1) == 1) execl("/bin/cat", "cat", nullptr);
  });
  ASSERT_EQ(cat.hear(1), "r");
  add(cat.pid());
  ASSERT_TRUE(cat.say("go"));
  ASSERT_EQ(cat.hear(1), "o") << "cat gave the rest back, so it runs";
  const auto results = execute({});
  EXPECT_EQ(results.at(0).status, StepStatus::identity_changed);
  EXPECT_TRUE(results.at(0).signals.empty());
  EXPECT_EQ(results.at(0).detail, "it runs another program than the one that was judged");
  EXPECT_EQ(waitpid(cat.pid(), nullptr, WNOHANG), 0);
  cat.say_no_more();  // cat ends
  int status = 0;
  EXPECT_EQ(waitpid(cat.pid(), &status, 0), cat.pid());
  EXPECT_EQ(status, 0);
}

TEST_F(LiveExecutorTest, WhoLetGoSinceTheScanGetsNoSignal) {
  Child child(Manner::obeys);
  add(child.pid());
  holds_ = [](const ProcessKey&) { return false; };
  const auto results = execute({});
  EXPECT_EQ(results.at(0).status, StepStatus::identity_changed);
  EXPECT_EQ(results.at(0).detail, "it holds no GPU any more, so it was left alone");
  EXPECT_TRUE(results.at(0).signals.empty());
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
}

TEST_F(LiveExecutorTest, WhoLetsGoAfterTermIsNotKilled) {
  Child child(Manner::ignores);
  add(child.pid());
  holds_ = [asked = 0](const ProcessKey&) mutable { return asked++ == 0; };
  const auto results = execute({Escalation::kill_after_grace, 50ms, 50ms});
  EXPECT_EQ(results.at(0).status, StepStatus::identity_changed);
  EXPECT_EQ(results.at(0).signals, Words{"TERM"});
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
}

TEST_F(LiveExecutorTest, WhoseHoldCannotBeReadAgainGetsNoSignal) {
  Child child(Manner::obeys);
  add(child.pid());
  holds_ = [](const ProcessKey&) { return Error{ErrorCode::io, "too many open files"}; };
  const auto results = execute({});
  EXPECT_EQ(results.at(0).status, StepStatus::skipped);
  EXPECT_EQ(results.at(0).detail, "too many open files");
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
}

TEST_F(LiveExecutorTest, ARelativeStaysWithTheHolderForWhoseSakeItWas) {
  for (const bool holds : {false, true}) {
    SCOPED_TRACE(holds);
    plan_.steps.clear();
    seen_.processes.clear();
    Child root(Manner::obeys);
    Child holder(Manner::obeys);
    Child of_another_tree(Manner::obeys);
    add(root.pid()).holder = false;
    add(holder.pid(), Ask::at_half_grace);
    add(of_another_tree.pid());
    seen_.processes[1].ppid = root.pid();
    holds_ = [&](const ProcessKey& key) { return holds || key.pid == of_another_tree.pid(); };
    const auto results = execute({Escalation::kill_after_grace, 100ms, 50ms});
    const auto expected = holds ? StepStatus::gone : StepStatus::identity_changed;
    EXPECT_EQ(results.at(0).status, expected);
    EXPECT_EQ(results.at(1).status, expected);
    EXPECT_EQ(results.at(2).status, StepStatus::gone);
    EXPECT_EQ(waitpid(root.pid(), nullptr, WNOHANG), holds ? root.pid() : 0);
  }
}

TEST_F(LiveExecutorTest, ARelativeStaysWithAHolderWhoIsNotToBeEnded) {
  Child root(Manner::obeys);
  Child holder(Manner::obeys);
  add(root.pid()).holder = false;
  add(holder.pid()).action = Action::refuse;
  seen_.processes[1].ppid = root.pid();
  const auto results = execute({});
  EXPECT_EQ(results.at(0).status, StepStatus::identity_changed);
  EXPECT_TRUE(results.at(0).signals.empty());
  EXPECT_EQ(waitpid(root.pid(), nullptr, WNOHANG), 0);
}

TEST_F(LiveExecutorTest, AUnitInWhichNobodyHoldsAnyMoreIsNotStopped) {
  Child child(Manner::obeys);
  Step& step = add(child.pid());
  step.action = Action::stop_unit;
  step.unit = UnitTarget{"llm.service", "/system.slice/llm.service", step.key};
  holds_ = [](const ProcessKey&) { return false; };
  const auto results = execute({});
  EXPECT_EQ(results.at(0).status, StepStatus::identity_changed);
  EXPECT_TRUE(log_.lines.empty());
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
}

TEST_F(LiveExecutorTest, WhatTheScanDidNotPinGetsNoSignal) {
  Child child(Manner::obeys);
  add(child.pid());
  const PinSet nothing;
  LiveExecutor executor(nothing, holds_, {}, observer_, log_, -1);
  const auto results = executor.execute(plan_, seen_, Deadline::after(5s));
  EXPECT_EQ(results.at(0).status, StepStatus::skipped);
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
}

TEST_F(LiveExecutorTest, RefusalsAreResultsAndNothingElse) {
  Child child(Manner::obeys);
  Step& step = add(child.pid());
  step.action = Action::refuse;
  step.because = {"protected"};
  const auto results = execute({});
  EXPECT_EQ(results.at(0).status, StepStatus::refused);
  EXPECT_EQ(results.at(0).detail, "protected");
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
}

/// A socket that listens like a bus; nobody answers there.
class SilentBus {
 public:
  SilentBus() {
    char folder[] = "/tmp/vacate-silent-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/socket";
    listener_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
  }
  SilentBus(const SilentBus&) = delete;
  SilentBus& operator=(const SilentBus&) = delete;
  ~SilentBus() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
  UniqueFd listener_;
};

TEST_F(LiveExecutorTest, AStopThatDoesNotComeAboutIsNoReasonToKill) {
  const SilentBus silent;
  for (const std::string& bus : {silent.path(), std::string("/nowhere")}) {
    Child child(Manner::obeys);
    plan_.steps.clear();
    Step& step = add(child.pid());
    step.action = Action::stop_unit;
    step.unit = UnitTarget{"llm.service", "/system.slice/llm.service", step.key};
    LiveExecutor executor(pins_, holds_, {Escalation::kill_after_grace, 50ms, 50ms, 300ms}, observer_, log_, -1, bus);
    const auto results = executor.execute(plan_, seen_, Deadline::after(20s));
    EXPECT_EQ(results.at(0).status, StepStatus::timed_out) << bus;
    EXPECT_TRUE(results.at(0).signals.empty());
    EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
  }
}

TEST_F(LiveExecutorTest, AUnitWithoutAHolderAliveIsNotAskedFor) {
  const SilentBus silent;
  Child child(Manner::obeys);
  Step& step = add(child.pid());
  step.action = Action::stop_unit;
  step.unit = UnitTarget{"llm.service", "/system.slice/llm.service", step.key};
  Child other(Manner::obeys);
  add(other.pid());
  ASSERT_TRUE(pins_.find(plan_.steps[0].key)->send_signal(SIGKILL).has_value());
  EXPECT_EQ(child.ended_by(), SIGKILL);
  LiveExecutor executor(pins_, holds_, {}, observer_, log_, -1, silent.path());
  const auto results = executor.execute(plan_, seen_, Deadline::after(20s));
  EXPECT_EQ(results.at(0).status, StepStatus::already_gone);
  EXPECT_EQ(results.at(1).status, StepStatus::gone);
}

TEST_F(LiveExecutorTest, TheTrackerIsAskedLastAndOnlyIfItStays) {
  Child holder(Manner::obeys);
  Child tracker(Manner::obeys);
  add(tracker.pid(), Ask::after_others);
  add(holder.pid());
  const auto results = execute({Escalation::kill_after_grace, 10s, 200ms});
  EXPECT_EQ(results.at(0).status, StepStatus::gone);
  EXPECT_EQ(results.at(0).signals, Words{"TERM"});
  EXPECT_EQ(results.at(1).status, StepStatus::gone);
}

TEST_F(LiveExecutorTest, OneThatEndsByItselfBeforeItsTurnGetsNoSignal) {
  Child root(Manner::obeys);
  Child rest(Manner::obeys);
  add(root.pid());
  add(rest.pid(), Ask::at_half_grace);
  ASSERT_TRUE(pins_.find(plan_.steps[1].key)->send_signal(SIGKILL).has_value());  // as if the root had ended it
  const auto results = execute({});
  EXPECT_TRUE(results.at(1).status == StepStatus::gone || results.at(1).status == StepStatus::already_gone);
  EXPECT_TRUE(results.at(1).signals.empty());
}

TEST_F(LiveExecutorTest, AnInterruptionStopsItAndNamesWhoIsLeft) {
  Child child(Manner::ignores);
  add(child.pid());
  int wake[2];
  ASSERT_EQ(pipe(wake), 0);
  ASSERT_EQ(write(wake[1], "x", 1), 1);
  const auto results = execute({}, 20s, wake[0]);
  EXPECT_EQ(results.at(0).status, StepStatus::skipped);  // before the first signal
  EXPECT_TRUE(results.at(0).signals.empty());
  close(wake[0]);
  close(wake[1]);
}

TEST_F(LiveExecutorTest, ADryRunSendsNothing) {
  Child child(Manner::obeys);
  add(child.pid());
  RecordingExecutor recorder;
  const auto results = recorder.execute(plan_, seen_, Deadline::never());
  EXPECT_EQ(results.at(0).status, StepStatus::skipped);
  EXPECT_EQ(recorder.recorded().at(0), plan_);
  EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
}

}  // namespace
}  // namespace vacate
