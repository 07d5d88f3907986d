// SPDX-License-Identifier: Apache-2.0
#include "probe/supervision.h"

#include <fcntl.h>

#include <algorithm>

#include "base/text.h"
#include "model/origin.h"
#include "os/slurm.h"

namespace vacate {
namespace {

constexpr std::size_t kMostQuestions = 256;  // of each kind: no machine has more supervisors of GPU work than that
constexpr std::chrono::milliseconds kServices{1000};
constexpr std::chrono::milliseconds kJobs{2000};
constexpr std::size_t kLongestUnit = 256;  // systemd's UNIT_NAME_MAX is 255

template <class T>
void add_once(std::vector<T>& list, T entry) {
  const auto at = std::lower_bound(list.begin(), list.end(), entry);
  if (list.size() < kMostQuestions && (at == list.end() || *at != entry)) list.insert(at, std::move(entry));
}

/// Are containers in this path those of the system's own runtimes, whose state lies where container_state.h looks?
/// Those of a user's, or of a service that runs some for itself, keep theirs elsewhere.
bool is_of_system_runtime(std::string_view path) {
  const auto parts = split(path, '/');
  if (parts.size() < 3 || !parts[0].empty()) return false;
  const auto top = parts[1];
  const bool known = top == "system.slice" || top == "machine.slice" || top == "docker" || top == "libpod_parent" ||
                     top == "kubepods" || top == "kubepods.slice";
  // The last scope may be the container's own; one above it, or a service, belongs to somebody else.
  const auto scope = std::find_if(parts.begin(), parts.end(), [](auto part) { return part.ends_with(".scope"); });
  const bool in_service = std::any_of(parts.begin(), scope, [](auto part) { return part.ends_with(".service"); });
  return known && !in_service;
}

bool has_digits_of_container(std::string_view id) {
  static constexpr std::size_t kDigits = 64;
  return id.size() == kDigits && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_same_folder(const Result<FileIdentity>& a, const Result<FileIdentity>& b) {
  return a && b && a->device == b->device && a->inode == b->inode;
}

bool is_host_view(const ProcDirectory& root, const Host& host) {
  return host.whole_host && is_same_folder(root.identity("1/root/run"), read_identity(AT_FDCWD, "/run")) &&
         is_same_folder(root.identity("1/root/usr/bin"), read_identity(AT_FDCWD, "/usr/bin"));
}

}  // namespace

SupervisionQuestions questions_about(const std::vector<Process>& processes) {
  SupervisionQuestions questions;
  for (const auto& process : processes) {
    if (!process.detailed || process.cgroup.empty() || is_gone(process)) continue;
    const auto origin = parse_origin(process.cgroup);
    if (origin.service && origin.service->size() < kLongestUnit) {
      if (auto group = control_group_of_unit(process.cgroup, *origin.service))
        add_once(questions.units, {*origin.service, *std::move(group)});
    }
    if (origin.container && !origin.is_outside) {
      const bool findable = has_digits_of_container(*origin.container) && is_of_system_runtime(process.cgroup);
      add_once(questions.containers, {*origin.container, findable ? origin.runtime : std::string()});
    }
    // A number as Slurm writes it: scontrol would take "12_3" or "+5" for something else.
    if (origin.slurm_job && !origin.is_outside && parse_unsigned(*origin.slurm_job))
      add_once(questions.jobs, *origin.slurm_job);
  }
  return questions;
}

Existence first_process_of(const std::string& id, const std::vector<Process>& processes) {
  for (const auto& process : processes) {
    if (!process.detailed || is_gone(process) || process.ns_pids.size() < 2 || process.ns_pids.back() != 1) continue;
    if (parse_origin(process.cgroup).container == id)
      return {id, true, "its first process, " + std::to_string(process.key.pid)};
  }
  return {id, Unknown::not_asked, {}};
}

bool is_looked_after(const std::string& id, const std::vector<Process>& processes) {
  return std::any_of(processes.begin(), processes.end(), [&](const Process& process) {
    if (!process.detailed || is_gone(process)) return false;
    // Arguments that could not be read may be those of its shim.
    if (!process.argv) return parse_origin(process.cgroup).container != id;
    return std::find(process.argv->begin(), process.argv->end(), id) != process.argv->end();
  });
}

Supervision::Supervision(const ProcDirectory& root, const Host& host, const std::vector<Process>& processes)
    : root_(root),
      questions_(questions_about(processes)),
      is_host_(!(questions_.containers.empty() && questions_.jobs.empty()) && is_host_view(root, host)),
      services_(questions_.units, host.whole_host ? ManagerPids::ours : ManagerPids::foreign) {}

void Supervision::finish(const std::vector<Process>& processes, Snapshot& snapshot) {
  snapshot.containers = containers(processes);
  snapshot.jobs = jobs(processes);
  snapshot.services = services_.finish(Deadline::after(kServices));
}

std::vector<Existence> Supervision::containers(const std::vector<Process>& processes) const {
  std::vector<Existence> answers;
  std::vector<ContainerQuestion> open;
  for (const auto& question : questions_.containers) {
    auto answer = first_process_of(question.id, processes);
    if (!answer.exists && is_host_ && has_digits_of_container(question.id)) open.push_back(question);
    answers.push_back(std::move(answer));
  }
  for (auto& found : look_up_containers(open)) {
    const bool gone = found.exists.known() && !*found.exists;
    if (gone && is_looked_after(found.id, processes)) {
      found.exists = Unknown::implausible;
      found.source = "a process looks after it";
    }
    const auto at = std::find_if(answers.begin(), answers.end(), [&](const auto& a) { return a.id == found.id; });
    if (at != answers.end()) *at = std::move(found);
  }
  // One id in control groups of two kinds: what exists by one account exists.
  std::vector<Existence> merged;
  for (auto& answer : answers) {
    if (merged.empty() || merged.back().id != answer.id) {
      merged.push_back(std::move(answer));
    } else if (!merged.back().exists || (answer.exists.known() && *answer.exists)) {
      merged.back() = std::move(answer);
    }
  }
  return merged;
}

/// A live slurmstepd of root's runs its job's steps for as long as there are any.
std::optional<std::string> Supervision::job_of_step_daemon(const Process& process) const {
  if (process.comm != "slurmstepd" || is_gone(process)) return std::nullopt;
  const auto directory = root_.open(process.key.pid);
  const auto status = directory ? directory->status() : Result<ProcStatus>(directory.error());
  const auto cgroup = directory ? directory->read("cgroup", 65536) : Result<std::string>(directory.error());
  if (!status || !cgroup || status->effective_uid != uid_t{0}) return std::nullopt;
  return parse_origin(parse_cgroup(*cgroup)).slurm_job;
}

std::vector<Existence> Supervision::jobs(const std::vector<Process>& processes) const {
  std::vector<Existence> answers;
  if (questions_.jobs.empty()) return answers;
  for (const auto& id : questions_.jobs) answers.push_back({id, Unknown::not_asked, {}});
  for (const auto& process : processes) {
    const auto job = job_of_step_daemon(process);
    if (!job) continue;
    for (auto& answer : answers) {
      if (answer.id == *job) answer = {*job, true, "slurmstepd " + std::to_string(process.key.pid)};
    }
  }
  std::vector<std::string> open;
  for (const auto& answer : answers) {
    if (!answer.exists && is_host_) open.push_back(answer.id);
  }
  if (open.empty()) return answers;
  for (auto& said : ask_slurm(open, Deadline::after(kJobs))) {
    for (auto& answer : answers) {
      if (answer.id == said.id) answer = said;
    }
  }
  return answers;
}

}  // namespace vacate
