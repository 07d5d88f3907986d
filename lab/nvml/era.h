// SPDX-License-Identifier: Apache-2.0
// In what the eras of the library differ besides the symbols they export (CMakeLists.txt): one library is built for
// each.
#pragma once

#include "lab/driver/protocol.h"

namespace lab::nvml {

enum class Stride { v24, v32 };

struct EraTraits {
  Era era;
  const char* library_version;
  Stride processes_v3;   // facts.md 1.6: changed without a new version
  bool recovery_action;  // knows field 230
};

/// The era this library was built for.
extern const EraTraits kEra;

}  // namespace lab::nvml
