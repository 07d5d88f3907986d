// SPDX-License-Identifier: Apache-2.0
// A snapshot that can be shown in public: names, paths, users and identifiers become stand-ins, the same one for the
// same original, while everything that attribution and planning decide by stays. Pure. docs/snapshots.md says what is
// left.
#pragma once

#include "model/snapshot.h"

namespace vacate {

/// Holders, groups, standings and plans of the result are those of `snapshot`, apart from names in their texts.
[[nodiscard]] Snapshot redacted(const Snapshot& snapshot);

}  // namespace vacate
