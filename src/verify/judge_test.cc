// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "verify/judge_command.h"
#include "verify/judge_release.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;

ReleaseView view(std::uint64_t before, std::uint64_t used, std::uint64_t baseline = 4) {
  ReleaseView result;
  result.before = mebibytes(before);
  result.used = mebibytes(used);
  result.baseline = mebibytes(baseline);
  result.holders_charged = Bytes{0};
  result.ended_charged = Bytes{0};
  return result;
}

ReleaseView ended(ReleaseView view, std::uint64_t charged, std::chrono::milliseconds ago = 0ms) {
  view.touched = true;
  view.ended_charged = mebibytes(charged);
  view.since_release = ago;
  return view;
}

ReleaseView held(ReleaseView view, std::uint64_t charged) {
  view.holders = {4711};
  view.holders_charged = mebibytes(charged);
  return view;
}

template <class Change>
ReleaseView with(ReleaseView view, Change change) {
  change(view);
  return view;
}

struct Row {
  const char* what;
  ReleaseView view;
  GpuVerdict verdict;
  Proof proof;
  bool settled;
};

const Row kRows[] = {
    {"everything is back", ended(view(96619, 0, 9), 96610), GpuVerdict::released, Proof::seen, true},
    {"within the tolerance", ended(view(50000, 130), 49996), GpuVerdict::released, Proof::seen, true},
    {"just above the tolerance", ended(view(50000, 133), 49996), GpuVerdict::releasing, Proof::pending, false},
    {"idle and untouched", view(600, 600, 600), GpuVerdict::released, Proof::seen, true},
    {"late: the last holder went a second ago", ended(view(80000, 80000), 80000, 1s), GpuVerdict::releasing,
     Proof::pending, false},
    {"flat for 10 s, but released less than 30 s ago",
     with(ended(view(80000, 80000), 80000, 20s), [](ReleaseView& v) { v.since_fall = 20s; }), GpuVerdict::releasing,
     Proof::pending, false},
    {"flat, and the last release is long ago",
     with(ended(view(80000, 80000), 80000, 31s), [](ReleaseView& v) { v.since_fall = 31s; }),
     GpuVerdict::held_by_nobody, Proof::seen, true},
    {"still falling in steps after 30 s",
     with(ended(view(80000, 40000), 80000, 31s),
          [](ReleaseView& v) {
            v.since_fall = 2s;
            v.has_fallen = true;
          }),
     GpuVerdict::releasing, Proof::pending, false},
    {"residue, first look", view(46115, 46115, 1024), GpuVerdict::cannot_tell, Proof::pending, false},
    {"residue, flat for 10 s", with(view(46115, 46115, 1024), [](ReleaseView& v) { v.since_fall = 10s; }),
     GpuVerdict::held_by_nobody, Proof::seen, true},
    {"residue that something unseen could hold",
     with(view(46115, 46115, 1024),
          [](ReleaseView& v) {
            v.unseen_possible = true;
            v.since_fall = 99s;
          }),
     GpuVerdict::cannot_tell, Proof::unreadable, true},
    {"the driver still lists who has ended",
     with(ended(view(50000, 4), 49996), [](ReleaseView& v) { v.ended_still_listed = true; }), GpuVerdict::releasing,
     Proof::pending, false},
    {"a partial view, no baseline, memory is plainly back",
     with(ended(view(10004, 4), 10000),
          [](ReleaseView& v) {
            v.baseline = Unknown::no_permission;
            v.unseen_possible = true;
          }),
     GpuVerdict::released, Proof::seen, true},
    {"no baseline, fell by what was ended",
     with(ended(view(10600, 600), 10000),
          [](ReleaseView& v) {
            v.baseline = Unknown::no_permission;
            v.unseen_possible = true;
          }),
     GpuVerdict::released, Proof::seen, true},
    {"a partial view, fell by what was ended, much is left",
     with(ended(view(20004, 10004), 10000),
          [](ReleaseView& v) {
            v.baseline = Unknown::no_permission;
            v.unseen_possible = true;
          }),
     GpuVerdict::cannot_tell, Proof::unreadable, true},
    {"a partial view, not back yet",
     with(ended(view(20004, 20004), 10000, 1s),
          [](ReleaseView& v) {
            v.baseline = Unknown::no_permission;
            v.unseen_possible = true;
          }),
     GpuVerdict::releasing, Proof::pending, false},
    {"no figure, nobody left", with(ended(view(0, 0), 100), [](ReleaseView& v) { v.used = Unknown::not_supported; }),
     GpuVerdict::cannot_tell, Proof::unreadable, true},
    {"no figure, somebody left, somebody ended",
     held(with(ended(view(0, 0), 100), [](ReleaseView& v) { v.used = Unknown::timed_out; }), 5),
     GpuVerdict::cannot_tell, Proof::unreadable, true},
    {"no figure, nobody ended", held(with(view(0, 0), [](ReleaseView& v) { v.used = Unknown::timed_out; }), 5),
     GpuVerdict::in_use, Proof::seen, true},
    {"somebody who stays shares the client: the driver still charges who made it",
     with(held(ended(view(10004, 10004), 10000), 10000), [](ReleaseView& v) { v.keepers = {4711}; }),
     GpuVerdict::in_use, Proof::kept, true},
    {"the same, and the driver tells nobody's charge: at first",
     with(held(ended(view(15004, 10004), 15000), 0), [](ReleaseView& v) { v.keepers = {4711}; }), GpuVerdict::in_use,
     Proof::pending, false},
    {"the same, a second after the last fall: what was not shared may be late",
     with(held(ended(view(15004, 10004), 15000), 0),
          [](ReleaseView& v) {
            v.keepers = {4711};
            v.since_fall = 1s;
          }),
     GpuVerdict::in_use, Proof::pending, false},
    {"the same, ten seconds after it",
     with(held(ended(view(15004, 10004), 15000), 0),
          [](ReleaseView& v) {
            v.keepers = {4711};
            v.since_fall = 10s;
          }),
     GpuVerdict::in_use, Proof::kept, true},
    {"what is shared was no client with memory: all is back",
     with(held(ended(view(15004, 5004), 10000), 5000), [](ReleaseView& v) { v.keepers = {4711}; }), GpuVerdict::in_use,
     Proof::seen, true},
    {"one that was charged nothing is ended, its client is that of somebody who stays",
     with(held(ended(view(10004, 10004), 0), 10000), [](ReleaseView& v) { v.keepers = {4711}; }), GpuVerdict::in_use,
     Proof::seen, true},
    {"live holders, untouched, most of it managed", held(view(60304, 60304), 300), GpuVerdict::in_use, Proof::seen,
     true},
    {"a live holder explains what is left", held(ended(view(50004, 20004), 30000), 20000), GpuVerdict::in_use,
     Proof::seen, true},
    {"a newcomer explains what is used", held(ended(view(60004, 20004), 60000), 20000), GpuVerdict::in_use, Proof::seen,
     true},
    {"a newcomer beside memory that is not back", held(ended(view(60004, 80004), 60000), 20000), GpuVerdict::in_use,
     Proof::pending, false},
    {"fell by what was ended, the rest is managed", held(ended(view(60304, 55304), 5000), 300), GpuVerdict::in_use,
     Proof::seen, true},
    {"no figures for processes, long at rest: stable is not free",
     held(with(ended(view(50004, 20004), 0),
               [](ReleaseView& v) {
                 v.ended_charged = v.holders_charged = Unknown::not_supported;
                 v.since_fall = 31s;
                 v.since_release = 31s;
               }),
          0),
     GpuVerdict::in_use, Proof::unreadable, true},
    {"memory that never comes back beside a live holder",
     held(with(ended(view(43004, 43004), 40000, 31s), [](ReleaseView& v) { v.since_fall = 31s; }), 3000),
     GpuVerdict::in_use, Proof::unreadable, true},
    {"nobody knows what was ended, nothing fell",
     with(ended(view(904, 904, 904), 0, 5s), [](ReleaseView& v) { v.baseline_is_assumed = true; }),
     GpuVerdict::releasing, Proof::pending, false},
    {"nobody knows what was ended, nothing ever fell",
     with(ended(view(904, 904, 904), 0, 31s),
          [](ReleaseView& v) {
            v.baseline_is_assumed = true;
            v.since_fall = 31s;
          }),
     GpuVerdict::cannot_tell, Proof::unreadable, true},
    {"a measured baseline needs no fall", ended(view(904, 904, 904), 0, 5s), GpuVerdict::released, Proof::seen, true},
};

TEST(JudgeRelease, Table) {
  for (const auto& row : kRows) {
    const auto judgement = judge_release(row.view, Policy{});
    EXPECT_EQ(describe(judgement.verdict), describe(row.verdict)) << row.what;
    EXPECT_EQ(judgement.proof, row.proof) << row.what;
    EXPECT_EQ(judgement.settled, row.settled) << row.what;
  }
}

StepResult result(StepStatus status) { return {1, 10, status, {}, 0, ""}; }
Release gpu(GpuVerdict verdict, Proof proof = Proof::seen) {
  Release release;
  release.outcome.verdict = verdict;
  release.proof = proof;
  return release;
}

struct CommandRow {
  std::vector<StepResult> results;
  std::vector<Release> releases;
  Remaining remaining;
  Verdict verdict;
  int exit;
};

TEST(JudgeCommand, Table) {
  using S = StepStatus;
  using G = GpuVerdict;
  const auto nobody = Remaining::nobody;
  const CommandRow rows[] = {
      {{}, {}, nobody, Verdict::nothing_to_do, 0},
      {{}, {gpu(G::released), gpu(G::in_use)}, nobody, Verdict::nothing_to_do, 0},
      {{result(S::gone)}, {gpu(G::released), gpu(G::in_use)}, nobody, Verdict::released, 0},
      {{result(S::already_gone)}, {gpu(G::released)}, nobody, Verdict::released, 0},
      {{result(S::identity_changed)}, {gpu(G::in_use)}, nobody, Verdict::released, 0},
      {{result(S::gone), result(S::timed_out)}, {gpu(G::in_use)}, nobody, Verdict::holders_remain, 1},
      {{result(S::stuck)}, {gpu(G::in_use)}, nobody, Verdict::holders_remain, 1},
      {{result(S::gone)}, {gpu(G::in_use)}, Remaining::somebody, Verdict::holders_remain, 1},
      {{result(S::gone)}, {gpu(G::in_use, Proof::kept)}, nobody, Verdict::holders_remain, 1},
      {{result(S::gone), result(S::refused)}, {gpu(G::in_use)}, nobody, Verdict::refused, 3},
      {{result(S::denied)}, {gpu(G::in_use)}, nobody, Verdict::refused, 3},
      {{result(S::refused), result(S::timed_out)}, {gpu(G::cannot_tell)}, Remaining::somebody, Verdict::refused, 3},
      {{result(S::gone)}, {gpu(G::releasing, Proof::pending)}, nobody, Verdict::releasing, 1},
      {{result(S::gone)}, {gpu(G::in_use, Proof::pending)}, nobody, Verdict::releasing, 1},
      {{}, {gpu(G::held_by_nobody), gpu(G::cannot_tell)}, nobody, Verdict::held_by_nobody, 5},
      {{result(S::gone)}, {gpu(G::released), gpu(G::cannot_tell)}, nobody, Verdict::cannot_tell, 4},
      {{result(S::gone)}, {gpu(G::in_use, Proof::unreadable)}, nobody, Verdict::cannot_tell, 4},
      {{result(S::timed_out)}, {gpu(G::held_by_nobody)}, nobody, Verdict::holders_remain, 1},
  };
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    Outcome outcome;
    outcome.verdict = judge_command(rows[i].results, rows[i].releases, rows[i].remaining);
    EXPECT_EQ(describe(outcome.verdict), describe(rows[i].verdict)) << i;
    EXPECT_EQ(static_cast<int>(exit_code_of(outcome)), rows[i].exit) << i;
  }
}

}  // namespace
}  // namespace vacate
