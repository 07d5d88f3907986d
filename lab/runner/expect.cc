// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/expect.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lab/runner/json_match.h"

namespace lab {
namespace {

using vacate::Result;

constexpr std::size_t kQuoteBytes = 200;

std::string quote(std::string_view text) { return fmt::format("'{}'", vacate::printable(text, kQuoteBytes)); }

const ActorStatus* status_of(const std::vector<ActorStatus>& statuses, const std::string& name) {
  const auto found =
      std::find_if(statuses.begin(), statuses.end(), [&](const ActorStatus& s) { return s.name == name; });
  return found == statuses.end() ? nullptr : &*found;
}

class Comparison {
 public:
  Comparison(const Expectations& expect, const Observation& seen) : expect_(expect), seen_(seen) {}

  void compare_result();
  void compare_actors();
  void compare_used();
  void compare_shm(const std::vector<ShmSpec>& made);
  void compare_texts();
  void compare_json();
  [[nodiscard]] std::vector<std::string> found() && { return std::move(found_); }

 private:
  template <class... Args>
  void differ(fmt::format_string<Args...> format, Args&&... args) {
    found_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  /// The processes that a glob names; complains under `key` if there is none.
  std::vector<ActorStatus> named(std::string_view key, const std::string& glob);
  void compare_alive(const ActorStatus& now);
  void compare_json_same(const Json& document);

  const Expectations& expect_;
  const Observation& seen_;
  std::vector<std::string> found_;
};

void Comparison::compare_result() {
  const CommandResult& result = seen_.result;
  if (result.timed_out) {
    differ("within: expected {:g} s at most, and it was ended when that was over", expect_.within);
    return;  // its exit code is that of being ended
  }
  if (result.seconds > expect_.within)
    differ("within: expected {:g} s at most, found {:.2f}", expect_.within, result.seconds);
  if (result.seconds < expect_.at_least) {
    differ("at_least: expected {:g} s or more, found {:.2f}", expect_.at_least, result.seconds);
  }
  if (expect_.exit.empty() ||
      std::find(expect_.exit.begin(), expect_.exit.end(), result.exit_code) != expect_.exit.end()) {
    return;
  }
  const auto word = signal_word(result.signal);
  differ("exit: expected {}, found {}{}", fmt::join(expect_.exit, " or "), result.exit_code,
         result.signal == 0 ? "" : fmt::format(" (signal {})", word.empty() ? std::to_string(result.signal) : word));
}

std::vector<ActorStatus> Comparison::named(std::string_view key, const std::string& glob) {
  std::vector<ActorStatus> matches;
  for (const ActorStatus& status : seen_.after) {
    if (status.pid != 0 && glob_matches(glob, status.name)) matches.push_back(status);
  }
  if (matches.empty()) differ("{}: '{}' names no process that has been started", key, glob);
  return matches;
}

void Comparison::compare_alive(const ActorStatus& now) {
  if (now.exited) {
    differ("alive: expected {} (pid {}) to live, it has ended ({})", now.name, now.pid, now.ended_by);
    return;
  }
  const ActorStatus* then = status_of(seen_.before, now.name);
  const bool same_process = then != nullptr && then->pid == now.pid;
  std::vector<std::string> sent;
  for (const auto& [number, count] : now.signals) {
    const auto old = same_process ? then->signals.find(number) : now.signals.end();
    const unsigned earlier = same_process && old != then->signals.end() ? old->second : 0;
    const auto word = signal_word(number);
    if (count > earlier) sent.push_back(word.empty() ? std::to_string(number) : std::string(word));
  }
  const unsigned count_then = same_process ? then->signal_count : 0;
  if (now.signal_count > count_then) {
    differ("alive: expected {} (pid {}) to get no signal, it got {}", now.name, now.pid,
           sent.empty() ? std::string("one") : fmt::format("{}", fmt::join(sent, ", ")));
  }
}

void Comparison::compare_actors() {
  for (const std::string& glob : expect_.gone) {
    for (const ActorStatus& status : named("gone", glob)) {
      if (!status.exited) differ("gone: expected {} (pid {}) to have ended, it lives", status.name, status.pid);
    }
  }
  for (const std::string& glob : expect_.alive) {
    for (const ActorStatus& status : named("alive", glob)) compare_alive(status);
  }
  for (const auto& [glob, how] : expect_.ended_by) {
    for (const ActorStatus& status : named("ended_by", glob)) {
      if (status.exited && status.ended_by == how) continue;
      differ("ended_by: expected {} (pid {}) to end by {}, {}", status.name, status.pid, how,
             status.exited ? "found " + status.ended_by : "it lives");
    }
  }
}

void Comparison::compare_used() {
  for (const auto& [gpu, mib] : expect_.used) {
    const auto index = static_cast<std::size_t>(gpu);
    if (index >= seen_.used.size()) {
      differ("used: expected {} MiB on GPU {}, the driver has no such GPU", mib, gpu);
    } else if (seen_.used[index] != mib) {
      differ("used: expected {} MiB on GPU {}, found {}", mib, gpu, seen_.used[index]);
    }
  }
}

void Comparison::compare_shm(const std::vector<ShmSpec>& made) {
  const auto is_there = [&](const std::string& name) {
    return std::find(seen_.shm.begin(), seen_.shm.end(), name) != seen_.shm.end();
  };
  for (const std::string& glob : expect_.shm_gone) {
    for (const std::string& name : seen_.shm) {
      if (glob_matches(glob, name)) differ("shm_gone: expected {} to be gone, it is there", quote(name));
    }
  }
  for (const std::string& glob : expect_.shm_kept) {
    bool known = false;  // a file that a command made is kept if anything of that name is there
    for (const ShmSpec& file : made) {
      if (file.sysv || !glob_matches(glob, file.name)) continue;
      known = true;
      if (!is_there(file.name)) differ("shm_kept: expected {} to be there, it is gone", quote(file.name));
    }
    const bool any =
        std::any_of(seen_.shm.begin(), seen_.shm.end(), [&](const auto& n) { return glob_matches(glob, n); });
    if (!known && !any) differ("shm_kept: expected {} to be there, it is gone", quote(glob));
  }
}

void Comparison::compare_texts() {
  const std::string both = seen_.result.out + seen_.result.err;
  for (const std::string& text : expect_.has) {
    if (both.find(text) == std::string::npos) differ("has: expected {} in the output, it is not there", quote(text));
  }
  for (const std::string& text : expect_.lacks) {
    if (both.find(text) != std::string::npos) differ("lacks: expected no {} in the output, it is there", quote(text));
  }
  if (expect_.same_bytes_as.empty()) return;
  const auto earlier = seen_.earlier.find(expect_.same_bytes_as);
  if (earlier == seen_.earlier.end()) {
    differ("same_bytes_as: step '{}' has no output", expect_.same_bytes_as);
  } else if (earlier->second != seen_.result.out) {
    const auto [a, b] =
        std::mismatch(earlier->second.begin(), earlier->second.end(), seen_.result.out.begin(), seen_.result.out.end());
    differ("same_bytes_as: expected the output of step '{}', found another from byte {} on", expect_.same_bytes_as,
           a - earlier->second.begin());
  }
}

void Comparison::compare_json() {
  if (expect_.json.empty() && expect_.json_same.empty()) return;
  const auto document = parse_json(seen_.result.out);
  if (!document) {
    differ("json: expected one JSON value on standard output, found {}",
           seen_.result.out.empty() ? "nothing" : "something else");
    return;
  }
  for (const JsonExpectation& expectation : expect_.json) {
    if (auto difference = json_difference(*document, expectation)) found_.push_back("json: " + *difference);
  }
  compare_json_same(*document);
}

void Comparison::compare_json_same(const Json& document) {
  for (const auto& [pointer, step] : expect_.json_same) {
    const auto earlier_text = seen_.earlier.find(step);
    const auto earlier = earlier_text == seen_.earlier.end() ? std::nullopt : parse_json(earlier_text->second);
    if (!earlier) {
      differ("json_same: {}: the output of step '{}' is not JSON", pointer, step);
      continue;
    }
    const auto then = find_json(*earlier, pointer);
    const auto now = find_json(document, pointer);
    if (!then) {
      differ("json_same: {}: in the output of step '{}' there is {}", pointer, step, then.error().message);
    } else if (!now) {
      differ("json_same: {}: expected {}, found {}", pointer, brief(**then), now.error().message);
    } else if (**then != **now) {
      differ("json_same: {}: expected {}, found {}", pointer, brief(**then), brief(**now));
    }
  }
}

/// Replaces marks in every string that `texts` gives access to.
Result<void> replace_all(std::vector<std::string*> texts, const PidOf& pid_of) {
  for (std::string* text : texts) {
    auto replaced = with_pids(*text, pid_of);
    if (!replaced) return replaced.error();
    *text = std::move(*replaced);
  }
  return {};
}

}  // namespace

Result<std::string> with_pids(std::string_view text, const PidOf& pid_of) {
  constexpr std::string_view kMark = "{pid:";
  std::string result;
  for (;;) {
    const auto begin = text.find(kMark);
    const auto end = begin == std::string_view::npos ? begin : text.find('}', begin);
    if (end == std::string_view::npos) break;
    const auto pid = pid_of(text.substr(begin + kMark.size(), end - begin - kMark.size()));
    if (!pid) return pid.error();
    result += text.substr(0, begin);
    result += std::to_string(*pid);
    text.remove_prefix(end + 1);
  }
  result += text;
  return result;
}

Result<Expectations> with_pids(Expectations expect, const PidOf& pid_of) {
  std::vector<std::string*> texts;
  for (JsonExpectation& expectation : expect.json) {
    texts.push_back(&expectation.pointer);
    if (auto* equal = std::get_if<expect::Equal>(&expectation.wanted)) texts.push_back(&equal->value.text);
    if (auto* contains = std::get_if<expect::Contains>(&expectation.wanted)) texts.push_back(&contains->text);
  }
  for (auto& [pointer, step] : expect.json_same) texts.push_back(&pointer);
  for (std::string& text : expect.has) texts.push_back(&text);
  for (std::string& text : expect.lacks) texts.push_back(&text);
  if (auto done = replace_all(std::move(texts), pid_of); !done) return done.error();
  return expect;
}

std::vector<std::string> differences(const Expectations& expect, const Observation& seen,
                                     const std::vector<ShmSpec>& shm_made) {
  Comparison comparison(expect, seen);
  comparison.compare_result();
  comparison.compare_actors();
  comparison.compare_used();
  comparison.compare_shm(shm_made);
  comparison.compare_texts();
  comparison.compare_json();
  return std::move(comparison).found();
}

}  // namespace lab
