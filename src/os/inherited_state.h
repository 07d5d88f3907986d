// SPDX-License-Identifier: Apache-2.0
// What vacate was started with and changes for itself: a program that it starts in turn gets all of it back and sees
// nothing of vacate.
#pragma once

#include <sys/resource.h>

#include <array>
#include <csignal>

namespace vacate {

class InheritedState {
 public:
  /// To be read first thing, before anything is changed.
  [[nodiscard]] static InheritedState read() noexcept;

  /// In a child that is about to become another program: dispositions, signal mask, limit of descriptors and the
  /// standard descriptors that were closed. Async-signal-safe.
  void restore() const noexcept;

 private:
  InheritedState() = default;
  std::array<bool, NSIG> ignored_{};
  std::array<bool, 3> closed_{};
  sigset_t blocked_{};
  rlimit descriptors_{};
  bool knows_limit_ = false;
};

}  // namespace vacate
