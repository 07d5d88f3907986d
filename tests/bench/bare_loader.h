// SPDX-License-Identifier: Apache-2.0
// Loads the programs of bare.bpf.c. In C, for what bpftool generates is not C++.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// Descriptors to read until the end of file; they give no bytes. Close-on-exec.
struct bare_iterators {
  int files;
  int mappings;
};

/// 0, or the negative of an errno, and then nothing is left open.
int load_bare(struct bare_iterators* iterators);

#ifdef __cplusplus
}
#endif
