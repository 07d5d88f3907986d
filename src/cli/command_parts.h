// SPDX-License-Identifier: Apache-2.0
// What several commands do alike: deliver an answer, complain, rehearse.
#pragma once

#include <string_view>

#include "app/free.h"
#include "cli/options.h"
#include "os/inherited_state.h"

namespace vacate {

[[nodiscard]] int number_of(ExitCode code) noexcept;

/// `code`, unless the answer could not be delivered: a caller that did not get it cannot tell.
[[nodiscard]] int delivered(std::string_view text, int code);

/// One line on standard error; the exit code for such an error.
[[nodiscard]] int complain_about(const Error& error);

/// The policy of this run, with the scan that was asked for. denied, unsupported: BPF was, and cannot be had here.
[[nodiscard]] Result<Policy> load_policy_and_scan(const std::optional<std::string>& file, ScanMethod scan);
[[nodiscard]] Result<void> check_scan(ScanMethod scan);

/// Prints the plan of a dry run as it would be carried out.
[[nodiscard]] int rehearse_free(const FreeOptions& options, const PreparedFree& prepared, const Policy& policy);

/// uids of names or numbers, by this machine's passwd file. malformed: nobody is called that.
[[nodiscard]] Result<std::vector<uid_t>> resolve_users(const std::vector<std::string>& words);
/// The recording that --replay names, attributed. malformed: what is wrong with it.
[[nodiscard]] Result<Look> look_at_file(const std::string& path, const Policy& policy);

/// `free` on this machine (free_command.cc).
[[nodiscard]] int free_gpus(const FreeOptions& options);

// Commands that explain (explaining_commands.cc).
[[nodiscard]] int explain(const WhyOptions& options);
[[nodiscard]] int diagnose(const DoctorOptions& options);
[[nodiscard]] int run_shm(const ShmOptions& options);
[[nodiscard]] int show_log(const LogOptions& options);

// The gate (wait_command.cc).
[[nodiscard]] int run_wait(const WaitOptions& options);
/// `run` (run_command.cc).
[[nodiscard]] int run_under_a_keeper(const RunOptions& options, const InheritedState& inherited);

// Commands about units (unit_commands.cc).
[[nodiscard]] int run_unit_lint(const UnitLintOptions& options);
[[nodiscard]] int run_unit_dropin(const UnitDropinOptions& options);

// Commands about recordings (recording_commands.cc).
[[nodiscard]] int record(const RecordOptions& options);
/// `options.replay` is set.
[[nodiscard]] int replay(const StatusOptions& options);
[[nodiscard]] int replay(const FreeOptions& options);

}  // namespace vacate
