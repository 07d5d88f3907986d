// SPDX-License-Identifier: Apache-2.0
// Loads the programs of holders.bpf.c. In C, for what bpftool generates is not C++.
#pragma once

#include "probe/bpf/holders_records.h"

#ifdef __cplusplus
extern "C" {
#endif

/// `mappings` is read until the end of file; each reading starts one walk. `files` gives no bytes: what the walk finds
/// is in `report`, which is full when a read fails with EAGAIN, and the last of it is there at the end of file. Both
/// are close-on-exec.
struct vacate_iterators {
  int files;
  int mappings;
  struct vacate_report* report;  ///< mapped; the caller's to unmap
};

/// 0, or the negative of an errno, and then nothing is left open.
int vacate_load_holders(const struct vacate_filter* filter, struct vacate_iterators* iterators);

#ifdef __cplusplus
}
#endif
