// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/run_command.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include "base/text.h"
#include "lab/case/parse.h"
#include "lab/runner/junit.h"

namespace lab {
namespace {

using vacate::Deadline;

long count_of(const std::vector<CaseResult>& results, Verdict verdict) {
  return std::count_if(results.begin(), results.end(), [&](const CaseResult& r) { return r.verdict == verdict; });
}

CaseResult failed_before_start(const std::string& path, const std::string& why) {
  return {path, std::filesystem::path(path).stem().string(), "", Verdict::failed, why, 0};
}

/// Keeps up to `jobs` cases at work and hands out results in the order of the files.
class Pool {
 public:
  explicit Pool(const RunOptions& options, std::vector<std::string> files)
      : options_(options), files_(std::move(files)) {}

  std::vector<CaseResult> run();

 private:
  void start_next();
  /// Waits until at least one case has ended, and takes its verdict.
  void take_ended();
  void take(std::size_t index, CaseResult result);

  const RunOptions& options_;
  std::vector<std::string> files_;
  std::size_t next_ = 0;                       ///< first file that has not been started
  std::map<std::size_t, CaseWorker> workers_;  ///< by index of their file
  std::map<std::size_t, CaseResult> early_;    ///< verdicts that wait for an earlier case's
  std::vector<CaseResult> results_;
  bool stop_ = false;
};

void Pool::take(std::size_t index, CaseResult result) {
  if (result.verdict == Verdict::failed && !options_.keep_going) stop_ = true;
  early_.emplace(index, std::move(result));
  for (auto first = early_.begin(); first != early_.end() && first->first == results_.size();) {
    fmt::print("{}", result_text(first->second));
    std::fflush(stdout);
    results_.push_back(std::move(first->second));
    first = early_.erase(first);
  }
}

void Pool::start_next() {
  const std::size_t index = next_++;
  const std::string& path = files_[index];
  const auto scenario = read_case(path);
  if (!scenario) {
    std::string lines;
    for (const auto line : vacate::split(scenario.error().message, '\n')) lines += fmt::format("  {}\n", line);
    return take(index, failed_before_start(path, lines));
  }
  auto worker = CaseWorker::start(*scenario, options_.settings);
  if (!worker) return take(index, failed_before_start(path, fmt::format("  {}\n", worker.error().message)));
  workers_.emplace(index, std::move(*worker));
}

void Pool::take_ended() {
  std::vector<pollfd> polled;
  Deadline first = Deadline::never();
  for (const auto& [index, worker] : workers_) {
    polled.push_back({worker.pidfd(), POLLIN, 0});
    first = Deadline::earlier(first, worker.deadline());
  }
  if (::poll(polled.data(), polled.size(), first.poll_timeout_ms()) < 0) return;  // EINTR: the caller comes again
  std::size_t n = 0;
  for (auto worker = workers_.begin(); worker != workers_.end(); ++n) {
    if (polled[n].revents == 0 && !worker->second.deadline().passed()) {
      ++worker;
      continue;
    }
    take(worker->first, worker->second.finish());
    worker = workers_.erase(worker);
  }
}

std::vector<CaseResult> Pool::run() {
  const auto jobs = static_cast<std::size_t>(options_.jobs);
  while ((next_ < files_.size() && !stop_) || !workers_.empty()) {
    while (next_ < files_.size() && !stop_ && workers_.size() < jobs) start_next();
    if (!workers_.empty()) take_ended();
  }
  if (next_ < files_.size()) {
    fmt::print(stderr, "stopped after the first failure: {} cases were not run (--keep-going runs all)\n",
               files_.size() - next_);
  }
  return std::move(results_);
}

}  // namespace

std::vector<std::string> case_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code failure;
    if (!std::filesystem::is_directory(path, failure)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : std::filesystem::directory_iterator(path, failure)) {
      if (entry.path().extension() == ".toml") inside.push_back(entry.path().string());
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

std::string result_text(const CaseResult& result) {
  const std::string title = vacate::printable(result.title);
  switch (result.verdict) {
    case Verdict::passed:
      return fmt::format("ok   {} ({:.1f} s)  {}\n", result.name, result.seconds, title);
    case Verdict::skipped:
      return fmt::format("skip {}: {}\n", result.name, result.details);
    case Verdict::failed:
      break;
  }
  return fmt::format("FAIL {} ({:.1f} s)  {}\n{}", result.name, result.seconds, title, result.details);
}

std::string summary_text(const std::vector<CaseResult>& results) {
  const long skipped = count_of(results, Verdict::skipped);
  return fmt::format("{} passed, {} failed{}", count_of(results, Verdict::passed), count_of(results, Verdict::failed),
                     skipped > 0 ? fmt::format(", {} skipped", skipped) : "");
}

int run_command(const RunOptions& options) {
  auto files = case_files(options.files);
  if (files.empty()) {
    fmt::print(stderr, "vacate-lab: no case in {}: name files that end in .toml\n", fmt::join(options.files, ", "));
    return 2;
  }
  const auto results = Pool(options, std::move(files)).run();
  int status = count_of(results, Verdict::failed) > 0 ? 1 : 0;
  if (!options.junit.empty()) {
    if (const auto written = write_junit(options.junit, results); !written) {
      fmt::print(stderr, "vacate-lab: {}\n", written.error().message);
      status = 1;
    }
  }
  fmt::print("{}\n", summary_text(results));
  if (status == 0 && count_of(results, Verdict::skipped) == static_cast<long>(results.size())) return kSkipStatus;
  return status;
}

}  // namespace lab
