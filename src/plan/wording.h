// SPDX-License-Identifier: Apache-2.0
// The sentences of a plan: evidence and reasons of each step. No figure that changes between two scans of an unchanged
// machine may be in them (amounts, counts of descriptors, ages), for a dry run and the run that follows are the same
// bytes.
#pragma once

#include <string>
#include <vector>

#include "model/holder.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "plan/kinship.h"

namespace vacate {

/// What makes it a holder: files, mappings, the driver's lists, inherited clients.
[[nodiscard]] std::vector<std::string> evidence_sentences(const Holder& holder);
/// What a signal will have to reckon with: stopped, frozen, ...; empty for most.
[[nodiscard]] std::vector<std::string> condition_sentences(const Process& process);
/// Why a relative goes along; `holders` of its tree or group that are ended.
[[nodiscard]] std::string relative_sentence(const Member& member, const std::vector<pid_t>& holders);
[[nodiscard]] std::string thaw_sentence(const ThawTarget& thaw);
[[nodiscard]] std::string unit_sentence(const std::string& unit);
[[nodiscard]] std::string root_sentence(const std::vector<pid_t>& holders);
[[nodiscard]] std::string shared_client_remark(const std::vector<pid_t>& staying);
[[nodiscard]] std::string fellow_inheritors_remark(const std::vector<pid_t>& staying);
/// "it pins GPU 3 as well, which ends with it": for a leftover that was selected for another GPU.
[[nodiscard]] std::string other_gpus_remark(const std::vector<unsigned>& gpus);
/// "1, 2, 3 and 123 others".
[[nodiscard]] std::string list_of(const std::vector<pid_t>& pids);

}  // namespace vacate
