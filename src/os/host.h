// SPDX-License-Identifier: Apache-2.0
// Who and where vacate is: the machine, the calling process and its ancestors, the login shells. Reads only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"
#include "os/procfs.h"

namespace vacate {

/// Everything of Host but whole_host, which is_whole_host() tells from the processes seen.
[[nodiscard]] Host read_host();

/// design.md rule 9: the host's pid namespace has kthreadd, parent 0, uid 0, as its pid 2; no other has.
[[nodiscard]] bool is_whole_host(const ProcDirectory& root);

/// The calling process. `root` where it may signal and look into everybody: euid 0 with CAP_KILL and CAP_SYS_PTRACE
/// effective. An error: its ancestors could not all be read, and nobody can be told from one of them.
[[nodiscard]] Result<Caller> read_caller(const ProcDirectory& root);
/// What is known of it without /proc.
[[nodiscard]] Caller caller_without_ancestors();

/// Capabilities as bit numbers of capability(7), from CapEff.
[[nodiscard]] bool has_capability(std::uint64_t effective, unsigned number) noexcept;

/// Lines of /etc/shells, as written and resolved, sorted: what an exe of a shell can be called.
[[nodiscard]] std::vector<std::string> read_shells();
[[nodiscard]] std::vector<std::string> parse_shells(std::string_view text);

}  // namespace vacate
