// SPDX-License-Identifier: Apache-2.0
// Who started a process and who merely adopted it, as far as parent, process group and session tell (design.md,
// Standing, tests 2 and 3). "Parent is pid 1" is not the test: subreapers and launching shells adopt too, and daemons
// have pid 1 as parent.
#pragma once

#include "attribute/census.h"

namespace vacate {

/// Test 2, first clause: its parent lives and started it, for it is in the parent's process group, or leads a group of
/// its own and the parent is neither pid 1 of a namespace nor a service manager, which adopt. Where the parent's
/// program could not be read the answer is the one that spares.
[[nodiscard]] bool is_with_its_creator(const Census& census, const Process& process);

/// Test 2, second clause: the leader of its process group lives, is itself or an ancestor, and it was not left to
/// pid 1.
[[nodiscard]] bool is_led_by_living_ancestor(const Census& census, const Process& process);

/// Test 3: its parent is in another process group. Only for one that is not with its creator. False where the parent
/// cannot be seen (hidepid, outside the pid namespace): nothing is known then. Pid 1 is known to be in another group
/// even where it is hidden.
[[nodiscard]] bool is_adopted(const Census& census, const Process& process);

/// Does `ancestor` come up when the parents of `process` are followed?
[[nodiscard]] bool descends_from(const Census& census, const Process& process, pid_t ancestor);

}  // namespace vacate
