// SPDX-License-Identifier: Apache-2.0
#include "execute/machine_log.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>

#include <fmt/format.h>

#include "os/host.h"
#include "os/proc_parse.h"
#include "os/procfs.h"
#include "report/action_line.h"

namespace vacate {
namespace {

constexpr std::chrono::milliseconds kJournalPatience{500};

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

EntryAuthor this_run() {
  EntryAuthor author;
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bits))
    bits = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  author.run = fmt::format("{:016x}", bits);
  author.pid = getpid();
  author.uid = geteuid();
  if (const auto login = read_file("/proc/self/loginuid", 64)) author.login_uid = parse_login_uid(*login);
  return author;
}

/// syslog's numbers: a notice, or a warning for what did not come to pass.
std::string_view priority_of(const ActionEntry& entry) {
  const bool is_trouble = entry.result == describe(DeedResult::denied) || entry.result == describe(DeedResult::failed);
  return is_trouble ? "4" : "5";
}

std::vector<JournalField> fields_of(const ActionEntry& entry, const std::string& line) {
  std::vector<JournalField> fields = {
      {"MESSAGE", action_sentence(entry)},
      {"MESSAGE_ID", kRecordMessageId},
      {"PRIORITY", std::string(priority_of(entry))},
      {"SYSLOG_IDENTIFIER", "vacate"},
      {"VACATE_RUN", entry.author.run},
      {"VACATE_PLAN", entry.plan},
      {"VACATE_STEP", std::to_string(entry.n)},
      {"VACATE_PHASE", entry.phase == EntryPhase::intent ? "intent" : "result"},
      {"VACATE_ACTION", entry.action},
      {"VACATE_SIGNAL", entry.signal},
      {"VACATE_KEY", entry.key},
      {"VACATE_TARGET", entry.target},
      {"VACATE_RESULT", entry.result},
      {"VACATE_RECORD", line},
  };
  std::erase_if(fields, [](const JournalField& field) { return field.value.empty(); });
  return fields;
}

}  // namespace

void MachineLog::open() {
  author_ = this_run();
  boot_id_ = read_host().boot_id;
  auto journal = JournalSocket::connect();
  if (journal) {
    journal_ = std::move(*journal);
    place_ = Place::journal;
    outcome_.where = "journal";
    return;
  }
  leave_journal(journal.error());
}

/// What goes wrong with the journal is worth a word only where no file takes its place.
void MachineLog::leave_journal(const Error& why) {
  journal_.reset();
  outcome_.why = why.message;
  open_file();
}

void MachineLog::open_file() {
  place_ = Place::nowhere;
  if (geteuid() != 0) {
    outcome_.why += fmt::format("; {} is root's", kRecordFile);
    return;
  }
  auto file = AppendFile::open(kRecordFile);
  if (!file) {
    outcome_.why = file.error().message;
    return;
  }
  file_ = std::move(*file);
  place_ = Place::file;
  outcome_.where = kRecordFile;
  if (outcome_.entries == 0) outcome_.why.clear();
}

bool MachineLog::keep_in_journal(const ActionEntry& entry, const std::string& line) {
  const auto sent = journal_->send(fields_of(entry, line), Deadline::after(kJournalPatience));
  if (!sent) leave_journal(sent.error());
  return sent.has_value();
}

bool MachineLog::keep_in_file(const std::string& line) {
  const auto written = file_->append(line);
  if (!written) outcome_.why = written.error().message;
  return written.has_value();
}

void MachineLog::keep(const ActionEntry& entry) {
  if (place_ == Place::nowhere) {
    ++outcome_.lost;
    return;
  }
  const std::string line = action_line(entry);
  bool kept = place_ == Place::journal && keep_in_journal(entry, line);
  if (!kept && place_ == Place::file) kept = keep_in_file(line);
  ++(kept ? outcome_.entries : outcome_.lost);
}

/// What the journal was handed it keeps by its own rules; a file is on the disk before anything else is done.
void MachineLog::sync() {
  if (place_ != Place::file) return;
  const auto synced = file_->sync();
  if (synced) return;
  outcome_.why = synced.error().message;
  ++outcome_.lost;  // whether it would outlast a crash is not known
}

ActionEntry MachineLog::entry_for(ActionTicket ticket, const IntendedAction& action) const {
  ActionEntry entry;
  entry.time = now();
  entry.author = author_;
  entry.number = ticket.number;
  entry.boot_id = boot_id_;
  entry.plan = action.plan;
  entry.n = action.n;
  entry.action = describe(action.deed);
  entry.signal = action.signal;
  if (action.key) entry.pid = action.key->pid;
  if (action.key) entry.key = to_string(*action.key);
  entry.target = action.target;
  entry.title = action.title;
  return entry;
}

ActionTicket MachineLog::about_to(const IntendedAction& action) {
  if (place_ == Place::unopened) open();
  const ActionTicket ticket{++last_};
  ActionEntry entry = entry_for(ticket, action);
  entry.because = action.because;
  keep(entry);
  sync();
  return ticket;
}

/// Not synchronised by itself: the next announcement does that, or outcome().
void MachineLog::came_of(ActionTicket ticket, const IntendedAction& action, DeedResult result,
                         std::string_view detail) {
  ActionEntry entry = entry_for(ticket, action);
  entry.phase = EntryPhase::result;
  entry.result = describe(result);
  entry.detail = detail;
  keep(entry);
}

RecordOutcome MachineLog::outcome() {
  sync();
  return outcome_;
}

}  // namespace vacate
