// SPDX-License-Identifier: Apache-2.0
// What a holder is to the memory: has a context, keeps somebody's client, has a mapping, or merely has files open. A
// role says what ends with the process; whose the process is, standing.h decides.
#pragma once

#include <vector>

#include "attribute/census.h"
#include "attribute/charges.h"
#include "model/holder.h"
#include "model/policy.h"

namespace vacate {

/// `importer` is said only on evidence that leaves no other holder: it has nothing but control files, everything was
/// seen, and a GPU on which nobody computes uses more than it could by itself. `files` is said only where the driver
/// was heard on every GPU that the holder has open: "known to have device files only". Where it was not, the role is
/// `unresolved`, which pins memory as far as anybody knows.
[[nodiscard]] HolderRole role_of(const Census& census, const Charges& charges, pid_t holder, const Policy& policy = {});

/// What it has on each GPU, by index: its references and charges, and as inheritor of a dead opener the other GPUs of
/// that client, for any part of a client keeps all of it (facts.md 2.2.2).
[[nodiscard]] std::vector<HolderOnGpu> gpus_of(const Census& census, const Charges& charges, pid_t holder);

/// Evidence on nodes of no single GPU.
[[nodiscard]] std::vector<HolderEvidence> common_evidence_of(const Census& census, pid_t holder);

}  // namespace vacate
