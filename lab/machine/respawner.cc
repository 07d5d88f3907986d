// SPDX-License-Identifier: Apache-2.0
#include "lab/machine/respawner.h"

#include <algorithm>

#include "lab/actor/futex.h"
#include "lab/actor/signals.h"
#include "lab/machine/units.h"

namespace lab {

std::unique_ptr<Respawner> Respawner::start(const std::vector<ActorSpec>& actors, Board board, StartAgain start_again) {
  const bool any = std::any_of(actors.begin(), actors.end(), [](const ActorSpec& a) { return !a.respawn.empty(); });
  if (!any) return nullptr;
  return std::unique_ptr<Respawner>(new Respawner(actors, board, std::move(start_again)));
}

Respawner::Respawner(const std::vector<ActorSpec>& actors, Board board, StartAgain start_again)
    : actors_(actors), board_(board), start_again_(std::move(start_again)) {
  const SignalsBlocked blocked;  // the reaping of pid 1 is for its first thread
  watcher_ = std::thread([this] { watch(); });
}

Respawner::~Respawner() {
  over_.store(true);
  futex_bump(board_.region().event);
  watcher_.join();
}

/// One that never got ready is not tried again: the case is wrong then, and says so.
void Respawner::look(const ActorSpec& supervisor) {
  const auto parent = newest(board_, supervisor.name);
  if (!parent || board_.slot(*parent).phase.load() != Phase::ready) return;
  for (const std::string& name : supervisor.respawn) {
    const auto child = newest(board_, name);
    if (!child || board_.slot(*parent).status.load() != kNoStatus) continue;
    const Slot& slot = board_.slot(*child);
    const bool has_ended = slot.phase.load() == Phase::ready && slot.status.load() != kNoStatus;
    if (has_ended && slot.parent.load() == *parent) start_again_(*child);
  }
}

void Respawner::watch() {
  while (!over_.load()) {
    const std::uint32_t seen = board_.region().event.load();
    for (const ActorSpec& actor : actors_) {
      if (!actor.respawn.empty()) look(actor);
    }
    if (!over_.load()) futex_wait(board_.region().event, seen, vacate::Deadline::never());
  }
}

}  // namespace lab
