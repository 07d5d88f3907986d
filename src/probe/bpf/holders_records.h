// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
// What passes between holders.bpf.c, which runs in the kernel, and scan_bpf.cc. Plain C, for both.
#pragma once

enum {
  VACATE_MAJORS = 4096,  ///< as many as there can be
  VACATE_MOST_DEVICES = 8,
};

#define VACATE_NO_DEVICE 0xffffffffU

/// What to look for: set before the programs are loaded, constant from then on. Device numbers are as the kernel packs
/// them: major << 20 | minor.
struct vacate_filter {
  unsigned long long majors[VACATE_MAJORS / 64];  ///< of character devices, a bit each
  unsigned int devices[VACATE_MOST_DEVICES];      ///< file systems: every file of theirs; the rest VACATE_NO_DEVICE
  unsigned int pipe_device;                       ///< the kernel's own file system of pipes
  unsigned int anonymous_device;                  ///< that of event descriptors, io_uring and the like
  unsigned long long anonymous_inode;             ///< the inode that most of those share
  unsigned int devices_only;                      ///< nothing but the files of `devices`
};

enum vacate_kind {
  VACATE_NONE = 0,
  VACATE_PIPE = 1,
  VACATE_SOCKET = 2,
  VACATE_CHARACTER = 3,
  VACATE_FILE = 4,       ///< on one of `devices`
  VACATE_ANONYMOUS = 5,  ///< an anonymous file with an inode of its own
  VACATE_BUFFER = 6,     ///< a dma-buf
  VACATE_SHARER = 7,     ///< no descriptor: a thread that shared the table of its process when the walk passed it
  VACATE_RESTLESS = 8,   ///< nor this: a process that exchanges what it has open faster than it can be read
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

/// What a program remembers from one call to the next: whom it is at.
struct vacate_owner {
  unsigned long long task;
  unsigned long long started;
  int global_tid;
  int pid;
  int tid;
  int unused;
};

/// What is to be known of a file.
struct vacate_copy {
  unsigned long long file_system;
  unsigned long long inode;  ///< its number
  unsigned int device;       ///< of the file system
  unsigned int number;       ///< of a character device
  unsigned int type;         ///< as in st_mode
  unsigned int mode;         ///< f_mode
};

/// Where in a descriptor table a program is.
enum { VACATE_BATCH = 32 };  ///< descriptors that are looked at together; tables have a multiple of 64
struct vacate_place {
  unsigned long long table;  ///< 0: in none
  unsigned long long slots;
  unsigned long long files[VACATE_BATCH];
  unsigned long long files_now[VACATE_BATCH];
  struct vacate_copy copies[VACATE_BATCH];
  unsigned long long barrier;  ///< means nothing
  unsigned int fd;             ///< the first of the batch
  unsigned int is_of_thread;
  unsigned int boring_device;  ///< of a file system whose regular files are of no interest
  unsigned int rounds;         ///< of this batch that are over: not 0, and `files` are those that were replaced
  unsigned int exchanges;      ///< of this table while it was looked through
  unsigned int is_restless;    ///< it cannot be read: files of a batch, or the table, are replaced all the time
  unsigned int count;
  unsigned int candidates[VACATE_BATCH];
};

enum { VACATE_REPORT_SIZE = 1 << 18 };

/// The descriptors found, in memory that the program and its reader share. The program writes only while its iterator
/// is read, so no more than one of them is at it.
struct vacate_report {
  unsigned int used;  ///< bytes; set back to 0 by whoever has taken them
  unsigned int unused;
  char bytes[VACATE_REPORT_SIZE];
};
