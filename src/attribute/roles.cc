// SPDX-License-Identifier: Apache-2.0
#include "attribute/roles.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace vacate {
namespace {

bool inherits_from(const Opener& opener, pid_t holder) {
  return std::find(opener.inheritors.begin(), opener.inheritors.end(), holder) != opener.inheritors.end();
}

bool driver_was_heard_on_its_gpus(const Census& census, pid_t holder) {
  const auto& snapshot = census.snapshot();
  if (!can_trust_lists(snapshot)) return false;
  return std::all_of(snapshot.gpus.begin(), snapshot.gpus.end(), [&](const Gpu& gpu) {
    return gpu.state == GpuState::ok || gpu.state == GpuState::reset_required ||
           !census.refers_to_gpu(holder, gpu.index);
  });
}

HolderEvidence evidence_of(const Census& census, const Reference& reference) {
  return {reference.kind, census.snapshot().nodes[reference.node].path, reference.count, reference.detail};
}

}  // namespace

HolderRole role_of(const Census& census, const Charges& charges, pid_t holder) {
  if (charges.is_charged(holder)) return HolderRole::context;
  if (charges.shares_with_charged(holder)) return HolderRole::inheritor;
  bool perhaps = false;
  for (const auto& opener : charges.openers()) {
    if (!inherits_from(opener, holder)) continue;
    if (opener.fate != OpenerFate::unseen) return HolderRole::inheritor;
    perhaps = true;
  }
  if (perhaps) return HolderRole::unresolved;
  if (census.has_mappings_only(holder)) return HolderRole::mapped;
  return driver_was_heard_on_its_gpus(census, holder) ? HolderRole::files : HolderRole::unresolved;
}

std::vector<HolderOnGpu> gpus_of(const Census& census, const Charges& charges, pid_t holder) {
  std::map<unsigned, HolderOnGpu> by_index;
  for (const auto& reference : census.references().at(holder)) {
    if (const auto index = census.gpu_of(reference.node))
      by_index[*index].evidence.push_back(evidence_of(census, reference));
  }
  for (const auto& charge : charges.of(holder)) {
    auto& on_gpu = by_index[charge.gpu];
    // Two rows for one GPU would be a defect of the driver back end; an unknown part makes the whole unknown.
    if (on_gpu.has_context && on_gpu.memory.known() && charge.memory.known())
      on_gpu.memory = *on_gpu.memory + *charge.memory;
    else if (!on_gpu.has_context || on_gpu.memory.known())
      on_gpu.memory = charge.memory;
    on_gpu.has_context = true;
  }
  for (const auto& opener : charges.openers()) {
    if (!inherits_from(opener, holder)) continue;
    for (const auto& charge : opener.charges) {
      auto& evidence = by_index[charge.gpu].evidence;
      if (!evidence.empty()) continue;
      evidence.push_back({EvidenceKind::inherited_client, "", 1,
                          fmt::format("part of the client that the driver charges to process {}", opener.pid)});
    }
  }
  std::vector<HolderOnGpu> gpus;
  for (auto& [index, on_gpu] : by_index) {
    on_gpu.index = index;
    gpus.push_back(std::move(on_gpu));
  }
  return gpus;
}

std::vector<HolderEvidence> common_evidence_of(const Census& census, pid_t holder) {
  std::vector<HolderEvidence> evidence;
  for (const auto& reference : census.references().at(holder)) {
    if (!census.gpu_of(reference.node)) evidence.push_back(evidence_of(census, reference));
  }
  return evidence;
}

}  // namespace vacate
