// SPDX-License-Identifier: Apache-2.0
#include "probe/bpf/holders_loader.h"

#include <errno.h>
#include <holders.lskel.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/bpf/make_iterator.h"

static int make_iterators(const struct holders *skeleton, struct vacate_iterators *iterators) {
  iterators->files = make_iterator(skeleton->progs.report_files.prog_fd);
  if (iterators->files < 0) return iterators->files;
  iterators->mappings = make_iterator(skeleton->progs.report_mappings.prog_fd);
  if (iterators->mappings < 0) return iterators->mappings;
  void *report =
      mmap(NULL, sizeof(struct vacate_report), PROT_READ | PROT_WRITE, MAP_SHARED, skeleton->maps.reports.map_fd, 0);
  if (report == MAP_FAILED) return -errno;
  iterators->report = report;
  return 0;
}

static void unload(const struct vacate_iterators *iterators) {
  if (iterators->files >= 0) close(iterators->files);
  if (iterators->mappings >= 0) close(iterators->mappings);
  if (iterators->report != NULL) munmap(iterators->report, sizeof(struct vacate_report));
}

static int load_once(const struct vacate_filter *filter, struct vacate_iterators *iterators) {
  const struct vacate_iterators none = {-1, -1, NULL};
  *iterators = none;
  struct holders *skeleton = holders__open();
  if (skeleton == NULL) return -ENOMEM;
  skeleton->rodata->filter = *filter;
  int error = holders__load(skeleton);
  if (error >= 0) error = make_iterators(skeleton, iterators);
  holders__destroy(skeleton);
  if (error >= 0) return 0;
  unload(iterators);
  return error;
}

/// The kernel gives up on a program, with EAGAIN, when a signal comes while it looks through it. What can be held back is;
/// a stop and its end (^Z, a freezer) cannot.
int vacate_load_holders(const struct vacate_filter *filter, struct vacate_iterators *iterators) {
  enum { MOST_TRIES = 10 };
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = -EAGAIN;
  for (int tries = 0; error == -EAGAIN && tries < MOST_TRIES; ++tries) error = load_once(filter, iterators);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}
