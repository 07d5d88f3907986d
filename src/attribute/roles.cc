// SPDX-License-Identifier: Apache-2.0
#include "attribute/roles.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "attribute/protection.h"

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

// Memory that no list and no GPU file accounts for, more than an idle GPU could use: an exporter's that died, or the
// driver's own.
bool is_held_by_no_list(const Census& census, const Gpu& gpu, const Policy& policy) {
  const auto& snapshot = census.snapshot();
  const bool listed = std::any_of(snapshot.charges.begin(), snapshot.charges.end(),
                                  [&](const DriverCharge& charge) { return charge.gpu == gpu.index; });
  const bool used_by_others =
      std::any_of(census.references().begin(), census.references().end(), [&](const auto& entry) {
        return census.looks_like_compute(entry.first) &&
               (census.refers_to_gpu(entry.first, gpu.index) || !census.refers_to_any_gpu(entry.first));
      });
  if (listed || used_by_others || !gpu.memory.used.known() || gpu.unified_memory) return false;
  return *gpu.memory.used > policy.largest_assumed_baseline + policy.memory_tolerance;
}

bool has_control_files_alone(const Census& census, pid_t holder) {
  const auto& references = census.references().at(holder);
  return std::all_of(references.begin(), references.end(),
                     [&](const Reference& reference) { return census.role_of(reference.node) == NodeRole::ctl; });
}

bool is_importer(const Census& census, pid_t holder, const Policy& policy) {
  const auto& snapshot = census.snapshot();
  const auto* process = census.living(holder);
  if (process == nullptr || !snapshot.visibility.complete() || !snapshot.visibility.all_references) return false;
  if (!can_trust_lists(snapshot) || !snapshot.hidden_references.empty()) return false;
  if (!has_control_files_alone(census, holder) || protection_of(*process, snapshot)) return false;
  return std::any_of(snapshot.gpus.begin(), snapshot.gpus.end(),
                     [&](const Gpu& gpu) { return is_held_by_no_list(census, gpu, policy); });
}

HolderEvidence evidence_of(const Census& census, const Reference& reference) {
  return {reference.kind, census.snapshot().nodes[reference.node].path, reference.count, reference.detail};
}

}  // namespace

HolderRole role_of(const Census& census, const Charges& charges, pid_t holder, const Policy& policy) {
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
  if (is_importer(census, holder, policy)) return HolderRole::importer;
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
