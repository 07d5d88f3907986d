// SPDX-License-Identifier: Apache-2.0
// The keeper's own side: it starts the command, then lets go of every descriptor that is not its own, so that it keeps
// neither a pipe nor a terminal nor a GPU open, and waits.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "execute/keeper_protocol.h"
#include "execute/machine_log.h"
#include "execute/wait.h"
#include "os/procfs.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

constexpr int kExitNotFound = 127;
/// Helpers that see the end of the command and end themselves were not left behind.
constexpr std::chrono::milliseconds kPatience{100};

void say(int channel, const KeeperEvent& event) {
  const std::string bytes = render_keeper_event(event);
  (void)send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// Between fork and execve: nothing but system calls.
[[noreturn]] void become(char* const* argv, const CommandToRun& command, const ControlGroup* group, pid_t process_group,
                         int report) noexcept {
  // The session is vacate's already; the process group of vacate is the job that a shell and a terminal know.
  (void)setpgid(0, process_group);
  char joined = 0;
  if (group != nullptr && write(group->joining(), "0", 1) == 1) joined = 1;
  (void)!write(report, &joined, 1);
  for (const int fd : command.handed_on) (void)fcntl(fd, F_SETFD, 0);
  command.inherited.restore();
  (void)execvp(argv[0], argv);
  const int number = errno;
  (void)!write(report, &number, sizeof number);
  _exit(kExitNotFound);
}

/// Closes everything but `kept`; the standard descriptors become /dev/null.
void let_go_of_descriptors(std::vector<int> kept) noexcept {
  std::sort(kept.begin(), kept.end());
  unsigned first = 3;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (fd < 3) continue;
    for (unsigned each = first; each < number; ++each) (void)close(static_cast<int>(each));
    first = number + 1;
  }
  (void)close_descriptors_from(first);
  for (int fd = 0; fd < 3; ++fd) (void)close(fd);
  for (int fd = 0; fd < 3; ++fd) (void)!open("/dev/null", O_RDWR);  // the lowest free number
}

class KeeperProcess {
 public:
  KeeperProcess(const CommandToRun& command, const ControlGroup* group, pid_t vacate, int channel)
      : command_(command), group_(group), vacate_pid_(vacate), channel_(channel), vacate_(open_pidfd(vacate)) {}

  [[noreturn]] void run();

 private:
  void take_signals();
  [[nodiscard]] bool start();
  void note_children();
  void note_status(const siginfo_t& info);
  void obey();
  void pass_on(int number) const noexcept;
  void resume() const;
  void wake_vacate() const noexcept;
  [[noreturn]] void end_all(int hurry);
  [[nodiscard]] bool is_vacate_there() const noexcept { return getppid() == vacate_pid_; }

  const CommandToRun& command_;
  const ControlGroup* group_;
  pid_t vacate_pid_;
  int channel_;
  UniqueFd vacate_;
  UniqueFd signals_;
  UniqueFd child_;  ///< pidfd of the command
  pid_t pid_ = 0;
  bool ended_ = false;
};

/// Everything that could end or stop the keeper and can be taken is taken and counts for nothing.
void KeeperProcess::take_signals() {
  sigset_t all;
  sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, nullptr);
  signals_ = UniqueFd(signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool KeeperProcess::start() {
  std::vector<char*> argv;
  for (const auto& word : command_.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  UniqueFd reports(ends[0]);
  UniqueFd reporting(ends[1]);
  const pid_t process_group = getpgid(vacate_pid_);
  const pid_t child = fork();
  if (child < 0) {
    say(channel_, {KeeperEvent::Kind::not_started, errno});
    return false;
  }
  if (child == 0) become(argv.data(), command_, group_, process_group, reporting.get());
  pid_ = child;
  child_ = UniqueFd(open_pidfd(child));
  reporting.reset();
  (void)!chdir("/");
  std::vector<int> kept = command_.handed_on;
  kept.insert(kept.end(), {channel_, vacate_.get(), signals_.get(), child_.get(), reports.get(),
                           group_ ? group_->directory() : -1, group_ ? group_->parent() : -1});
  let_go_of_descriptors(std::move(kept));
  char joined = 0;
  int number = 0;
  if (read(reports.get(), &joined, 1) != 1) joined = 0;
  if (read(reports.get(), &number, sizeof number) == static_cast<ssize_t>(sizeof number)) {
    (void)waitpid(child, nullptr, 0);
    say(channel_, {KeeperEvent::Kind::not_started, number});
    return false;
  }
  say(channel_, {KeeperEvent::Kind::started, joined, child});
  return true;
}

/// A vacate that stopped with its command has to run again to hear of it.
void KeeperProcess::wake_vacate() const noexcept { (void)signal_pidfd(vacate_.get(), SIGCONT); }

void KeeperProcess::note_status(const siginfo_t& info) {
  if (info.si_pid != pid_) return;
  if (info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED)
    return say(channel_, {KeeperEvent::Kind::stopped, info.si_status, pid_});
  if (info.si_code == CLD_CONTINUED) return wake_vacate();
  ended_ = true;
  const int status = info.si_code == CLD_EXITED ? (info.si_status & 0xFF) << 8 : info.si_status;
  say(channel_, {KeeperEvent::Kind::ended, status, pid_, has_children()});
  wake_vacate();
}

void KeeperProcess::note_children() {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG) != 0 || info.si_pid == 0) return;
    note_status(info);
  }
}

void KeeperProcess::pass_on(int number) const noexcept {
  if (!ended_) (void)signal_pidfd(child_.get(), number);
}

void KeeperProcess::resume() const {
  const auto root = ProcDirectory::open_root();
  const auto stat = root ? root->stat_of(pid_) : Result<ProcStat>(root.error());
  if (stat && (stat->state == 'T' || stat->state == 't')) pass_on(SIGCONT);
}

void KeeperProcess::obey() {
  std::array<char, 2> bytes{};
  const ssize_t n = recv(channel_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n != static_cast<ssize_t>(bytes.size())) end_all(-1);  // vacate has ended
  const int number = static_cast<unsigned char>(bytes[1]);
  switch (static_cast<KeeperOrder>(bytes[0])) {
    case KeeperOrder::pass_on:
      return pass_on(number);
    case KeeperOrder::pass_on_unless_reached:
      if (getpgid(pid_) != getpgid(vacate_pid_)) pass_on(number);
      return;
    case KeeperOrder::resume:
      return resume();
    case KeeperOrder::end:
      return end_all(channel_);
    case KeeperOrder::hurry:
      return;  // nobody is being ended
  }
}

void KeeperProcess::end_all(int hurry) {
  KeeperEvent event{KeeperEvent::Kind::all_ended, 0, pid_};
  MachineLog log;  // its own: vacate may be gone
  event.end = end_descendants({ended_ ? kPatience : std::chrono::milliseconds{0}, command_.grace, command_.timeout,
                               ended_ ? 0 : pid_, group_, signals_.get(), hurry, command_.find_spared},
                              log);
  if (group_ != nullptr) (void)group_->remove();
  if (is_vacate_there()) say(channel_, event);
  _exit(0);
}

void KeeperProcess::run() {
  (void)prctl(PR_SET_NAME, "vacate-keeper");
  (void)setpgid(0, 0);  // what ends the whole job does not end the keeper
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
  take_signals();
  const bool can_start = vacate_ && signals_ && is_vacate_there();
  if (!can_start || !start()) {
    if (group_ != nullptr) (void)group_->remove();  // vacate may have been killed meanwhile
    _exit(can_start ? 0 : 1);
  }
  for (;;) {
    std::vector<pollfd> entries = {{channel_, POLLIN, 0}, {signals_.get(), POLLIN, 0}, {vacate_.get(), POLLIN, 0}};
    (void)wait_for(entries, Deadline::never());
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) continue;
    note_children();
    if (entries[2].revents != 0) end_all(-1);
    if (entries[0].revents != 0) obey();
  }
}

}  // namespace

void be_keeper(const CommandToRun& command, const ControlGroup* group, pid_t vacate, int channel) {
  KeeperProcess(command, group, vacate, channel).run();
}

}  // namespace vacate
