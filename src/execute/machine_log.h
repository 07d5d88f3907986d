// SPDX-License-Identifier: Apache-2.0
// The log of actions that a machine keeps: its journal where it has one, else /var/log/vacate.jsonl where the caller is
// root (docs/record.md). Opened with the first action: a command that does nothing leaves nothing.
#pragma once

#include <optional>
#include <string>

#include "execute/action_log.h"
#include "model/action_entry.h"
#include "os/append_file.h"
#include "os/journal_socket.h"

namespace vacate {

inline constexpr const char* kRecordFile = "/var/log/vacate.jsonl";
/// MESSAGE_ID of every entry in the journal.
inline constexpr const char* kRecordMessageId = "6f1d3c0a5b8e4f27a94c2d71e0b3586a";

class MachineLog final : public ActionLog {
 public:
  [[nodiscard]] ActionTicket about_to(const IntendedAction& action) override;
  void came_of(ActionTicket ticket, const IntendedAction& action, DeedResult result, std::string_view detail) override;
  [[nodiscard]] RecordOutcome outcome() override;

 private:
  enum class Place { unopened, journal, file, nowhere };

  void open();
  void leave_journal(const Error& why);
  void open_file();
  void keep(const ActionEntry& entry);
  [[nodiscard]] bool keep_in_journal(const ActionEntry& entry, const std::string& line);
  [[nodiscard]] bool keep_in_file(const std::string& line);
  void sync();
  [[nodiscard]] ActionEntry entry_for(ActionTicket ticket, const IntendedAction& action) const;

  Place place_ = Place::unopened;
  std::optional<JournalSocket> journal_;
  std::optional<AppendFile> file_;
  EntryAuthor author_;
  std::string boot_id_;
  std::uint64_t last_ = 0;  ///< number given last
  RecordOutcome outcome_;
};

}  // namespace vacate
