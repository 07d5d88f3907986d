// SPDX-License-Identifier: Apache-2.0
// Supervisors: actors whose children are started again at once when they end, for as long as the actor lives. Beside
// the steps of the case, in pid 1; the fork itself is the actor's own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "lab/actor/board.h"
#include "lab/case/case.h"

namespace lab {

class Respawner {
 public:
  /// Has a process forked with the orders that the one of this slot had.
  using StartAgain = std::function<void(std::uint32_t slot)>;

  /// Nothing where no actor has `respawn`. `actors` outlive it.
  [[nodiscard]] static std::unique_ptr<Respawner> start(const std::vector<ActorSpec>& actors, Board board,
                                                        StartAgain start_again);
  Respawner(const Respawner&) = delete;
  Respawner& operator=(const Respawner&) = delete;
  ~Respawner();

 private:
  Respawner(const std::vector<ActorSpec>& actors, Board board, StartAgain start_again);
  void watch();
  void look(const ActorSpec& supervisor);

  const std::vector<ActorSpec>& actors_;
  Board board_;
  StartAgain start_again_;
  std::atomic<bool> over_{false};
  std::thread watcher_;
};

}  // namespace lab
