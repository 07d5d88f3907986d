// SPDX-License-Identifier: Apache-2.0
#include "checks.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace fault {
namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

constexpr int kLoaderFailed = 127;

void check_bystanders(const Scene& before, const Scene& after, Lines& wrong) {
  for (std::size_t i = 0; i < after.bystanders.size(); ++i) {
    const auto& now = after.bystanders[i];
    if (now.exited) wrong.push_back(fmt::format("bystander {} was ended by {}", now.name, now.ended_by));
    if (now.signal_count != before.bystanders[i].signal_count)
      wrong.push_back(fmt::format("bystander {} was sent a signal", now.name));
  }
}

bool all_gone(const Scene& scene) {
  return std::all_of(scene.leftovers.begin(), scene.leftovers.end(), [](const auto& each) { return each.exited; });
}

/// Success was claimed: is it true?
void check_claim(const Scene& after, const std::vector<std::uint64_t>& free_mib, Lines& wrong) {
  if (!all_gone(after)) wrong.push_back("false success: exit 0, and leftovers are there");
  if (after.used_mib != free_mib)
    wrong.push_back(fmt::format("false success: exit 0, and the driver has {} MiB in use instead of {}",
                                fmt::join(after.used_mib, ", "), fmt::join(free_mib, ", ")));
}

/// Every leftover that went is named as ended, and nobody is who is still there.
void check_results(const Json& report, const Scene& before, const Scene& after, Lines& wrong) {
  std::map<int, std::string> results;
  for (const auto& result : report.value("results", Json::array()))
    results[result.value("pid", 0)] = result.value("result", "");
  for (std::size_t i = 0; i < after.leftovers.size(); ++i) {
    const auto& now = after.leftovers[i];
    const auto said = results.find(now.pid);
    const bool named = said != results.end();
    if (named && (said->second == "gone" || said->second == "already-gone") && !now.exited)
      wrong.push_back(fmt::format("{} is called {} and is there", now.name, said->second));
    if (now.exited && !before.leftovers[i].exited && !named)
      wrong.push_back(fmt::format("{} went and no result names it", now.name));
  }
}

void check_gpus(const Json& report, const Scene& after, const std::vector<std::uint64_t>& free_mib, Lines& wrong) {
  for (const auto& gpu : report.value("gpus", Json::array())) {
    const auto index = gpu.value("index", std::size_t{0});
    const bool right = index < free_mib.size() && after.used_mib.at(index) == free_mib[index];
    if (gpu.value("verdict", "") == "released" && !right)
      wrong.push_back(fmt::format("GPU {} is called released, and {} MiB are in use", index, after.used_mib.at(index)));
  }
}

void check_report(const Observed& run, const Scene& before, const Scene& after,
                  const std::vector<std::uint64_t>& free_mib, Lines& wrong) {
  const Json report = Json::parse(run.out, nullptr, false);
  if (report.is_discarded() || !report.is_object()) {
    wrong.push_back("standard output is no JSON object");
    return;
  }
  if (report.value("exit", -1) != run.exit_code && !run.is_output_spoilt)
    wrong.push_back(fmt::format("the report says exit {}, it ended with {}", report.value("exit", -1), run.exit_code));
  check_results(report, before, after, wrong);
  check_gpus(report, after, free_mib, wrong);
}

/// It ended before its main function: by the loader's word, or by that of the C++ library for want of memory.
bool never_began(const Observed& run) {
  const bool no_memory = run.signal == SIGABRT && run.err == "terminate called without an active exception\n";
  return run.out.empty() && ((run.signal == 0 && run.exit_code == kLoaderFailed) || no_memory);
}

void check_exit(const Observed& run, Lines& wrong) {
  static const std::set<int> kKnown = {0, 1, 2, 3, 4, 70};
  const bool by_signal =
      run.expected_signal != 0 && (run.signal == run.expected_signal || run.exit_code == 128 + run.expected_signal);
  if (run.signal != 0 && run.signal != run.expected_signal)
    wrong.push_back(fmt::format("it was ended by signal {}", run.signal));
  // 5 says that no process holds what is held; here processes do.
  if (run.signal == 0 && !by_signal && !kKnown.contains(run.exit_code))
    wrong.push_back(fmt::format("exit code {}", run.exit_code));
}

}  // namespace

Lines judge(const Observed& run, const Scene& before, const Scene& after, const std::vector<std::uint64_t>& free_mib) {
  Lines wrong;
  check_bystanders(before, after, wrong);
  if (run.was_starting && never_began(run)) return wrong;
  check_exit(run, wrong);
  if (run.signal != 0) return wrong;
  if (run.exit_code == 0) check_claim(after, free_mib, wrong);
  if (!run.out.empty() && !(run.is_output_spoilt && run.exit_code != 0))
    check_report(run, before, after, free_mib, wrong);
  if (run.out.empty() && run.err.empty() && !run.is_output_spoilt) wrong.push_back("it ended without a word");
  return wrong;
}

Lines judge_rerun(const Observed& run, const Scene& before, const Scene& after,
                  const std::vector<std::uint64_t>& free_mib) {
  // Who was asked to end before may have gone at any moment, unnamed.
  Scene settled = before;
  for (auto& each : settled.leftovers) each.exited = true;
  Lines wrong = judge(run, settled, after, free_mib);
  if (run.exit_code != 0)
    wrong.push_back(
        fmt::format("a second run ends with {}: {}", run.exit_code, vacate::printable(run.out + run.err, 400)));
  if (!all_gone(after)) wrong.push_back("leftovers are there after a second run");
  for (auto& line : wrong) line.insert(0, "rerun: ");
  return wrong;
}

}  // namespace fault
