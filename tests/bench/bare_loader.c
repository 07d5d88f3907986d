// SPDX-License-Identifier: Apache-2.0
#include "bare_loader.h"

#include <errno.h>
#include <unistd.h>

#include <bare.lskel.h>

#include "probe/bpf/make_iterator.h"

int load_bare(struct bare_iterators *iterators) {
  struct bare *skeleton = bare__open();
  if (skeleton == NULL) return -ENOMEM;
  int error = bare__load(skeleton);
  iterators->files = iterators->mappings = -1;
  if (error >= 0) iterators->files = make_iterator(skeleton->progs.pass_files.prog_fd);
  if (error >= 0 && iterators->files < 0) error = iterators->files;
  if (error >= 0) iterators->mappings = make_iterator(skeleton->progs.pass_mappings.prog_fd);
  if (error >= 0 && iterators->mappings < 0) error = iterators->mappings;
  bare__destroy(skeleton);
  if (error >= 0) return 0;
  if (iterators->files >= 0) close(iterators->files);
  return error;
}
