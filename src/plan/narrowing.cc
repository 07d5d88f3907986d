// SPDX-License-Identifier: Apache-2.0
#include "plan/narrowing.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "model/origin.h"

namespace vacate {
namespace {

constexpr std::size_t kWholeId = 64;
constexpr std::size_t kShortestBeginning = 12;
constexpr std::size_t kLongestShown = 96;

bool is_beginning(std::string_view word) {
  return word.size() >= kShortestBeginning && word.size() <= kWholeId &&
         std::all_of(word.begin(), word.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool names_container(std::string_view word, const std::optional<std::string>& container) {
  if (!container) return false;
  if (*container == word) return true;
  return container->size() == kWholeId && is_beginning(word) && container->starts_with(word);
}

bool is_in_container(std::string_view word, const Origin& origin) {
  return names_container(word, origin.container) || names_container(word, origin.inner_container);
}

// PBS adds the server's name to the number.
bool is_of_job(std::string_view word, const Origin& origin) {
  return origin.job && origin.job->starts_with(word) &&
         (origin.job->size() == word.size() || (*origin.job)[word.size()] == '.');
}

template <class Predicate>
bool none_or_any(const std::vector<std::string>& words, Predicate predicate) {
  return words.empty() || std::any_of(words.begin(), words.end(), predicate);
}

Error wrong(std::string_view option, std::string_view word, std::string_view what) {
  return {ErrorCode::malformed, fmt::format("{}: '{}' {}", option, printable(word, kLongestShown), what)};
}

bool asks_for_origin(const Selection& selection) noexcept {
  return !selection.units.empty() || !selection.containers.empty() || !selection.jobs.empty() ||
         !selection.cgroups.empty();
}

// Every user's manager names its units as it likes: those of others are no answer to a unit's name.
bool is_of_unit(std::string_view word, const Origin& origin, const Caller& caller) {
  if (origin.unit != word) return false;
  return !origin.user_manager || (!caller.root && *origin.user_manager == caller.uid);
}

bool has_origin(const Process& process, const Selection& selection, const Caller& caller) {
  if (!asks_for_origin(selection)) return true;
  if (process.cgroup.empty()) return false;
  const auto origin = parse_origin(process.cgroup);
  return none_or_any(selection.units, [&](const std::string& word) { return is_of_unit(word, origin, caller); }) &&
         none_or_any(selection.containers, [&](const std::string& word) { return is_in_container(word, origin); }) &&
         none_or_any(selection.jobs, [&](const std::string& word) { return is_of_job(word, origin); }) &&
         none_or_any(selection.cgroups, [&](const std::string& word) { return is_in_cgroup(process.cgroup, word); });
}

}  // namespace

bool is_narrowing(const Selection& selection) noexcept {
  return !selection.pids.empty() || !selection.users.empty() || asks_for_origin(selection);
}

bool is_within(const Snapshot& snapshot, pid_t pid, const Selection& selection) {
  if (selection.users.empty() && !asks_for_origin(selection)) return true;
  const auto* process = snapshot.find(pid);
  if (process == nullptr) return false;
  const auto& users = selection.users;
  const bool has_user =
      users.empty() || (process->uid.known() && std::find(users.begin(), users.end(), *process->uid) != users.end());
  return has_user && has_origin(*process, selection, snapshot.caller);
}

Result<void> check_narrowing(const Snapshot& snapshot, const Selection& selection) {
  if (selection.containers.empty()) return {};
  std::set<std::string> containers;
  for (const auto& process : snapshot.processes) {
    if (process.cgroup.empty()) continue;
    const auto origin = parse_origin(process.cgroup);
    if (origin.container) containers.insert(*origin.container);
    if (origin.inner_container) containers.insert(*origin.inner_container);
  }
  for (const auto& word : selection.containers) {
    if (containers.contains(word)) continue;  // a name, or a whole id
    std::vector<std::string> meant;
    std::copy_if(containers.begin(), containers.end(), std::back_inserter(meant),
                 [&](const std::string& container) { return names_container(word, container); });
    if (meant.size() > 1)
      return wrong("--container", word, fmt::format("is the beginning of several: {}", fmt::join(meant, ", ")));
  }
  return {};
}

namespace {

std::string name_of(uid_t uid, const Snapshot& snapshot) {
  const auto known = std::find_if(snapshot.processes.begin(), snapshot.processes.end(), [&](const Process& process) {
    return process.uid.known() && *process.uid == uid && !process.user.empty();
  });
  return known == snapshot.processes.end() ? std::to_string(uid) : printable(known->user, kLongestShown);
}

/// Several users are one question, whose of them it is: one that has nothing beside one that has is not worth a line.
std::optional<std::string> unmatched_users(const Snapshot& snapshot, const Attribution& attribution,
                                           const Selection& selection) {
  Selection alone;
  alone.users = selection.users;
  const auto fits = [&](const Holder& holder) { return is_within(snapshot, holder.key.pid, alone); };
  if (alone.users.empty() || std::any_of(attribution.holders.begin(), attribution.holders.end(), fits))
    return std::nullopt;
  std::vector<std::string> names;
  for (const auto uid : alone.users) names.push_back(name_of(uid, snapshot));
  return fmt::format("no holder{} belongs to user {}", snapshot.caller.root ? "" : " that can be seen",
                     fmt::join(names, " or "));
}

}  // namespace

std::vector<std::string> unmatched_words(const Snapshot& snapshot, const Attribution& attribution,
                                         const Selection& selection) {
  std::vector<std::string> lines;
  const auto note = [&](std::string_view kind, const std::vector<std::string>& words,
                        std::vector<std::string> Selection::*list) {
    for (const auto& word : words) {
      Selection alone;
      alone.*list = {word};
      const bool has_holder =
          std::any_of(attribution.holders.begin(), attribution.holders.end(),
                      [&](const Holder& holder) { return is_within(snapshot, holder.key.pid, alone); });
      if (!has_holder)
        lines.push_back(fmt::format("no holder{} is in {} {}", snapshot.caller.root ? "" : " that can be seen", kind,
                                    printable(word, kLongestShown)));
    }
  };
  if (auto line = unmatched_users(snapshot, attribution, selection)) lines.push_back(std::move(*line));
  note("unit", selection.units, &Selection::units);
  note("container", selection.containers, &Selection::containers);
  note("job", selection.jobs, &Selection::jobs);
  note("control group", selection.cgroups, &Selection::cgroups);
  return lines;
}

Result<std::string> parse_unit_word(std::string_view word) {
  if (word.find_first_of("*?[") != std::string_view::npos)
    return wrong("--unit", word, "is a pattern; name units one by one");
  if (word.empty() || word.find('/') != std::string_view::npos)
    return wrong("--unit", word, "is not the name of a unit");
  if (word.ends_with(".slice")) return wrong("--unit", word, "is a slice; give its path with --cgroup");
  const bool is_whole = word.ends_with(".service") || word.ends_with(".scope");
  return std::string(word) + (is_whole ? "" : ".service");
}

Result<std::string> parse_container_word(std::string_view word) {
  if (word.empty() || word.find('/') != std::string_view::npos)
    return wrong("--container", word, "is no id of a container, beginning of one (12 digits at least) or name");
  return std::string(word);
}

Result<std::string> parse_job_word(std::string_view word) {
  const bool is_number =
      !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return wrong("--job", word, "is not the number of a job");
  return std::string(word);
}

Result<std::string> parse_cgroup_word(std::string_view word) {
  if (!word.starts_with('/'))
    return wrong("--cgroup", word, "is not an absolute path as in /proc/PID/cgroup, such as /system.slice/llm.service");
  return std::string(word);
}

}  // namespace vacate
