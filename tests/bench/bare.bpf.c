// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Programs that look at nothing: what the kernel's own iterators over open files and over mappings cost by themselves.

#define SECTION(name) __attribute__((section(name), used))

SECTION("iter/task_file")
int pass_files(void *context) {
  (void)context;
  return 0;
}

SECTION("iter/task_vma")
int pass_mappings(void *context) {
  (void)context;
  return 0;
}

char licensed_as[] SECTION("license") = "Dual BSD/GPL";
