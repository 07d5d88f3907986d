// SPDX-License-Identifier: Apache-2.0
#include "os/slurm.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace vacate {
namespace {

constexpr std::array<std::string_view, 9> kEnded = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE", "FAILED",
                                                    "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "TIMEOUT"};
constexpr std::array<std::string_view, 7> kLive = {"RUNNING",   "SUSPENDED", "COMPLETING", "CONFIGURING",
                                                   "SIGNALING", "STOPPED",   "STAGE_OUT"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The value of `key` among the words of a record.
std::optional<std::string_view> value_of(std::string_view record, std::string_view key) {
  for (const auto word : split(record, ' ')) {
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
      return word.substr(key.size() + 1);
  }
  return std::nullopt;
}

Unknown reason_of(const Error& error) noexcept {
  switch (error.code) {
    case ErrorCode::timed_out:
      return Unknown::timed_out;
    case ErrorCode::gone:
      return Unknown::not_supported;
    case ErrorCode::denied:
      return Unknown::no_permission;
    default:
      return Unknown::failed;
  }
}

/// Where sites put it. Debian and the RPMs have the first.
const std::vector<std::string>& programs() {
  static const std::vector<std::string> kPaths = {"/usr/bin/scontrol", "/usr/local/bin/scontrol",
                                                  "/opt/slurm/bin/scontrol", "/usr/local/slurm/bin/scontrol"};
  return kPaths;
}

}  // namespace

Reading<bool> parse_job_answer(std::string_view id, const ProgramOutput& answer) {
  for (const auto line : split(answer.text, '\n')) {
    if (answer.exit_code > 0 && trim(line) == "slurm_load_jobs error: Invalid job id specified") return false;
    // The number of an array stands for all its tasks: only the record of this very number tells.
    if (answer.exit_code != 0 || !line.starts_with("JobId=") || value_of(line, "JobId") != id) continue;
    // The job's name comes before its state and is its user's: it could hold " JobState=".
    std::size_t states = 0;
    for (const auto word : split(line, ' ')) states += word.starts_with("JobState=") ? 1U : 0U;
    const auto state = value_of(line, "JobState");
    if (!state || states != 1) return Unknown::implausible;
    if (is_one_of(kEnded, *state)) return false;
    if (is_one_of(kLive, *state)) return true;
    return Unknown::not_supported;
  }
  return Unknown::failed;
}

std::vector<Existence> ask_slurm(const std::vector<std::string>& ids, Deadline deadline) {
  std::vector<Existence> answers;
  std::optional<Unknown> given_up;
  for (const auto& id : ids) {
    Existence job{id, Unknown::not_asked, "scontrol"};
    if (given_up) {
      job.exists = *given_up;
    } else if (const auto output = run_trusted_program(programs(), {"--oneliner", "show", "job", id}, deadline)) {
      job.exists = parse_job_answer(id, *output);
    } else {
      // The next question would fail in the same way.
      given_up = reason_of(output.error());
      job.exists = *given_up;
    }
    answers.push_back(std::move(job));
  }
  return answers;
}

}  // namespace vacate
