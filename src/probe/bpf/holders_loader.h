// SPDX-License-Identifier: Apache-2.0
// Loads the programs of holders.bpf.c. In C, for what bpftool generates is not C++.
#pragma once

#include "probe/bpf/holders_records.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Descriptors to read records from, until the end of file; close-on-exec. Each reading starts one walk.
struct vacate_iterators {
  int files;
  int mappings;
};

/// 0, or the negative of an errno. Whatever it opened but the two is closed again.
int vacate_load_holders(const struct vacate_filter* filter, struct vacate_iterators* iterators);

#ifdef __cplusplus
}
#endif
