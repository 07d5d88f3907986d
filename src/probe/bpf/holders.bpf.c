// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Runs in the kernel: once for each thread, to look through its descriptor table, and once for each mapping. Reports
// what may be of interest and lets go of all else. Changes nothing: it can read and write its report, no more.
//
// The kernel has an iterator over open files too (task_file), but it takes a reference to each and gives it back, and
// reads one after the other. Here tables are read without a lock or a reference, many files at a time, which takes a
// third to a quarter of that. Why that is sound: a program runs inside a read-side section of RCU, so a file found in a
// table stays memory of a file until the program returns; a read through a pointer that is not vouched for fails without
// harm; and nothing is reported but what was still so after it had been read: of a descriptor its file
// (read_slots_again), of a thread its table (report_files). The latter is needed because a table, unlike a file, is freed
// at once when its last user goes, so that its slots may be anybody's memory by then.
//
// Licensed under the GPL as well, for the kernel lets no other program call bpf_seq_write and bpf_probe_read_kernel.
// Declares the few members that it reads itself; the kernel fills in their places when the programs are loaded. What
// takes the kernel longest there is to follow each way through a program and each state that a local variable can be
// in: so there are few branches, and what changes from one step of a loop to the next is kept in `place`, whose content
// it does not follow.
#include "probe/bpf/holders_records.h"

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/// A function that is looked at once when the programs are loaded, not once for each way that leads to it.
#define ONCE __attribute__((noinline))
#define RELOCATED __attribute__((preserve_access_index))
#define NULL ((void *)0)

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*bpf_get_current_task)(void) = (void *)35;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_seq_write)(void *seq, const void *data, u32 size) = (void *)127;
static long (*bpf_loop)(u32 times, void *step, void *context, u64 flags) = (void *)181;

/// Makes a pointer of any number: plain C can follow it then. A read where nothing is gives 0.
extern void *bpf_rdonly_cast(const void *pointer, u32 type) SECTION(".ksyms");
enum { OF_THE_KERNEL = 1 };  // BPF_TYPE_ID_TARGET
#define AS(type, number) \
  ((type *)bpf_rdonly_cast((const void *)(number), __builtin_btf_type_id(*(type *)0, OF_THE_KERNEL)))

struct pid_namespace;
struct upid {
  int nr;
  struct pid_namespace *ns;
} RELOCATED;
struct pid {
  u32 level;
  struct upid numbers[1];
} RELOCATED;
struct file;
struct fdtable {
  u32 max_fds;
  struct file **fd;
} RELOCATED;
struct files_struct {
  struct fdtable *fdt;
} RELOCATED;
struct task_struct {
  int pid, tgid;
  u64 start_time;
  struct task_struct *group_leader;
  struct pid *thread_pid;
  struct files_struct *files;
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
struct task_context {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
};
struct mapping_context {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
  struct vm_area_struct *mapping;
};

enum { TYPE = 0170000, SOCKET = 0140000, CHARACTER = 0020000, FIFO = 0010000 };
enum { MINOR_BITS = 20, TYPE_SHIFT = 12 };
enum { OPENED_AS_PATH = 0x4000, DMA_BUF_MAGIC = 0x444d4142 };
enum { OF_ARRAY = 2, CAN_BE_MAPPED = 1024 };  // BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE
enum { ROUNDS_IN_ONE_CALL = 2048 };           // some milliseconds, in which this processor does nothing else
enum { MOST_ROUNDS = 128 };                   // of one batch
enum { MOST_EXCHANGES = 16 };                 // of one table
/// For a batch and one record about its process.
enum { ROOM = (VACATE_BATCH + 1) * sizeof(struct vacate_long_record) };

#define READ(to, object, member) \
  bpf_probe_read_kernel(&(to), sizeof(to), __builtin_preserve_access_index(&(object)->member))

const volatile struct vacate_filter filter = {};

struct {
  int (*type)[OF_ARRAY];
  int (*max_entries)[1];
  int (*map_flags)[CAN_BE_MAPPED];
  u32 *key;
  struct vacate_report *value;
} reports SECTION(".maps");

/// One for each program: both are read at the same time. Whom they are at is told in numbers of the reader's own pid
/// namespace; the walk shows the processes of that one only.
struct vacate_owner of_files = {}, of_mappings = {};
struct vacate_place place = {};

INLINE int number_at(struct pid *pid, u32 level) {
  const char *first = (const char *)__builtin_preserve_access_index(&pid->numbers[0].nr);
  int number = 0;
  bpf_probe_read_kernel(&number, sizeof(number), first + (u64)level * 16);
  return number;
}

INLINE u32 is_at(const struct vacate_owner *owner, struct task_struct *task) {
  return owner->task == (u64)task && owner->global_tid == task->pid && owner->started == task->start_time;
}

INLINE void remember(struct task_struct *task, struct vacate_owner *owner) {
  struct task_struct *reader = (struct task_struct *)bpf_get_current_task(), *leader = NULL;
  struct pid *pid = NULL;
  u32 level = 0;
  READ(pid, reader, thread_pid);
  READ(level, pid, level);
  READ(pid, task, thread_pid);
  owner->tid = number_at(pid, level);
  pid = NULL;
  READ(leader, task, group_leader);
  READ(pid, leader, thread_pid);
  owner->pid = number_at(pid, level);
  owner->task = (u64)task;
  owner->global_tid = task->pid;
  owner->started = task->start_time;
}

/// 1 or 0 without a branch. The compiler is not to see that there are two cases, or it makes one of them.
INLINE u32 is_zero(u32 number) { return ((u64)number - 1) >> 63; }
INLINE u64 is_set(u64 number) {
  u64 negative = -number;
  asm volatile("" : "+r"(negative));
  return (number | negative) >> 63;
}
/// `value`, or 0 where `is_set` is.
INLINE u64 if_set(u64 is_set, u64 value) { return value & -is_set; }

INLINE u32 is_among_devices(u32 device) {
  u32 is_found = 0;
  for (u32 i = 0; i < VACATE_MOST_DEVICES; ++i) is_found |= is_zero(device ^ filter.devices[i]);
  return is_found;
}

INLINE u32 is_among_majors(u32 number) {
  u32 major = number >> MINOR_BITS;
  return filter.majors[major / 64] >> major % 64 & 1;
}

INLINE u32 kind_of(const struct vacate_copy *copy) {
  if (filter.devices_only) return is_among_devices(copy->device) ? VACATE_FILE : VACATE_NONE;
  if (copy->type == SOCKET) return VACATE_SOCKET;
  if (copy->type == CHARACTER) return is_among_majors(copy->number) ? VACATE_CHARACTER : VACATE_NONE;
  if (copy->type == FIFO) return copy->device == filter.pipe_device ? VACATE_PIPE : VACATE_NONE;
  if (copy->device >> MINOR_BITS != 0) return VACATE_NONE;  // on a disk
  if (copy->device == filter.anonymous_device)
    return copy->inode != filter.anonymous_inode ? VACATE_ANONYMOUS : VACATE_NONE;
  if (is_among_devices(copy->device)) return VACATE_FILE;
  if (AS(struct super_block, copy->file_system)->s_magic == DMA_BUF_MAGIC) return VACATE_BUFFER;
  place.boring_device = copy->device;  // whichever program finds one: it is one for both
  return VACATE_NONE;
}

INLINE struct vacate_report *report_of_files(void) {
  const u32 only = 0;
  return bpf_map_lookup_elem(&reports, &only);
}

/// No read that comes after it is done before one that comes before it, on any processor.
INLINE void order_reads(void) { (void)__sync_lock_test_and_set(&place.barrier, 1); }

/// Whether kind_of has to be asked: no, where the type or the device alone says that it is of no interest. Without a
/// branch. Bits of types as st_mode has them.
INLINE u32 is_candidate(const struct vacate_copy *copy) {
  u32 types = 1U << (SOCKET >> TYPE_SHIFT) | 1U << (CHARACTER >> TYPE_SHIFT) | 1U << (FIFO >> TYPE_SHIFT);
  u32 is_special = types >> (copy->type >> TYPE_SHIFT) & 1;
  return is_special | (is_zero(copy->device >> MINOR_BITS) & (1 ^ is_zero(copy->device ^ place.boring_device)));
}

/// Reads what is to be known of each file of a batch. Without a branch and one member after the other: so the processor
/// waits for the memory of many files at once, and waiting is most of what a walk costs. In place of an empty slot the
/// file before it is read once more, for a read that leads nowhere can cost a fault.
ONCE int copy_files(void) {
  u64 last = 0;
  for (u32 i = 0; i < VACATE_BATCH; ++i) {
    u64 is_open = is_set(place.files[i]);
    last = if_set(is_open, place.files[i]) | if_set(1 - is_open, last);
    const struct file *file = AS(struct file, last);
    place.copies[i].mode = file->f_mode;
    place.copies[i].inode = (u64)file->f_inode;
  }
  for (u32 i = 0; i < VACATE_BATCH; ++i) {
    const struct inode *inode = AS(struct inode, place.copies[i].inode);
    place.copies[i].type = inode->i_mode & TYPE;
    place.copies[i].number = inode->i_rdev;
    place.copies[i].inode = inode->i_ino;
    place.copies[i].file_system = (u64)inode->i_sb;
  }
  u32 count = 0;
  for (u32 i = 0; i < VACATE_BATCH; ++i) {
    place.copies[i].device = AS(struct super_block, place.copies[i].file_system)->s_dev;
    place.candidates[count % VACATE_BATCH] = i;
    count += is_candidate(&place.copies[i]) & is_set(place.files[i]);
  }
  place.count = count;
  return 0;
}

/// After files were read: which of them are still what their descriptors are of? Those were so all the time. The slots
/// may have moved to a larger table, and only the newest is kept up to date.
INLINE void read_slots_again(void) {
  struct files_struct *files = (struct files_struct *)place.table;
  struct fdtable *newest = NULL;
  u64 *slots = NULL;
  order_reads();
  READ(newest, files, fdt);
  READ(slots, newest, fd);
  bpf_probe_read_kernel(place.files_now, sizeof(place.files_now), slots + place.fd);  // all 0 if it cannot be read
}

INLINE void report_descriptor(const struct vacate_copy *copy, u32 kind, u32 fd) {
  struct vacate_report *report = report_of_files();
  struct vacate_long_record record = {{kind, of_files.pid, of_files.tid, (int)fd, copy->inode}, 0, 0, 0};
  if (report == NULL) return;
  u32 used = report->used;
  if (used > VACATE_REPORT_SIZE - sizeof(record)) return;  // look_at_files has seen to it that there is room
  if (kind <= VACATE_SOCKET && !place.is_of_thread) {
    *(struct vacate_short_record *)(report->bytes + used) = record.head;
    report->used = used + sizeof(record.head);
    return;
  }
  record.head.kind |= VACATE_LONG;
  if (copy->mode & OPENED_AS_PATH) record.head.kind |= VACATE_PATH_ONLY;
  record.device = copy->device;
  record.number = copy->number;
  record.table = place.table;
  *(struct vacate_long_record *)(report->bytes + used) = record;
  report->used = used + sizeof(record);
}

static long look_at_candidate(u32 index, void *unused) {
  (void)unused;
  u32 i = place.candidates[index % VACATE_BATCH] % VACATE_BATCH;
  const struct vacate_copy *copy = &place.copies[i];
  if (place.files_now[i] != place.files[i]) return 0;
  u32 kind = kind_of(copy);
  if (kind != VACATE_NONE) report_descriptor(copy, kind, place.fd + i);
  return 0;
}

/// Leaves those files of the batch that came in the place of others meanwhile. Whether there are any.
ONCE int keep_replacements(void) {
  u64 any = 0;
  for (u32 i = 0; i < VACATE_BATCH; ++i) {
    place.files[i] = if_set(is_set(place.files_now[i] ^ place.files[i]), place.files_now[i]);
    any |= place.files[i];
  }
  return any != 0;
}

/// Of the batch at `place.fd`. Whether there are any.
ONCE int read_slots(void) {
  u64 any = 0;
  if (bpf_probe_read_kernel(place.files, sizeof(place.files), (u64 *)place.slots + place.fd) != 0) return 0;
  for (u32 i = 0; i < VACATE_BATCH; ++i) any |= place.files[i];
  return any != 0;
}

/// One round of a batch: the first is for all of its files, each further one for those that were replaced while they were
/// looked at, for their descriptors were open all the time. 1: there is no room to report all that may be found.
static long look_at_files(u32 index, void *unused) {
  (void)index;
  (void)unused;
  const struct vacate_report *report = report_of_files();
  if (report == NULL || report->used > VACATE_REPORT_SIZE - ROOM) return 1;
  if (place.rounds != 0 || read_slots()) {
    copy_files();
    read_slots_again();
    bpf_loop(place.count, look_at_candidate, NULL, 0);
    if (keep_replacements()) {
      if (++place.rounds < MOST_ROUNDS) return 0;
      place.is_restless = 1;
    }
  }
  place.rounds = 0;
  place.fd += VACATE_BATCH;
  return 0;
}

/// From `place.fd` on. Whether it came to the end.
ONCE int look_through_table(void) {
  struct files_struct *files = (struct files_struct *)place.table;
  struct fdtable *table = NULL;
  u32 size = 0;
  READ(table, files, fdt);
  READ(size, table, max_fds);
  READ(place.slots, table, fd);
  u32 batches = size > place.fd ? (size - place.fd) / VACATE_BATCH : 0;
  bpf_loop(batches < ROUNDS_IN_ONE_CALL ? batches : ROUNDS_IN_ONE_CALL, look_at_files, NULL, 0);
  return place.fd >= size;
}

/// About a thread, or the process of which it is: no descriptor.
INLINE void report_owner(struct vacate_report *report, u32 kind) {
  const struct vacate_short_record record = {kind, of_files.pid, of_files.tid, 0, 0};
  u32 used = report->used;
  if (used > VACATE_REPORT_SIZE - sizeof(record)) return;  // there is room: see ROOM
  *(struct vacate_short_record *)(report->bytes + used) = record;
  report->used = used + sizeof(record);
}

INLINE struct files_struct *table_of_process(struct task_struct *task) {
  struct files_struct *files = NULL;
  struct task_struct *leader = NULL;
  READ(leader, task, group_leader);
  READ(files, leader, files);
  return files;
}

/// 0: done with this thread. 1: to be called for it once more, after what is in the report has been taken.
SECTION("iter/task")
int report_files(struct task_context *context) {
  struct task_struct *task = context->task;
  struct vacate_report *report = report_of_files();
  struct files_struct *files = NULL, *files_now = NULL;
  if (task == NULL || report == NULL) return 0;
  READ(files, task, files);
  if (files == NULL) return 0;
  u32 used = report->used, is_of_thread = task->pid != task->tgid;
  if (used > VACATE_REPORT_SIZE - ROOM) return 1;
  if (!is_at(&of_files, task)) {
    remember(task, &of_files);
    place.table = place.fd = place.rounds = place.exchanges = 0;
  }
  if (is_of_thread && files == table_of_process(task)) {
    // The main thread may leave the table before the walk has come to it, if its number is the higher one.
    if (of_files.tid < of_files.pid) report_owner(report, VACATE_SHARER);
    return 0;
  }
  u32 is_begun = place.table != 0;
  place.is_of_thread = is_of_thread;
  place.is_restless = is_begun && place.table != (u64)files;
  place.table = (u64)files;
  u32 is_whole = look_through_table();
  order_reads();
  READ(files_now, task, files);
  if (files_now != files) {  // what was read may have been another's
    report->used = used;
    if (files_now == NULL) return 0;
    place.table = place.fd = place.rounds = 0;
    place.is_restless |= is_begun | (++place.exchanges > MOST_EXCHANGES);
    if (!place.is_restless) return 1;
  }
  if (place.is_restless) report_owner(report, VACATE_RESTLESS);
  return !is_whole && !place.is_restless;
}

SECTION("iter/task_vma")
int report_mappings(struct mapping_context *context) {
  struct task_struct *task = context->task;
  struct vm_area_struct *mapping = context->mapping;
  if (task == NULL || mapping == NULL) return 0;
  struct file *file = mapping->vm_file;
  if (file == NULL) return 0;
  struct inode *inode = file->f_inode;
  struct super_block *file_system = inode->i_sb;
  const struct vacate_copy copy = {(u64)file_system, inode->i_ino,         file_system->s_dev,
                                   inode->i_rdev,    inode->i_mode & TYPE, 0};
  u32 kind = kind_of(&copy);
  if (kind < VACATE_CHARACTER || kind == VACATE_ANONYMOUS) return 0;
  if (!is_at(&of_mappings, task)) remember(task, &of_mappings);
  struct vacate_long_record record = {
      {kind | VACATE_LONG, of_mappings.pid, of_mappings.tid, 0, copy.inode}, copy.device, copy.number, 0};
  bpf_seq_write(context->meta->seq, &record, sizeof(record));
  return 0;
}

char licensed_as[] SECTION("license") = "Dual BSD/GPL";
