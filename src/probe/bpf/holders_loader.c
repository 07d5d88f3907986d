// SPDX-License-Identifier: Apache-2.0
#include "probe/bpf/holders_loader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <holders.lskel.h>

/// An iterator of a loaded program: it keeps the program, nothing else has to stay open.
static int make_iterator(int program) {
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

int vacate_load_holders(const struct vacate_filter *filter, struct vacate_iterators *iterators) {
  struct holders *skeleton = holders__open();
  if (skeleton == NULL) return -ENOMEM;
  skeleton->rodata->filter = *filter;
  int error = holders__load(skeleton);
  iterators->files = iterators->mappings = -1;
  if (error >= 0) iterators->files = make_iterator(skeleton->progs.report_files.prog_fd);
  if (error >= 0 && iterators->files < 0) error = iterators->files;
  if (error >= 0) iterators->mappings = make_iterator(skeleton->progs.report_mappings.prog_fd);
  if (error >= 0 && iterators->mappings < 0) error = iterators->mappings;
  holders__destroy(skeleton);
  if (error >= 0) return 0;
  if (iterators->files >= 0) close(iterators->files);
  return error;
}
