// SPDX-License-Identifier: Apache-2.0
// In C, beside what bpftool generates, which is not C++.
#pragma once

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/skel_internal.h>

/// An iterator of a loaded program, close-on-exec, or the negative of an errno. It keeps the program: nothing else has
/// to stay open.
static inline int make_iterator(int program) {
  const int link = skel_link_create(program, 0, BPF_TRACE_ITER);
  if (link < 0) return -errno;
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.iter_create.link_fd = (unsigned int)link;
  const int iterator = skel_sys_bpf(BPF_ITER_CREATE, &attributes, sizeof(attributes));
  const int error = iterator < 0 ? -errno : 0;
  close(link);
  return iterator < 0 ? error : iterator;
}
