// SPDX-License-Identifier: Apache-2.0
#include "execute/keeper.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "execute/keeper_protocol.h"
#include "execute/wait.h"
#include "os/frame.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

void write_process(FrameWriter& frame, const EndedProcess& process) {
  static constexpr std::size_t kLongestText = 256;
  frame.number(process.key.pid);
  frame.number(process.key.start_ticks);
  frame.text(std::string_view{process.title}.substr(0, kLongestText));
  frame.number(static_cast<unsigned char>(process.status));
  frame.number(static_cast<std::uint32_t>(process.signals.size()));
  for (const auto& signal : process.signals) frame.text(signal);
  frame.number(static_cast<std::int64_t>(process.seconds * 1e6));
  frame.text(std::string_view{process.detail}.substr(0, kLongestText));
}

EndedProcess read_process(FrameReader& frame) {
  EndedProcess process;
  process.key.pid = frame.number<pid_t>();
  process.key.start_ticks = frame.number<std::uint64_t>();
  process.title = frame.text();
  process.status =
      static_cast<StepStatus>(frame.number<unsigned char>() % (static_cast<unsigned>(StepStatus::skipped) + 1));
  const auto signals = frame.count(sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < signals; ++i) process.signals.emplace_back(frame.text());
  process.seconds = static_cast<double>(frame.number<std::int64_t>()) / 1e6;
  process.detail = frame.text();
  return process;
}

void write_record(FrameWriter& frame, const std::optional<RecordOutcome>& record) {
  static constexpr std::size_t kLongestText = 512;
  frame.number(static_cast<unsigned char>(record.has_value()));
  const RecordOutcome kept = record.value_or(RecordOutcome{});
  frame.text(std::string_view{kept.where}.substr(0, kLongestText));
  frame.number(static_cast<std::uint64_t>(kept.entries));
  frame.number(static_cast<std::uint64_t>(kept.lost));
  frame.text(std::string_view{kept.why}.substr(0, kLongestText));
}

std::optional<RecordOutcome> read_record(FrameReader& frame) {
  const bool is_there = frame.number<unsigned char>() != 0;
  RecordOutcome record;
  record.where = frame.text();
  record.entries = frame.number<std::uint64_t>();
  record.lost = frame.number<std::uint64_t>();
  record.why = frame.text();
  return is_there ? std::optional(std::move(record)) : std::nullopt;
}

UniqueFd watch_children() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  (void)sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

void send_order(int channel, KeeperOrder order, int number = 0) noexcept {
  const std::array<char, 2> bytes{static_cast<char>(order), static_cast<char>(number)};
  (void)send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);  // a keeper that is gone says so itself
}

}  // namespace

std::string render_keeper_event(const KeeperEvent& event) {
  FrameWriter processes;
  std::uint32_t named = 0;
  for (const auto& process : event.end.processes) {
    if (processes.bytes().size() > kLargestKeeperMessage - 4096) break;
    write_process(processes, process);
    ++named;
  }
  const auto beyond = static_cast<std::uint32_t>(event.end.processes.size()) - named;
  FrameWriter frame;
  frame.number(static_cast<unsigned char>(event.kind));
  frame.number(static_cast<std::int32_t>(event.number));
  frame.number(event.pid);
  frame.number(static_cast<unsigned char>(event.somebody_left));
  frame.number(static_cast<unsigned char>(event.end.somebody_left));
  frame.number(static_cast<std::uint32_t>(event.end.unnamed) + beyond);
  write_record(frame, event.end.record);
  frame.number(named);
  return frame.bytes() + processes.bytes();
}

std::optional<KeeperEvent> parse_keeper_event(std::string_view bytes) {
  FrameReader frame(bytes);
  KeeperEvent event;
  const auto kind = frame.number<unsigned char>();
  if (kind > static_cast<unsigned char>(KeeperEvent::Kind::keeper_gone)) return std::nullopt;
  event.kind = static_cast<KeeperEvent::Kind>(kind);
  event.number = frame.number<std::int32_t>();
  event.pid = frame.number<pid_t>();
  event.somebody_left = frame.number<unsigned char>() != 0;
  event.end.somebody_left = frame.number<unsigned char>() != 0;
  event.end.unnamed = frame.number<std::uint32_t>();
  event.end.record = read_record(frame);
  const auto count = frame.count(1);
  for (std::uint32_t i = 0; i < count && !frame.failed(); ++i) event.end.processes.push_back(read_process(frame));
  if (!frame.complete()) return std::nullopt;
  return event;
}

Result<Keeper> Keeper::start(const CommandToRun& command, const ControlGroup* group) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return system_error("socketpair");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return system_error("prctl(PR_SET_CHILD_SUBREAPER)");
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  (void)sigaction(SIGCHLD, &standard, nullptr);  // ignored, children would be gone before anybody waited for them
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) return system_error("fork");
  if (child == 0) be_keeper(command, group, self, theirs.get());
  return Keeper(child, UniqueFd(open_pidfd(child)), std::move(ours), watch_children());
}

std::optional<KeeperEvent> Keeper::next_event() {
  std::vector<char> buffer(kLargestKeeperMessage);
  for (;;) {
    const ssize_t n = recv(channel_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    // ECONNRESET, once: the keeper ended with an order of ours unread; what it said before that is still to be read.
    if (n < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (n <= 0) return KeeperEvent{};
    auto event = parse_keeper_event({buffer.data(), static_cast<std::size_t>(n)});
    return event ? event : KeeperEvent{};
  }
}

void Keeper::pass_on(int number, Reached reached) const noexcept {
  send_order(channel_.get(), reached == Reached::nobody ? KeeperOrder::pass_on : KeeperOrder::pass_on_unless_reached,
             number);
}
void Keeper::resume() const noexcept { send_order(channel_.get(), KeeperOrder::resume); }
void Keeper::end_everybody() const noexcept { send_order(channel_.get(), KeeperOrder::end); }
void Keeper::hurry() const noexcept { send_order(channel_.get(), KeeperOrder::hurry); }

void Keeper::keep_running() const noexcept {
  signalfd_siginfo drained{};
  while (read(changes_.get(), &drained, sizeof drained) == static_cast<ssize_t>(sizeof drained)) continue;
  siginfo_t info{};
  const bool is_stopped = waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == pid_;
  if (is_stopped) (void)signal_pidfd(pidfd_.get(), SIGCONT);
}

void Keeper::dismiss() noexcept {
  static constexpr std::chrono::seconds kLastBreath{1};  // somebody may have stopped it
  channel_.reset();
  if (pidfd_ && !wait_for(pidfd_.get(), Deadline::after(kLastBreath))) (void)signal_pidfd(pidfd_.get(), SIGKILL);
  (void)waitpid(pid_, nullptr, 0);
}

EndOfFamily end_in_place_of_keeper(const CommandToRun& command, const ControlGroup* group, ActionLog& log, int hurry) {
  const UniqueFd children = watch_children();
  return end_descendants({std::chrono::milliseconds{0}, command.grace, command.timeout, 0, group, children.get(), hurry,
                          command.find_spared},
                         log);
}

}  // namespace vacate
