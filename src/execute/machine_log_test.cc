// SPDX-License-Identifier: Apache-2.0
// Machines with a journal, without one, with one that ends: mounts of the test's own, a socket in the journal's place.
#include "execute/machine_log.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "os/test_mounts.h"
#include "report/action_line.h"
#include "report/log.h"

namespace vacate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// /run and /var/log of the test's own.
bool lay_out() {
  return mount("tmpfs", "/run", "tmpfs", 0, "mode=755") == 0 && mount("tmpfs", "/var/log", "tmpfs", 0, "mode=755") == 0;
}

IntendedAction term() {
  return {Deed::signal, "0123456789abcdef", 2, ProcessKey{4711, 156405, 0, 0}, {}, "TERM", "train\n", {"evidence"}};
}

std::string content() {
  std::ostringstream text;
  text << std::ifstream(kRecordFile).rdbuf();
  return text.str();
}

std::vector<std::pair<ActionEntry, std::string>> entries() {
  std::vector<std::pair<ActionEntry, std::string>> list;
  const std::string text = content();
  for (const auto line : split(text, '\n'))
    if (const auto entry = parse_action_line(line)) list.emplace_back(*entry, kRecordFile);
  return list;
}

class Listener {
 public:
  Listener() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    static_cast<void>(mkdir("/run/systemd", 0755));
    static_cast<void>(mkdir("/run/systemd/journal", 0755));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, kJournalSocket);
    if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) abort();
  }
  [[nodiscard]] std::string next() const {
    std::array<char, 65536> bytes{};
    const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return count < 0 ? "" : std::string(bytes.data(), static_cast<std::size_t>(count));
  }

 private:
  UniqueFd socket_;
};

TEST(MachineLog, WithoutAJournalItIsTheFile) {
  testing::in_mount_namespace(lay_out, [] {
    MachineLog log;
    const auto ticket = log.about_to(term());
    ASSERT_THAT(entries(), SizeIs(1)) << "it is there before anything is done";
    EXPECT_EQ(entries()[0].first.phase, EntryPhase::intent);
    log.came_of(ticket, term(), DeedResult::done, "");
    const auto actions = join_entries(entries());
    ASSERT_THAT(actions, SizeIs(1));
    EXPECT_EQ(actions[0].entry.key, "4711@156405");
    EXPECT_EQ(actions[0].entry.plan, "0123456789abcdef");
    EXPECT_EQ(actions[0].entry.n, 2U);
    EXPECT_EQ(actions[0].entry.because, std::vector<std::string>{"evidence"});
    EXPECT_EQ(actions[0].entry.result, "done");
    EXPECT_EQ(log.outcome(), (RecordOutcome{kRecordFile, 2, 0, ""}));
  });
}

TEST(MachineLog, WhatDidNothingLeavesNothing) {
  testing::in_mount_namespace(lay_out, [] {
    EXPECT_EQ(MachineLog().outcome(), RecordOutcome{});
    EXPECT_NE(access(kRecordFile, F_OK), 0);
  });
}

TEST(MachineLog, TheJournalIsPreferredAndGetsFieldsToSearchFor) {
  testing::in_mount_namespace(lay_out, [] {
    const Listener journal;
    MachineLog log;
    const auto ticket = log.about_to(term());
    EXPECT_THAT(journal.next(),
                AllOf(HasSubstr("MESSAGE=about to: TERM 4711@156405 (train\\x0a), because evidence\n"),
                      HasSubstr(std::string("MESSAGE_ID=") + kRecordMessageId + "\n"),
                      HasSubstr("SYSLOG_IDENTIFIER=vacate\n"), HasSubstr("VACATE_PLAN=0123456789abcdef\n"),
                      HasSubstr("VACATE_KEY=4711@156405\n"), HasSubstr("VACATE_RECORD={"), HasSubstr("PRIORITY=5\n")));
    log.came_of(ticket, term(), DeedResult::denied, "not yours");
    EXPECT_THAT(journal.next(), AllOf(HasSubstr("VACATE_RESULT=denied\n"), HasSubstr("PRIORITY=4\n")));
    EXPECT_EQ(log.outcome(), (RecordOutcome{"journal", 2, 0, ""}));
    EXPECT_NE(access(kRecordFile, F_OK), 0);
  });
}

TEST(MachineLog, AJournalThatEndsIsFollowedByTheFile) {
  testing::in_mount_namespace(lay_out, [] {
    MachineLog log;
    std::optional<Listener> journal(std::in_place);
    const auto ticket = log.about_to(term());
    EXPECT_NE(journal->next(), "");
    journal.reset();
    log.came_of(ticket, term(), DeedResult::done, "");
    ASSERT_THAT(entries(), SizeIs(1));
    EXPECT_EQ(entries()[0].first.phase, EntryPhase::result);
    const auto outcome = log.outcome();
    EXPECT_EQ(outcome.where, kRecordFile);
    EXPECT_EQ(outcome.entries, 2U);
    EXPECT_EQ(outcome.lost, 0U);
    EXPECT_THAT(outcome.why, HasSubstr("the journal"));
  });
}

TEST(MachineLog, WhatCanBeKeptNowhereIsCountedAndExplained) {
  testing::in_mount_namespace(lay_out, [] {
    ASSERT_EQ(symlink("/run/elsewhere", kRecordFile), 0);
    MachineLog log;
    log.came_of(log.about_to(term()), term(), DeedResult::done, "");
    const auto outcome = log.outcome();
    EXPECT_EQ(outcome.where, "");
    EXPECT_EQ(outcome.lost, 2U);
    EXPECT_THAT(outcome.why, HasSubstr("symbolic link"));
    EXPECT_NE(access("/run/elsewhere", F_OK), 0);
  });
}

TEST(MachineLog, OneThatEndsBetweenLeavesTheAnnouncement) {
  testing::in_mount_namespace(lay_out, [] {
    MachineLog log;
    const auto first = log.about_to(term());
    struct stat info {};
    ASSERT_EQ(stat(kRecordFile, &info), 0);
    const rlimit limit{static_cast<rlim_t>(info.st_size), RLIM_INFINITY};  // the result finds no room
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    log.came_of(first, term(), DeedResult::done, "");
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};  // before the test itself writes to a file
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
    EXPECT_EQ(log.outcome().lost, 1U);
    const auto actions = join_entries(entries());
    ASSERT_THAT(actions, SizeIs(1));
    EXPECT_FALSE(actions[0].ended);
  });
}

}  // namespace
}  // namespace vacate
