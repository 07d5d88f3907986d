// SPDX-License-Identifier: Apache-2.0
// How the descriptors and mappings of all processes are looked at. Both ways see the same; they differ in time.
#pragma once

#include <string>

namespace vacate {

enum class ScanMethod {
  automatic,  ///< bpf where it can be had and is worth its start
  procfs,     ///< reads /proc; works everywhere
  bpf         ///< programs in the kernel (docs/scan.md)
};

/// What one look did. `why`: a sentence for people without its end.
struct ScanUse {
  ScanMethod used = ScanMethod::procfs;
  std::string why;
};

}  // namespace vacate
