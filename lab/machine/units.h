// SPDX-License-Identifier: Apache-2.0
// The units of a machine: what a service manager would know of them, and what it does on its own, which is to start a
// main process again. Lives in pid 1, beside the steps of the case; all of it may be called from any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "lab/actor/board.h"
#include "lab/case/case.h"

namespace lab {

/// The slot that an actor of this name has, or the newest of them after it was started again.
[[nodiscard]] std::optional<std::uint32_t> newest(const Board& board, std::string_view name);

/// A unit as a service manager shows it, in its words.
struct UnitView {
  std::string name;
  std::string load_state = "loaded";
  std::string active_state;
  std::string sub_state;
  std::string restart;
  std::string control_group;
  pid_t main_pid = 0;  ///< in the machine; 0: none
  /// When it last left inactive, by CLOCK_REALTIME and CLOCK_MONOTONIC, in microseconds: the start of its main process.
  std::uint64_t activated_real = 0, activated_monotonic = 0;
};

class Units {
 public:
  /// Forks a process with the orders that the one of this slot had.
  using StartAgain = std::function<void(std::uint32_t slot)>;

  Units(const std::vector<UnitSpec>& specs, Board board, StartAgain start_again);
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;
  ~Units();

  /// Nothing for a unit that the case has not.
  [[nodiscard]] std::optional<UnitView> find(std::string_view name) const;
  [[nodiscard]] std::vector<UnitView> all() const;
  /// TERM to everybody in its control group, and no restart from now on. False: no such unit.
  bool stop(std::string_view name);

 private:
  [[nodiscard]] UnitView view(const UnitSpec& spec) const;
  [[nodiscard]] const UnitSpec* spec(std::string_view name) const;
  [[nodiscard]] pid_t await_main(const UnitSpec& spec) const;
  void keep_running();
  void restart_ended(std::vector<std::chrono::steady_clock::time_point>& restarts);

  const std::vector<UnitSpec>& specs_;
  Board board_;
  StartAgain start_again_;
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> stopped_;
  std::atomic<bool> over_{false};
  std::thread keeper_;
};

}  // namespace lab
