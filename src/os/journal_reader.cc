// SPDX-License-Identifier: Apache-2.0
// Prototypes are our own, of calls that the library has had since systemd 196.
#include "os/journal_reader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "os/expendable.h"
#include "os/frame.h"
#include "os/systemd_library.h"

namespace vacate {
namespace {

constexpr int kLocalOnly = 1;
constexpr std::size_t kLargestValue = std::size_t{64} << 10U;
constexpr std::size_t kMostMessages = 200'000;

struct Journal;  // opaque to everybody but the library

struct JournalLibrary {
  int (*open)(Journal** journal, int flags) = nullptr;
  void (*close)(Journal* journal) = nullptr;
  int (*add_match)(Journal* journal, const void* data, std::size_t size) = nullptr;
  int (*seek)(Journal* journal, std::uint64_t since) = nullptr;
  int (*next)(Journal* journal) = nullptr;
  int (*get_data)(Journal* journal, const char* field, const void** data, std::size_t* size) = nullptr;
};

/// What the child says first, or last.
enum class Word : std::uint8_t { entry, end, no_library, failed };

void say(int channel, Word word, int code = 0) {
  FrameWriter frame;
  frame.number(static_cast<std::uint8_t>(word));
  frame.number(static_cast<std::int32_t>(code));
  static_cast<void>(send_frame(channel, frame.bytes()));
}

/// The value of `field` of the entry that the journal is at, without "FIELD=".
std::optional<std::string> value_of(const JournalLibrary& calls, Journal* journal, const std::string& field) {
  const void* data = nullptr;
  std::size_t size = 0;
  if (calls.get_data(journal, field.c_str(), &data, &size) < 0) return std::nullopt;
  const std::string_view whole(static_cast<const char*>(data), size);
  if (size <= field.size() || size - field.size() > kLargestValue) return std::nullopt;
  return std::string(whole.substr(field.size() + 1));
}

int send_entries(int channel, const JournalLibrary& calls, Journal* journal, const JournalQuestion& question) {
  int code = calls.add_match(journal, ("MESSAGE_ID=" + question.message_id).c_str(), 0);
  if (code >= 0) code = calls.seek(journal, question.since);
  for (std::size_t count = 0; code >= 0 && count < kMostMessages; ++count) {
    code = calls.next(journal);
    if (code <= 0) break;
    FrameWriter frame;
    frame.number(static_cast<std::uint8_t>(Word::entry));
    frame.text(value_of(calls, journal, question.field).value_or(""));
    frame.text(value_of(calls, journal, "_UID").value_or(""));
    if (!send_frame(channel, frame.bytes())) return 1;
  }
  say(channel, code < 0 ? Word::failed : Word::end, code);
  return 0;
}

/// In the child.
int answer(int channel, const JournalQuestion& question) {
  clearenv();  // the library has variables of its own
  void* library = dlopen(kSystemdLibrary, RTLD_LAZY | RTLD_LOCAL);
  JournalLibrary calls;
  const bool complete = library != nullptr && find_call(library, calls.open, "sd_journal_open") &&
                        find_call(library, calls.close, "sd_journal_close") &&
                        find_call(library, calls.add_match, "sd_journal_add_match") &&
                        find_call(library, calls.seek, "sd_journal_seek_realtime_usec") &&
                        find_call(library, calls.next, "sd_journal_next") &&
                        find_call(library, calls.get_data, "sd_journal_get_data");
  if (!complete) {
    say(channel, Word::no_library);
    return 1;
  }
  Journal* journal = nullptr;
  const int code = calls.open(&journal, kLocalOnly);
  if (code < 0) {
    say(channel, Word::failed, code);
    return 1;
  }
  const int status = send_entries(channel, calls, journal, question);
  calls.close(journal);
  return status;
}

std::optional<JournalAnswer> entry_of(FrameReader& frame) {
  JournalAnswer entry;
  entry.value = frame.text();
  const auto uid = parse_unsigned(frame.text());
  if (!frame.complete()) return std::nullopt;
  if (uid && *uid < 0xFFFFFFFFU) entry.uid = static_cast<uid_t>(*uid);
  return entry;
}

Error failure_of(Word word, FrameReader& frame) {
  const int code = frame.number<std::int32_t>();
  if (word == Word::no_library)
    return Error{ErrorCode::unsupported, fmt::format("{} is not there, which reads the journal", kSystemdLibrary)};
  return code < 0 ? system_error("the journal", -code) : Error{ErrorCode::io, "the journal gave no answer"};
}

}  // namespace

bool has_journal() noexcept { return access("/var/log/journal", F_OK) == 0 || access("/run/log/journal", F_OK) == 0; }

Result<std::vector<JournalAnswer>> read_journal(const JournalQuestion& question, Deadline deadline) {
  auto child = Expendable::start("vacate-journal", [&](int channel) { return answer(channel, question); });
  if (!child) return child.error().within("the journal");
  std::vector<JournalAnswer> entries;
  FrameStream stream(2 * kLargestValue);
  std::array<char, 16384> piece{};
  for (;;) {
    const auto n = child->read_some(piece.data(), piece.size(), deadline);
    if (!n) return n.error().within("the journal");
    if (*n == 0) return Error{ErrorCode::io, "the journal could not be read to its end"};
    stream.feed({piece.data(), *n});
    while (const auto payload = stream.next()) {
      FrameReader frame(*payload);
      const auto word = static_cast<Word>(frame.number<std::uint8_t>());
      if (word == Word::end) return entries;
      if (word != Word::entry) return failure_of(word, frame);
      auto entry = entry_of(frame);
      if (entry) entries.push_back(std::move(*entry));
    }
  }
}

}  // namespace vacate
