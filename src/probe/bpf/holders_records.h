// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
// What passes between holders.bpf.c, which runs in the kernel, and scan_bpf.cc. Plain C, for both.
#pragma once

enum {
  VACATE_MOST_MAJORS = 16,
  VACATE_MOST_DEVICES = 8,
};

/// What to look for: set before the programs are loaded, constant from then on. Lists end with 0. Device numbers are as
/// the kernel packs them: major << 20 | minor.
struct vacate_filter {
  unsigned int majors[VACATE_MOST_MAJORS];    ///< of character devices
  unsigned int devices[VACATE_MOST_DEVICES];  ///< file systems: every file of theirs
  unsigned int pipe_device;                   ///< the kernel's own file system of pipes
  unsigned int anonymous_device;              ///< that of event descriptors, io_uring and the like
  unsigned long long anonymous_inode;         ///< the inode that most of those share
  unsigned int devices_only;                  ///< nothing but the files of `devices`
  unsigned int nothing;                       ///< report nothing at all: what walking alone costs
};

enum vacate_kind {
  VACATE_NONE = 0,
  VACATE_PIPE = 1,
  VACATE_SOCKET = 2,
  VACATE_CHARACTER = 3,
  VACATE_FILE = 4,       ///< on one of `devices`
  VACATE_ANONYMOUS = 5,  ///< an anonymous file with an inode of its own
  VACATE_BUFFER = 6,     ///< a dma-buf
  VACATE_KIND_BITS = 0xff,
  VACATE_PATH_ONLY = 0x100,  ///< opened with O_PATH
  VACATE_LONG = 0x200,       ///< the long form follows
};

/// One descriptor or mapping. Pipes and sockets of shared tables are so many that they have the short form alone.
struct vacate_short_record {
  unsigned int kind;  ///< enum vacate_kind
  int pid;
  int tid;
  int fd;  ///< 0 of a mapping
  unsigned long long inode;
};

struct vacate_long_record {
  struct vacate_short_record head;
  unsigned int device;       ///< of the file system
  unsigned int number;       ///< of a character device
  unsigned long long table;  ///< where the descriptor table is: equal for threads that share one. Shown to nobody.
};

/// What a program remembers from one call to the next: whose descriptors it is at.
struct vacate_task_memory {
  unsigned long long task;
  unsigned long long started;
  int global_tid;
  int pid;
  int tid;
  int unused;
};
