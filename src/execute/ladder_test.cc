// SPDX-License-Identifier: Apache-2.0
#include "execute/ladder.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

using namespace std::chrono_literals;
const Deadline::Clock::time_point kStart{1000s};

LadderTimes times(Escalation escalation = Escalation::kill_after_grace) {
  return {{escalation, 10s, 2s}, kStart, std::nullopt};
}

TEST(Ladder, TheFirstIsAskedAtOnceAndKilledAtTheGrace) {
  EXPECT_EQ(next_signal_at({Ask::at_once, std::nullopt, false}, times()), kStart);
  EXPECT_EQ(next_signal_at({Ask::at_once, kStart, false}, times()), kStart + 10s);
  EXPECT_EQ(next_signal_at({Ask::at_once, kStart, true}, times()), std::nullopt);
}

TEST(Ladder, TheRestOfALiveTreeIsAskedAtHalfTheGrace) {
  EXPECT_EQ(next_signal_at({Ask::at_half_grace, std::nullopt, false}, times()), kStart + 5s);
  EXPECT_EQ(next_signal_at({Ask::at_half_grace, kStart + 5s, false}, times()), kStart + 10s);
}

TEST(Ladder, TheTrackerIsAskedOnlyAfterTheOthersAreGone) {
  auto others = times();
  EXPECT_EQ(next_signal_at({Ask::after_others, std::nullopt, false}, others), std::nullopt);
  others.others_gone = kStart + 1s;
  EXPECT_EQ(next_signal_at({Ask::after_others, std::nullopt, false}, others), kStart + 3s);
  EXPECT_EQ(next_signal_at({Ask::after_others, kStart + 9s, false}, others),
            kStart + 14s);  // asked late: half the grace at least
}

TEST(Ladder, WhoMayEndByItselfIsAskedLater) {
  Progress rung;
  rung.not_before = kStart + 2s;
  EXPECT_EQ(next_signal_at(rung, times()), kStart + 2s);
  rung.asked = kStart + 2s;
  EXPECT_EQ(next_signal_at(rung, times()), kStart + 10s);
}

TEST(Ladder, TermOnlyNeverEscalates) {
  EXPECT_EQ(next_signal_at({Ask::at_once, kStart, false}, times(Escalation::term_only)), std::nullopt);
}

TEST(Ladder, APolicyCanForbidKillAndAskForMoreTime) {
  Progress rung{Ask::at_once, kStart, false};
  rung.term_only = true;
  EXPECT_EQ(next_signal_at(rung, times()), std::nullopt);
  rung.term_only = false;
  rung.grace = 60s;
  EXPECT_EQ(next_signal_at(rung, times()), kStart + 60s);
  rung.asked = kStart + 5s;
  EXPECT_EQ(next_signal_at(rung, times()), kStart + 65s) << "from its own TERM";
  rung.grace = 1s;
  EXPECT_EQ(next_signal_at(rung, times()), kStart + 10s) << "never less than without it";
}

}  // namespace
}  // namespace vacate
