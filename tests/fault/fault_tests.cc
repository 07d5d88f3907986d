// SPDX-License-Identifier: Apache-2.0
// A `free` of eight holders in which one system call fails, or that gets a signal at one, for each of its calls in turn
// or for a sample of them. See README.md beside this file.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "bomb.h"
#include "calls.h"
#include "stage.h"

namespace fault {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSkip = 77;

struct Options {
  std::uint32_t seed = 1;
  std::chrono::seconds time{60};
  bool all = false;     ///< every fault, however long it takes
  bool each = false;    ///< one of every class, however long it takes
  bool list = false;    ///< only says which there are
  bool limits = false;  ///< too little of everything instead, each time for a whole run
  unsigned jobs = 2;
  std::string matching;  ///< only faults whose class has this in it
  std::optional<Fault> one;
};

/// Something to be tried, and what it is one of many of.
struct Trial {
  Trouble trouble;
  std::string kind;
};

std::string name_of(const Trouble& trouble) { return trouble.fault ? to_text(*trouble.fault) : trouble.around; }

void add_trials(const Call& call, std::vector<Trial>& trials) {
  const auto add = [&](Act act, int value) {
    const Fault fault{call.key, act, value};
    const auto text = to_text(fault);
    const auto how = text.substr(text.find(':', text.find(':', text.find(':') + 1) + 1) + 1);
    trials.push_back({{fault}, fmt::format("{} {} {} {}", call.thread_name, call.key.call, call.object, how)});
  };
  const auto& errors = find_kind(call.key.call)->errors;
  for (const int error : errors) add(Act::fail, error);
  // Who may signal one and not the next is no fault that there is.
  if (errors.front() != EINTR && call.key.call != "pidfd_send_signal") add(Act::fail_from, errors.front());
  add(Act::signal_before, SIGKILL);
  if (call.key.process != "0") return;
  add(Act::signal_after, SIGKILL);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) add(Act::signal_before, signal);
  add(Act::signal_twice, SIGTERM);
  add(Act::stop, 0);
}

/// Too few descriptors, too little memory, nowhere to write to.
std::vector<Trial> trials_of_limits() {
  std::vector<std::string> troubles;
  for (int count = 4; count <= 48; count += count < 32 ? 1 : 4) troubles.push_back(fmt::format("ulimit -n {}", count));
  for (int kib = 6800; kib <= 8000; kib += 25) troubles.push_back(fmt::format("ulimit -v {}", kib));
  for (const char* where :
       {">/dev/full", "2>/dev/full", ">/dev/full 2>/dev/full", "<&-", ">&-", "2>&-", "<&- >&- 2>&-"})
    troubles.push_back(fmt::format("exec {}", where));
  troubles.emplace_back("ulimit -f 0");
  for (const int kib : {64, 512}) troubles.push_back(fmt::format("ulimit -s {}", kib));
  std::vector<Trial> trials;
  for (const auto& trouble : troubles) trials.push_back({{std::nullopt, trouble + "; exec \"$@\""}, "for a whole run"});
  return trials;
}

/// One of each kind first, in random order, then the rest.
std::vector<Trial> ordered(std::vector<Trial> trials, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::shuffle(trials.begin(), trials.end(), random);
  std::set<std::string> seen;
  std::stable_partition(trials.begin(), trials.end(),
                        [&](const Trial& trial) { return seen.insert(trial.kind).second; });
  return trials;
}

std::size_t kinds_in(const std::vector<Trial>& trials) {
  std::set<std::string> kinds;
  for (const auto& trial : trials) kinds.insert(trial.kind);
  return kinds.size();
}

/// Whether all was as it should be.
bool report(const Trial& trial, const Played& played) {
  if (played.cannot) {
    fmt::print("broken: {}: {}\n", name_of(trial.trouble), *played.cannot);
  } else if (!played.wrong.empty()) {
    fmt::print("FAULT {} ({})\n", name_of(trial.trouble), trial.kind);
    for (const auto& line : played.wrong) fmt::print("  {}\n", line);
    fmt::print("  it said: {}\n", played.ended);
  }
  std::fflush(stdout);
  return !played.cannot && played.wrong.empty();
}

/// Every `jobs`th trial from `first` on; status of the worker's process.
int work(const std::vector<Trial>& trials, std::size_t first, const Options& options, Clock::time_point until) {
  std::size_t done = 0;
  std::size_t missed = 0;
  std::size_t failed = 0;
  for (std::size_t i = first; i < trials.size(); i += options.jobs) {
    if (!options.all && !options.each && Clock::now() > until) break;
    const Played played = play(trials[i].trouble, Record::nothing);
    ++done;
    missed += played.reached || !trials[i].trouble.fault ? 0 : 1;
    failed += report(trials[i], played) ? 0 : 1;
  }
  fmt::print("{} played, {} of them did not come to their call, {} failed\n", done, missed, failed);
  std::fflush(stdout);
  return failed == 0 ? 0 : 1;
}

int play_all(const std::vector<Trial>& trials, const Options& options) {
  const auto until = Clock::now() + options.time;
  std::vector<pid_t> workers;
  std::fflush(stdout);
  for (unsigned i = 0; i < options.jobs; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(work(trials, i, options, until));
    workers.push_back(pid);
  }
  int worst = 0;
  for (const pid_t pid : workers) {
    int status = 0;
    waitpid(pid, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  return worst;
}

void list_kinds(const std::vector<Trial>& trials) {
  std::map<std::string, std::size_t> kinds;
  for (const auto& trial : trials) ++kinds[trial.kind];
  for (const auto& [kind, count] : kinds) fmt::print("{:>5} {}\n", count, kind);
}

int run(const Options& options) {
  if (geteuid() != 0) {
    fmt::print("skipped: needs root\n");
    return kSkip;
  }
  if (options.one) return report({{options.one}, "as asked for"}, play({options.one}, Record::nothing)) ? 0 : 1;
  if (options.limits) return play_all(trials_of_limits(), options);
  const Played plain = play({}, Record::calls);
  if (plain.cannot) {
    fmt::print("skipped: {}\n", *plain.cannot);
    return kSkip;
  }
  if (!report({{}, "no fault at all"}, plain)) return 1;
  std::vector<Trial> trials;
  for (const auto& call : plain.calls) add_trials(call, trials);
  std::erase_if(trials, [&](const Trial& trial) { return trial.kind.find(options.matching) == std::string::npos; });
  trials = ordered(std::move(trials), options.seed);
  const auto kinds = kinds_in(trials);
  fmt::print("{} calls, {} faults of {} kinds, seed {}\n", plain.calls.size(), trials.size(), kinds, options.seed);
  if (options.list) {
    list_kinds(trials);
    return 0;
  }
  if (options.each) trials.resize(kinds);
  return play_all(trials, options);
}

/// Nothing: not understood.
std::optional<Options> parse(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--all") {
      options.all = true;
    } else if (words[i] == "--each") {
      options.each = true;
    } else if (words[i] == "--list") {
      options.list = true;
    } else if (words[i] == "--limits") {
      options.limits = options.all = true;
    } else if (i + 1 == words.size()) {
      return std::nullopt;
    } else if (words[i] == "--matching") {
      options.matching = words[++i];
    } else if (words[i] == "--one") {
      options.one = parse_fault(words[++i]);
      if (!options.one) return std::nullopt;
    } else {
      const auto number = vacate::parse_unsigned(words[i + 1]);
      if (!number || *number > 1'000'000) return std::nullopt;
      if (words[i] == "--seed")
        options.seed = static_cast<std::uint32_t>(*number);
      else if (words[i] == "--seconds")
        options.time = std::chrono::seconds(*number);
      else if (words[i] == "--jobs" && *number > 0)
        options.jobs = static_cast<unsigned>(*number);
      else
        return std::nullopt;
      ++i;
    }
  }
  return options;
}

}  // namespace
}  // namespace fault

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "--trace") return fault::trace_command({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == "--be-bomb") return fault::be_bomb({words.begin() + 1, words.end()});
  if (words == std::vector<std::string>{"--bomb"}) return fault::play_bomb();
  const auto options = fault::parse(words);
  if (options) return fault::run(*options);
  fmt::print(
      stderr,
      "usage: fault_tests [--seconds N] [--seed N] [--jobs N] [--matching TEXT] [--each|--all|--limits|--bomb|--list] "
      "[--one FAULT]\n");
  return 2;
}
