// SPDX-License-Identifier: Apache-2.0
// Asks the GPU driver, in a child process with a deadline: any call into a driver can block for ever, killable or not
// (facts.md 1.10). The child that does not answer is abandoned, never waited for; vacate itself opens no GPU node.
#pragma once

#include <memory>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "model/device.h"
#include "model/snapshot.h"

namespace vacate {

/// One answer of the driver about everything.
struct DriverSample {
  Driver driver;
  std::vector<Gpu> gpus;              ///< by index
  std::vector<DriverCharge> charges;  ///< by (gpu, pid); pids as the driver gave them
  std::vector<BlindSpot> blind_spots;
};

/// A child that has the driver's library loaded and initialised, and answers until it is closed. While it is open the
/// GPUs stay initialised; with persistence off a figure read after close() may be lower (facts.md 2.4).
class DriverSession {
 public:
  /// Starts the child. Never fails for want of a driver: that is a DriverState in every sample.
  [[nodiscard]] static Result<DriverSession> start();
  DriverSession(DriverSession&&) noexcept;
  DriverSession& operator=(DriverSession&&) noexcept;
  ~DriverSession();

  /// Everything. Past the deadline the child is abandoned and the answer is DriverState::no_answer, now and for every
  /// later call: at most one abandoned child.
  [[nodiscard]] DriverSample sample(Deadline deadline);
  /// After a child that did not answer: lets the next sample start another, but only once that one has ended, so that
  /// there is still at most one. For those who wait for a driver.
  void revive() noexcept;
  /// Ends the child politely, waits for it until the deadline.
  void close(Deadline deadline) noexcept;
  /// The child's pid, -1 when there is none: it is no holder.
  [[nodiscard]] pid_t child() const noexcept;

 private:
  struct Impl;
  explicit DriverSession(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vacate
