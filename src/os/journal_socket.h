// SPDX-License-Identifier: Apache-2.0
// Writes to the journal of systemd, by its documented native protocol: a datagram of fields, or a sealed memory file of
// them where they are too many for one. Never blocks beyond a deadline; no library, no child.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace vacate {

/// Where the journal listens.
inline constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

/// Values may be any bytes. Names: capitals, digits and underscores, beginning with a capital, at most 64.
struct JournalField {
  std::string name;
  std::string value;
};

/// The fields as the protocol has them: NAME=value for a value of one line, else the form with a length.
[[nodiscard]] std::string encode_journal(const std::vector<JournalField>& fields);

class JournalSocket {
 public:
  /// gone: no journal here. refused: `path` or its folder is somebody else's, who would get what is for the journal.
  [[nodiscard]] static Result<JournalSocket> connect(const std::string& path = kJournalSocket);

  /// One entry. timed_out: the journal takes nothing. Taken means that the kernel keeps it for the journal, which
  /// writes it to its files by its own rules.
  [[nodiscard]] Result<void> send(const std::vector<JournalField>& fields, Deadline deadline);

 private:
  explicit JournalSocket(UniqueFd socket) noexcept : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace vacate
