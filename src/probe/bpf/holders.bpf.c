// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Runs in the kernel: once for each open file of each table, once for each mapping. Reports what may be of interest and
// lets go of all else. Changes nothing: it can read and write its report, no more.
//
// Licensed under the GPL as well, for the kernel hands bpf_seq_write to nothing else. Declares the few members that it
// reads itself; the kernel fills in their places when the programs are loaded. For each pointer that plain C follows from
// one that the kernel vouches for, the verifier searches all its types by name several times (10 ms of 13 for the plain
// form of this). So plain C follows those that are needed for every file, and bpf_probe_read_kernel those of the few that
// are reported.
#include "probe/bpf/holders_records.h"

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define RELOCATED __attribute__((preserve_access_index))
#define NULL ((void *)0)

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

static long (*bpf_seq_write)(void *seq, const void *data, u32 size) = (void *)127;
static u64 (*bpf_get_current_task)(void) = (void *)35;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;

struct pid_namespace;
struct upid {
  int nr;
  struct pid_namespace *ns;
} RELOCATED;
struct pid {
  u32 level;
  struct upid numbers[1];
} RELOCATED;
struct signal_struct {
  struct pid *pids[4];
} RELOCATED;
struct task_struct {
  int pid, tgid;
  u64 start_time;
  struct pid *thread_pid;
  struct signal_struct *signal;
  void *files;
} RELOCATED;
struct super_block {
  u32 s_dev;
  unsigned long s_magic;
} RELOCATED;
struct inode {
  u16 i_mode;
  struct super_block *i_sb;
  unsigned long i_ino;
  u32 i_rdev;
} RELOCATED;
struct file {
  u32 f_mode;
  struct inode *f_inode;
} RELOCATED;
struct vm_area_struct {
  struct file *vm_file;
} RELOCATED;

// The kernel hands these over member by member; they need no relocation.
struct bpf_iter_meta {
  void *seq;
};
struct file_context {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
  u32 fd, unused;
  struct file *file;
};
struct mapping_context {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
  struct vm_area_struct *mapping;
};

enum { TYPE = 0170000, SOCKET = 0140000, CHARACTER = 0020000, FIFO = 0010000 };
enum { MINOR_BITS = 20, GROUP = 1 };  // PIDTYPE_TGID
enum { OPENED_AS_PATH = 0x4000, DMA_BUF_MAGIC = 0x444d4142 };

const volatile struct vacate_filter filter = {};
/// One for each program: both are read at the same time.
struct vacate_task_memory of_files = {}, of_mappings = {};

#define READ(to, object, member) \
  bpf_probe_read_kernel(&(to), sizeof(to), __builtin_preserve_access_index(&(object)->member))

INLINE int number_at(struct pid *pid, u32 level) {
  const char *first = (const char *)__builtin_preserve_access_index(&pid->numbers[0].nr);
  int number = 0;
  bpf_probe_read_kernel(&number, sizeof(number), first + (u64)level * 16);
  return number;
}

/// Numbers as the reader's own pid namespace has them. The walk shows the processes of that one only.
INLINE void remember(struct task_struct *task, struct vacate_task_memory *memory) {
  if (memory->task == (u64)task && memory->global_tid == task->pid && memory->started == task->start_time) return;
  struct task_struct *reader = (struct task_struct *)bpf_get_current_task();
  struct pid *pid = NULL;
  struct signal_struct *signal = NULL;
  u32 level = 0;
  READ(pid, reader, thread_pid);
  READ(level, pid, level);
  READ(pid, task, thread_pid);
  memory->tid = number_at(pid, level);
  READ(signal, task, signal);
  pid = NULL;
  READ(pid, signal, pids[GROUP]);
  memory->pid = number_at(pid, level);
  memory->task = (u64)task;
  memory->global_tid = task->pid;
  memory->started = task->start_time;
}

INLINE u32 is_among_devices(u32 device) {
  for (int i = 0; i < VACATE_MOST_DEVICES; ++i) {
    if (filter.devices[i] == 0) return 0;
    if (filter.devices[i] == device) return 1;
  }
  return 0;
}

INLINE u32 is_among_majors(u32 number) {
  for (int i = 0; i < VACATE_MOST_MAJORS; ++i) {
    if (filter.majors[i] == 0) return 0;
    if (filter.majors[i] == number >> MINOR_BITS) return 1;
  }
  return 0;
}

INLINE u32 kind_of(struct inode *inode, struct super_block *file_system, u32 type) {
  if (filter.devices_only) return is_among_devices(file_system->s_dev) ? VACATE_FILE : VACATE_NONE;
  if (type == SOCKET) return VACATE_SOCKET;
  if (type == CHARACTER) return is_among_majors(inode->i_rdev) ? VACATE_CHARACTER : VACATE_NONE;
  u32 device = file_system->s_dev;
  if (type == FIFO) return device == filter.pipe_device ? VACATE_PIPE : VACATE_NONE;
  if (device >> MINOR_BITS != 0) return VACATE_NONE;  // on a disk
  if (device == filter.anonymous_device)
    return inode->i_ino != filter.anonymous_inode ? VACATE_ANONYMOUS : VACATE_NONE;
  if (is_among_devices(device)) return VACATE_FILE;
  return file_system->s_magic == DMA_BUF_MAGIC ? VACATE_BUFFER : VACATE_NONE;
}

SECTION("iter/task_file")
int report_files(struct file_context *context) {
  struct task_struct *task = context->task;
  struct file *file = context->file;
  if (task == NULL || file == NULL || filter.nothing) return 0;
  struct inode *inode = file->f_inode;
  struct super_block *file_system = inode->i_sb;
  u32 kind = kind_of(inode, file_system, inode->i_mode & TYPE);
  if (kind == VACATE_NONE) return 0;
  remember(task, &of_files);
  struct vacate_long_record record = {{kind, of_files.pid, of_files.tid, (int)context->fd, inode->i_ino}, 0, 0, 0};
  if (kind <= VACATE_SOCKET && task->pid == task->tgid) {
    bpf_seq_write(context->meta->seq, &record.head, sizeof(record.head));
    return 0;
  }
  record.head.kind |= VACATE_LONG;
  if (file->f_mode & OPENED_AS_PATH) record.head.kind |= VACATE_PATH_ONLY;
  record.device = file_system->s_dev;
  record.number = inode->i_rdev;
  READ(record.table, task, files);
  bpf_seq_write(context->meta->seq, &record, sizeof(record));
  return 0;
}

SECTION("iter/task_vma")
int report_mappings(struct mapping_context *context) {
  struct task_struct *task = context->task;
  struct vm_area_struct *mapping = context->mapping;
  if (task == NULL || mapping == NULL || filter.nothing) return 0;
  struct file *file = mapping->vm_file;
  if (file == NULL) return 0;
  struct inode *inode = file->f_inode;
  struct super_block *file_system = inode->i_sb;
  u32 kind = kind_of(inode, file_system, inode->i_mode & TYPE);
  if (kind < VACATE_CHARACTER || kind == VACATE_ANONYMOUS) return 0;
  remember(task, &of_mappings);
  struct vacate_long_record record = {{kind | VACATE_LONG, of_mappings.pid, of_mappings.tid, 0, inode->i_ino},
                                      file_system->s_dev,
                                      inode->i_rdev,
                                      0};
  bpf_seq_write(context->meta->seq, &record, sizeof(record));
  return 0;
}

char licensed_as[] SECTION("license") = "Dual BSD/GPL";
