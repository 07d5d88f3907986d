// SPDX-License-Identifier: Apache-2.0
// Reads entries back from the journal of systemd, through libsystemd found by dlopen, in an expendable child: the
// library maps files that may be damaged, and reading them can take long.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"

namespace vacate {

struct JournalQuestion {
  std::string message_id;   ///< of the entries that are meant
  std::string field;        ///< whose value is wanted
  std::uint64_t since = 0;  ///< microseconds since the epoch
};

struct JournalAnswer {
  std::string value;  ///< hostile bytes: anybody can write to the journal
  /// Whose process wrote it, as the journal itself saw; nothing where it did not say.
  std::optional<uid_t> uid;
};

/// Is there a journal with files on this machine?
[[nodiscard]] bool has_journal() noexcept;

/// Entries in the journal's order, those that the caller may read. unsupported: no library. timed_out, failed: the
/// child gave no whole answer.
[[nodiscard]] Result<std::vector<JournalAnswer>> read_journal(const JournalQuestion& question, Deadline deadline);

}  // namespace vacate
