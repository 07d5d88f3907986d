// SPDX-License-Identifier: Apache-2.0
// Signals to vacate itself while it ends others: taken as events, so that nothing is left half done and unnamed. Before
// and after that their default actions are right.
#pragma once

#include <csignal>

#include "base/result.h"
#include "base/unique_fd.h"

namespace vacate {

class SignalWatch {
 public:
  /// Takes INT, TERM, HUP and QUIT, those that are not ignored (nohup), from here on; the process keeps them blocked.
  [[nodiscard]] static Result<SignalWatch> start();
  /// Lets those signals that were not blocked before do again what they did. What has come is not lost.
  void stop() noexcept;

  /// For poll(2): readable once one has come.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  /// The number of the first that has come, 0: none. Reads it; later calls give the same.
  [[nodiscard]] int caught() noexcept;

 private:
  SignalWatch(UniqueFd descriptor, const sigset_t& before) noexcept
      : descriptor_(std::move(descriptor)), before_(before) {}
  UniqueFd descriptor_;
  sigset_t before_;
  int caught_ = 0;
};

}  // namespace vacate
