// SPDX-License-Identifier: Apache-2.0
// What is said of one GPU: where its memory went, what nobody owns up to, what a reset would need, who would have to
// go.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/format.h"
#include "report/why.h"
#include "report/why_words.h"

namespace vacate {
namespace {

std::string_view words_for(BaselineSource source) {
  switch (source) {
    case BaselineSource::configured:
      return "as configured";
    case BaselineSource::measured:
      return "measured while nobody held it";
    case BaselineSource::assumed:
      return "an assumption: the part that nobody owns up to";
  }
  return "";
}

WhyPart subject_part(const Gpu& gpu) {
  std::string line = fmt::format("GPU {}: {}", gpu.index, gpu.name.empty() ? "name unknown" : gpu.name);
  if (!gpu.uuid.empty()) line += ", " + gpu.uuid;
  if (!gpu.pci.empty()) line += ", PCI " + gpu.pci;
  if (gpu.minor.known()) line += fmt::format(", /dev/nvidia{}", *gpu.minor);
  WhyPart part{"subject", {std::move(line)}};
  if (gpu.unified_memory)
    part.sentences.emplace_back("its memory is the system's own: what is used need not fall with the last holder");
  if (gpu.mig.known() && *gpu.mig) part.sentences.emplace_back("it is split into instances (MIG)");
  return part;
}

WhyPart account_part(const Gpu& gpu, const GpuAccount& account) {
  WhyPart part{"account", {}};
  const auto say = [&](std::string sentence) { part.sentences.push_back(std::move(sentence)); };
  say(fmt::format("used: {} of {}", format_mib(gpu.memory.used), format_mib(gpu.memory.total)));
  say(fmt::format("attributed to holders by the driver: {}", format_mib(account.attributed)));
  if (account.baseline.known()) {
    say(fmt::format("baseline: {}, {}", format_mib(account.baseline->amount), words_for(account.baseline->source)));
  } else {
    say(fmt::format("baseline: unknown ({})", describe(account.baseline.reason())));
  }
  say(fmt::format("remainder, owned up to by nobody: {}", format_mib(account.remainder)));
  return part;
}

WhyPart holders_part(const WhyReport& report, const GpuAccount& account) {
  static constexpr std::size_t kMostNamed = 32;
  WhyPart part{"holders", {}};
  for (const auto pid : account.holders) {
    if (part.sentences.size() == kMostNamed) {
      part.sentences.push_back(fmt::format("and {} more, see 'vacate status'", account.holders.size() - kMostNamed));
      break;
    }
    const auto* holder = report.attribution.find(pid);
    if (holder == nullptr) continue;
    std::string memory = "no figure of its own";
    for (const auto& place : holder->gpus)
      if (place.index == account.index && place.memory.known()) memory = format_mib(*place.memory);
    part.sentences.push_back(fmt::format("{}: {}, {}, {}{}", why_name(report.snapshot, pid), describe(holder->role),
                                         memory, describe(holder->standing), holder->protection ? ", protected" : ""));
  }
  for (const auto& charge : report.attribution.charged_to_nobody)
    if (charge.gpu == account.index)
      part.sentences.push_back(
          fmt::format("{} charged to pid {}: {}", format_mib(charge.memory), charge.driver_pid, charge.detail));
  if (part.sentences.empty()) part.sentences.emplace_back("nobody that can be seen holds it");
  for (const auto& spot : report.snapshot.visibility.blind_spots)
    part.sentences.push_back(fmt::format("not seen: {} ({})", spot.detail, spot.code));
  return part;
}

/// NVML's field 230 (facts.md 1.9).
std::string_view words_for_recovery(std::uint32_t action) {
  switch (action) {
    case 1:
      return "reset the GPU";
    case 2:
      return "reboot the machine";
    case 3:
      return "drain the GPU's peers";
    case 4:
      return "drain, then reset the GPU";
    default:
      return "something this version of vacate does not know";
  }
}

WhyPart health_part(const Gpu& gpu) {
  WhyPart part{"health", {}};
  if (gpu.state != GpuState::ok) part.sentences.push_back(fmt::format("state: {}", describe(gpu.state)));
  if (gpu.recovery_action.known() && *gpu.recovery_action != 0)
    part.sentences.push_back(fmt::format("the driver advises: {}", words_for_recovery(*gpu.recovery_action)));
  if (gpu.utilization.known() && *gpu.utilization > 0)
    part.sentences.push_back(fmt::format("{} % busy, which proves nothing about who holds it", *gpu.utilization));
  return part;
}

std::vector<pid_t> ended_by(const Plan& plan) {
  std::vector<pid_t> pids;
  for (const auto& step : plan.steps)
    if (step.action != Action::refuse) pids.push_back(step.key.pid);
  std::sort(pids.begin(), pids.end());
  return pids;
}

WhyPart frees_part(const WhyReport& report, const WhySubject& subject) {
  WhyPart part{"frees", {}};
  const auto usual = ended_by(subject.usual);
  const auto all = ended_by(subject.asked);
  if (!usual.empty())
    part.sentences.push_back(
        fmt::format("'vacate free --gpu {}' ends the leftovers: {}", *subject.gpu, why_pids(usual)));
  if (all.size() > usual.size())
    part.sentences.push_back(
        fmt::format("'vacate free --all --gpu {}' ends what is live or unsure too: {}", *subject.gpu, why_pids(all)));
  for (const auto& step : subject.asked.steps)
    if (step.action == Action::refuse)
      part.sentences.push_back(fmt::format("pid {} is refused even so, {}{}{}", step.key.pid, step.rule,
                                           step.because.empty() ? "" : ": ",
                                           step.because.empty() ? "" : step.because.front()));
  if (part.sentences.empty())
    part.sentences.emplace_back(report.snapshot.visibility.complete()
                                    ? "there is nobody to be ended here"
                                    : "nobody who can be seen is to be ended here; somebody out of sight may be");
  return part;
}

}  // namespace

std::vector<WhyPart> explain_gpu(const WhyReport& report, const WhySubject& subject) {
  const auto& gpus = report.snapshot.gpus;
  const auto& accounts = report.attribution.accounts;
  const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& g) { return g.index == *subject.gpu; });
  const auto account =
      std::find_if(accounts.begin(), accounts.end(), [&](const GpuAccount& a) { return a.index == *subject.gpu; });
  if (gpu == gpus.end() || account == accounts.end()) return {};
  std::vector<WhyPart> parts = {subject_part(*gpu), account_part(*gpu, *account), holders_part(report, *account)};
  WhyPart explanations{"explanations", {}};
  for (const auto& each : account->explanations) explanations.sentences.push_back(each.text);
  WhyPart reset{"reset", {}};
  for (const auto& blocker : account->reset_blockers)
    reset.sentences.push_back(
        fmt::format("{} would make a reset fail: {}", why_name(report.snapshot, blocker.pid), blocker.way));
  parts.push_back(std::move(explanations));
  parts.push_back(health_part(*gpu));
  parts.push_back(std::move(reset));
  parts.push_back(frees_part(report, subject));
  std::erase_if(parts, [](const WhyPart& part) { return part.sentences.empty(); });
  return parts;
}

}  // namespace vacate
