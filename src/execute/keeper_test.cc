// SPDX-License-Identifier: Apache-2.0
// What the keeper says is read back as it was meant, or not at all. What it does: tests/run.
#include "execute/keeper_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vacate {
namespace {

KeeperEvent an_event() {
  KeeperEvent event{KeeperEvent::Kind::all_ended, 9, 11, true};
  event.end.somebody_left = true;
  event.end.unnamed = 3;
  event.end.record = RecordOutcome{"journal", 6, 1, "why"};
  event.end.processes = {{{12, 77, 0, 0}, "rank\n", StepStatus::timed_out, {"TERM", "KILL"}, 1.5, "still there"},
                         {{13, 78, 0, 0}, "", StepStatus::gone, {}, 0, ""}};
  return event;
}

TEST(KeeperProtocol, AnEventIsReadBackAsItWasMeant) {
  const auto event = parse_keeper_event(render_keeper_event(an_event()));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, KeeperEvent::Kind::all_ended);
  EXPECT_EQ(event->number, 9);
  EXPECT_EQ(event->pid, 11);
  EXPECT_TRUE(event->somebody_left && event->end.somebody_left);
  EXPECT_EQ(event->end.unnamed, 3U);
  EXPECT_EQ(event->end.record, an_event().end.record);
  ASSERT_EQ(event->end.processes.size(), 2U);
  const auto& first = event->end.processes[0];
  EXPECT_EQ(to_string(first.key), "12@77");
  EXPECT_EQ(first.title, "rank\n");
  EXPECT_EQ(first.status, StepStatus::timed_out);
  EXPECT_THAT(first.signals, testing::ElementsAre("TERM", "KILL"));
  EXPECT_DOUBLE_EQ(first.seconds, 1.5);
  EXPECT_EQ(first.detail, "still there");
}

TEST(KeeperProtocol, ManyProcessesAreCutToWhatOneMessageHolds) {
  auto event = an_event();
  event.end.processes.assign(5000, event.end.processes[0]);
  const std::string bytes = render_keeper_event(event);
  EXPECT_LT(bytes.size(), kLargestKeeperMessage);
  const auto read = parse_keeper_event(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->end.processes.size() + read->end.unnamed, 5003U);
}

TEST(KeeperProtocol, APieceOfAnEventIsNone) {
  const std::string bytes = render_keeper_event(an_event());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_keeper_event(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(parse_keeper_event(bytes + "x"));
  EXPECT_FALSE(parse_keeper_event(std::string(64, '\xff')));
}

}  // namespace
}  // namespace vacate
