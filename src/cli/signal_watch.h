// SPDX-License-Identifier: Apache-2.0
// Signals to vacate itself while it ends others: taken as events, so that nothing is left half done and unnamed. Before
// and after that their default actions are right.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace vacate {

class SignalWatch {
 public:
  /// Takes INT, TERM, HUP and QUIT, those that are not ignored (nohup), from here on; the process keeps them blocked.
  [[nodiscard]] static Result<SignalWatch> start();

  /// For poll(2): readable once one has come.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  /// The number of the first that has come, 0: none. Reads it; later calls give the same.
  [[nodiscard]] int caught() noexcept;

 private:
  explicit SignalWatch(UniqueFd descriptor) noexcept : descriptor_(std::move(descriptor)) {}
  UniqueFd descriptor_;
  int caught_ = 0;
};

}  // namespace vacate
