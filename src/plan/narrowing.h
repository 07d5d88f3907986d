// SPDX-License-Identifier: Apache-2.0
// The selectors that only narrow: --user, --unit, --container, --job, --cgroup (cli.md). Several of one kind widen each
// other, several kinds narrow each other, and none of them ever brings in what would not be meant without it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/holder.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace vacate {

/// Does `selection` narrow by anything but GPUs?
[[nodiscard]] bool is_narrowing(const Selection& selection) noexcept;

/// Is the process within every kind of selector that is given? One whose user or control group could not be read is
/// within none that asks for it.
[[nodiscard]] bool is_within(const Snapshot& snapshot, pid_t pid, const Selection& selection);

/// malformed: the beginning of a container's id that several visible containers have; the message names them.
[[nodiscard]] Result<void> check_narrowing(const Snapshot& snapshot, const Selection& selection);

/// One line a word that no holder is within: "no holder is in unit llm.service". Users are left out: they are known by
/// name and may well hold nothing.
[[nodiscard]] std::vector<std::string> unmatched_words(const Snapshot& snapshot, const Attribution& attribution,
                                                       const Selection& selection);

/// The word of a --unit, --container, --job or --cgroup as Selection wants it. malformed: what is wrong with it.
[[nodiscard]] Result<std::string> parse_unit_word(std::string_view word);
[[nodiscard]] Result<std::string> parse_container_word(std::string_view word);
[[nodiscard]] Result<std::string> parse_job_word(std::string_view word);
[[nodiscard]] Result<std::string> parse_cgroup_word(std::string_view word);

}  // namespace vacate
