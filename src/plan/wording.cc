// SPDX-License-Identifier: Apache-2.0
#include "plan/wording.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vacate {
namespace {

std::string_view verb_of(EvidenceKind kind) noexcept {
  switch (kind) {
    case EvidenceKind::descriptor:
      return "it has open: ";
    case EvidenceKind::thread_descriptor:
      return "it has open in a thread's own table: ";
    case EvidenceKind::mapping:
      return "it has mapped: ";
    case EvidenceKind::inherited_client:
      return "";
  }
  return "";
}

}  // namespace

std::vector<std::string> evidence_sentences(const Holder& holder) {
  std::map<EvidenceKind, std::set<std::string>> nodes;
  std::map<std::string, std::vector<unsigned>> inherited;
  std::vector<unsigned> contexts;
  const auto note = [&](const HolderEvidence& evidence) {
    if (evidence.kind != EvidenceKind::inherited_client) nodes[evidence.kind].insert(evidence.node);
  };
  std::for_each(holder.common.begin(), holder.common.end(), note);
  for (const auto& on_gpu : holder.gpus) {
    std::for_each(on_gpu.evidence.begin(), on_gpu.evidence.end(), note);
    if (on_gpu.has_context) contexts.push_back(on_gpu.index);
    for (const auto& evidence : on_gpu.evidence) {
      if (evidence.kind == EvidenceKind::inherited_client) inherited[evidence.detail].push_back(on_gpu.index);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [kind, paths] : nodes)
    sentences.push_back(fmt::format("{}{}", verb_of(kind), fmt::join(paths, ", ")));
  if (!contexts.empty()) sentences.push_back(fmt::format("the driver lists it on GPU {}", fmt::join(contexts, ", ")));
  for (const auto& [detail, gpus] : inherited)
    sentences.push_back(fmt::format("it keeps GPU {}: {}", fmt::join(gpus, ", "), detail));
  return sentences;
}

std::vector<std::string> condition_sentences(const Process& process) {
  switch (process.condition) {
    case Condition::stopped:
      return {"it is stopped: TERM is pending until CONT"};
    case Condition::traced:
      return {"it is stopped by a debugger"};
    case Condition::frozen:
      return {"its cgroup is frozen: TERM is pending until it is thawed"};
    case Condition::zombie_leader:
      return {"its main thread has ended, other threads live"};
    case Condition::dumping_core:
      return {"it is dumping core"};
    // These come and go between two scans of the same process.
    case Condition::running:
    case Condition::exiting:
    case Condition::stuck:
    case Condition::zombie:
      return {};
  }
  return {};
}

std::string list_of(const std::vector<pid_t>& pids) {
  static constexpr std::size_t kShown = 8;
  if (pids.size() <= kShown + 1) return fmt::format("{}", fmt::join(pids, ", "));
  return fmt::format("{} and {} others", fmt::join(pids.begin(), pids.begin() + kShown, ", "), pids.size() - kShown);
}

std::string relative_sentence(const Member& member, const std::vector<pid_t>& holders) {
  if (member.is_tracker())
    return fmt::format("Python's resource tracker of {}: it ends by itself when they have, and is asked if it does not",
                       list_of(holders));
  if (member.holder != nullptr)
    return fmt::format("it has device files open only, and ends with its group: {}", list_of(holders));
  return fmt::format("it holds no GPU itself, and ends with its group: {}", list_of(holders));
}

std::string thaw_sentence(const ThawTarget& thaw) {
  return fmt::format("its control group {} is thawed once everybody in it has been sent TERM", thaw.path);
}

std::string unit_sentence(const std::string& unit) {
  return fmt::format(
      "{} would start it again: the service manager stops it, with everything in it, and keeps it stopped", unit);
}

std::string root_sentence(const std::vector<pid_t>& holders) {
  return fmt::format("the root of the tree of {}: it is asked first and may end them itself", list_of(holders));
}

std::string shared_client_remark(const std::vector<pid_t>& staying) {
  return fmt::format(
      "it shares a client with {}, which is not ended: the memory of that client stays until the last of them ends",
      list_of(staying));
}

std::string fellow_inheritors_remark(const std::vector<pid_t>& staying) {
  return fmt::format("{} may keep the same client of a dead process and is not ended: its memory may stay",
                     list_of(staying));
}

std::string other_gpus_remark(const std::vector<unsigned>& gpus) {
  return fmt::format("it pins GPU {} as well, which was not selected: a process ends as a whole",
                     fmt::join(gpus, ", "));
}

}  // namespace vacate
