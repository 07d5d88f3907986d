// SPDX-License-Identifier: Apache-2.0
#include "tracer.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "calls.h"
#include "lab/machine/files.h"

namespace fault {
namespace {

using Clock = std::chrono::steady_clock;

/// The machine's registers at the entry of a call.
struct Entry {
  long number = -1;
  std::array<unsigned long, 3> arguments{};
};

#if defined(__x86_64__)
Entry read_entry(pid_t pid) {
  user_regs_struct registers{};
  if (ptrace(PTRACE_GETREGS, pid, nullptr, &registers) != 0) return {};
  return {static_cast<long>(registers.orig_rax), {registers.rdi, registers.rsi, registers.rdx}};
}

/// The call is not made and gives `error`.
void let_fail(pid_t pid, int error) {
  user_regs_struct registers{};
  if (ptrace(PTRACE_GETREGS, pid, nullptr, &registers) != 0) return;
  registers.orig_rax = ~0ULL;
  registers.rax = static_cast<unsigned long long>(-static_cast<long long>(error));
  ptrace(PTRACE_SETREGS, pid, nullptr, &registers);
}
#elif defined(__aarch64__)
constexpr int kRegisterSet = 1;        // NT_PRSTATUS
constexpr int kSystemCallSet = 0x404;  // NT_ARM_SYSTEM_CALL

user_regs_struct registers_of(pid_t pid) {
  user_regs_struct registers{};
  iovec area{&registers, sizeof registers};
  ptrace(PTRACE_GETREGSET, pid, kRegisterSet, &area);
  return registers;
}

Entry read_entry(pid_t pid) {
  const auto registers = registers_of(pid);
  return {static_cast<long>(registers.regs[8]), {registers.regs[0], registers.regs[1], registers.regs[2]}};
}

void let_fail(pid_t pid, int error) {
  int none = -1;
  iovec call{&none, sizeof none};
  ptrace(PTRACE_SETREGSET, pid, kSystemCallSet, &call);
  auto registers = registers_of(pid);
  registers.regs[0] = static_cast<unsigned long long>(-static_cast<long long>(error));
  iovec area{&registers, sizeof registers};
  ptrace(PTRACE_SETREGSET, pid, kRegisterSet, &area);
}
#else
#error "how a system call is skipped on this machine is not known here"
#endif

/// Only calls of interest stop their process.
bool install_filter() {
  std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const auto& kind : call_kinds()) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(kind.number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

[[noreturn]] void be_program(const std::vector<std::string>& argv, int go) {
  char byte = 0;
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (read(go, &byte, 1) != 1 || !install_filter()) _exit(126);
  execvp(words[0], words.data());
  _exit(126);
}

std::string text_at(pid_t pid, unsigned long address) {
  std::array<char, 256> text{};
  const iovec here{text.data(), text.size() - 1};
  const iovec there{reinterpret_cast<void*>(address), text.size() - 1};
  if (process_vm_readv(pid, &here, 1, &there, 1, 0) > 0) return text.data();
  // The end of a page, perhaps.
  std::string word;
  for (unsigned long at = address; word.size() < text.size(); at += sizeof(long)) {
    errno = 0;
    const long piece = ptrace(PTRACE_PEEKDATA, pid, at, nullptr);
    if (errno != 0) break;
    for (std::size_t i = 0; i < sizeof piece; ++i) {
      const char byte = reinterpret_cast<const char*>(&piece)[i];
      if (byte == '\0') return word;
      word += byte;
    }
  }
  return word;
}

std::string link_of(pid_t pid, int descriptor) {
  std::array<char, 256> target{};
  const auto name = descriptor < 0 ? fmt::format("/proc/{}/cwd", pid) : fmt::format("/proc/{}/fd/{}", pid, descriptor);
  return readlink(name.c_str(), target.data(), target.size() - 1) > 0 ? target.data() : "?";
}

std::string without_numbers(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) plain += c <= ' ' || c > '~' ? '_' : c;
    if (digit && (plain.empty() || plain.back() != 'N')) plain += 'N';
  }
  return plain.empty() ? "-" : plain;
}

std::string object_of(pid_t pid, const CallKind& kind, const Entry& entry) {
  const auto descriptor = static_cast<int>(entry.arguments[0]);
  switch (kind.names) {
    case Names::nothing:
      return "-";
    case Names::descriptor:
      return without_numbers(link_of(pid, descriptor));
    case Names::path:
      return without_numbers(text_at(pid, entry.arguments[0]));
    case Names::path_at: {
      const auto path = text_at(pid, entry.arguments[1]);
      const bool whole = path.starts_with('/') || descriptor == AT_FDCWD;
      return without_numbers(whole ? path : link_of(pid, descriptor) + "/" + path);
    }
  }
  return "-";
}

/// One process that is followed.
struct Tracee {
  std::string name;
  unsigned children = 0;
  std::map<std::string_view, unsigned> made;  ///< calls by name
};

class Tracer {
 public:
  Tracer(const std::optional<Fault>& fault, Record record) : fault_(fault), record_(record) {}
  Trace run(const std::vector<std::string>& argv, std::chrono::milliseconds limit);

 private:
  void follow(pid_t main, Clock::time_point latest);
  void take(pid_t pid, int status);
  void take_call(pid_t pid);
  void spoil(pid_t pid);
  void take_birth(pid_t parent);
  void go_on(pid_t pid, int signal = 0) const { ptrace(PTRACE_CONT, pid, nullptr, signal); }

  const std::optional<Fault>& fault_;
  Record record_;
  Trace trace_;
  pid_t main_ = -1;
  std::map<pid_t, Tracee> tracees_;
  std::map<pid_t, int> early_;  ///< stopped before its parent told of it
  bool continue_it_ = false;
};

void ignore_alarm(int) {}

Trace Tracer::run(const std::vector<std::string>& argv, std::chrono::milliseconds limit) {
  int go[2] = {-1, -1};
  if (pipe(go) != 0) return {};
  struct sigaction wake {};
  wake.sa_handler = ignore_alarm;  // no SA_RESTART: it ends a wait
  sigaction(SIGALRM, &wake, nullptr);
  const itimerval tick{{0, 100'000}, {0, 100'000}};
  const pid_t pid = fork();
  if (pid == 0) {
    close(go[1]);
    be_program(argv, go[0]);
  }
  close(go[0]);
  static constexpr long kOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD |
                                   PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
  if (ptrace(PTRACE_SEIZE, pid, nullptr, kOptions) != 0) return {};
  tracees_[pid].name = "0";
  main_ = pid;
  setitimer(ITIMER_REAL, &tick, nullptr);
  (void)!write(go[1], "x", 1);
  close(go[1]);
  follow(pid, Clock::now() + limit);
  return std::move(trace_);
}

void Tracer::follow(pid_t main, Clock::time_point latest) {
  std::optional<Clock::time_point> ended;
  while (!tracees_.empty()) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, __WALL);
    if (pid < 0 && errno == ECHILD) break;
    if (pid > 0 && (WIFEXITED(status) || WIFSIGNALED(status))) {
      if (pid == main) {
        trace_.status = status;
        ended = Clock::now();
      }
      tracees_.erase(pid);
    } else if (pid > 0) {
      take(pid, status);
    }
    if (!ended && Clock::now() > latest && !trace_.overdue) {
      trace_.overdue = true;
      kill(main, SIGKILL);
    }
    if (ended && Clock::now() > *ended + kPatience) break;
  }
  for (const auto& [pid, tracee] : tracees_) {
    trace_.left.push_back(tracee.name + ":" + without_numbers(lab::read_file(fmt::format("/proc/{}/comm", pid))));
    kill(pid, SIGKILL);
  }
}

void Tracer::take(pid_t pid, int status) {
  if (!tracees_.contains(pid)) {
    early_[pid] = status;  // waits until its parent has told of it
    return;
  }
  const int signal = WSTOPSIG(status);
  switch (status >> 16) {
    case PTRACE_EVENT_SECCOMP:
      return take_call(pid);
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
      take_birth(pid);
      return go_on(pid);
    case PTRACE_EVENT_EXEC:
      return go_on(pid);
    case PTRACE_EVENT_STOP:
      if (signal == SIGTRAP) return go_on(pid);
      ptrace(PTRACE_LISTEN, pid, nullptr, nullptr);  // it stays stopped as it would without us
      if (continue_it_) kill(pid, SIGCONT);
      return;
    default:
      break;
  }
  if (signal == (SIGTRAP | 0x80)) {  // the end of the call after which it is to get its signal
    static constexpr int kEnd = PTRACE_SYSCALL_INFO_EXIT;
    struct __ptrace_syscall_info info {};
    const bool at_end =
        ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0 || static_cast<int>(info.op) == kEnd;
    if (!at_end) {
      ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
      return;
    }
    kill(pid, fault_->value);
    return go_on(pid);
  }
  go_on(pid, signal);
}

void Tracer::take_birth(pid_t parent) {
  unsigned long child = 0;
  ptrace(PTRACE_GETEVENTMSG, parent, nullptr, &child);
  Tracee& family = tracees_[parent];
  const auto pid = static_cast<pid_t>(child);
  tracees_[pid].name = fmt::format("{}.{}", family.name, family.children++);
  const auto waiting = early_.find(pid);
  if (waiting == early_.end()) return;
  const int status = waiting->second;
  early_.erase(waiting);
  take(pid, status);
}

void Tracer::take_call(pid_t pid) {
  Tracee& tracee = tracees_[pid];
  const Entry entry = read_entry(pid);
  const CallKind* kind = find_kind(entry.number);
  if (kind == nullptr) return go_on(pid);
  const CallKey key{tracee.name, std::string(kind->name), tracee.made[kind->name]++};
  if (record_ == Record::calls) {
    const std::string comm = lab::read_file(fmt::format("/proc/{}/comm", pid));
    trace_.calls.push_back({key, without_numbers(std::string(vacate::trim(comm))), object_of(pid, *kind, entry)});
  }
  if (!trace_.reached && fault_ && fault_->at == key) {
    trace_.reached = true;
    return spoil(pid);
  }
  if (trace_.reached && fault_->act == Act::fail_from && fault_->at.call == kind->name) let_fail(pid, fault_->value);
  go_on(pid);
}

void Tracer::spoil(pid_t pid) {
  switch (fault_->act) {
    case Act::fail:
    case Act::fail_from:
      let_fail(pid, fault_->value);
      break;
    case Act::signal_before:
      kill(pid, fault_->value);
      break;
    case Act::stop:
      continue_it_ = true;
      kill(pid, SIGSTOP);
      break;
    case Act::signal_twice:
      kill(pid, fault_->value);
      [[fallthrough]];
    case Act::signal_after:
      ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
      return;
  }
  go_on(pid);
}

constexpr std::array<std::pair<Act, std::string_view>, 6> kActs = {{{Act::fail, "fail"},
                                                                    {Act::fail_from, "from"},
                                                                    {Act::signal_before, "before"},
                                                                    {Act::signal_after, "after"},
                                                                    {Act::signal_twice, "twice"},
                                                                    {Act::stop, "stop"}}};

std::string_view word_of(Act act) {
  for (const auto& [known, word] : kActs)
    if (known == act) return word;
  return "?";
}

std::string value_text(const Fault& fault) {
  const char* name =
      fault.act == Act::fail || fault.act == Act::fail_from ? strerrorname_np(fault.value) : sigabbrev_np(fault.value);
  return fault.act == Act::stop || name == nullptr ? std::to_string(fault.value) : name;
}

std::optional<int> value_of(Act act, std::string_view text) {
  static constexpr int kMost = 200;
  for (int number = 0; number < kMost; ++number)
    if (value_text({{}, act, number}) == text) return number;
  return std::nullopt;
}

}  // namespace

Trace run_traced(const std::vector<std::string>& argv, const std::optional<Fault>& fault, Record record,
                 std::chrono::milliseconds limit) {
  return Tracer(fault, record).run(argv, limit);
}

std::string to_text(const Fault& fault) {
  return fmt::format("{}:{}:{}:{}:{}", fault.at.process, fault.at.call, fault.at.ordinal, word_of(fault.act),
                     value_text(fault));
}

std::optional<Fault> parse_fault(const std::string& text) {
  const auto parts = vacate::split(text, ':');
  if (parts.size() != 5) return std::nullopt;
  Fault fault;
  fault.at = {std::string(parts[0]), std::string(parts[1]),
              static_cast<unsigned>(vacate::parse_unsigned(parts[2]).value_or(0))};
  for (const auto& [act, word] : kActs) {
    if (word != parts[3]) continue;
    const auto value = value_of(act, parts[4]);
    if (!value) return std::nullopt;
    fault.act = act;
    fault.value = *value;
    return fault;
  }
  return std::nullopt;
}

}  // namespace fault
