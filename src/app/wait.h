// SPDX-License-Identifier: Apache-2.0
// `wait` as a composition: look, judge each GPU, wait for whoever is in the way, look again. It changes nothing but
// what `--reap` asks for. Who prints, tells the service manager and listens to signals is cli/.
//
// What wakes it: the end of anybody in the way (their process descriptors), else the driver's figures at growing
// distances. A sample decides nothing: where it differs from the last look in who is charged or in what would be
// concluded, the machine is looked at again, and only looks count. So an hour in which nothing changes costs some
// hundred and eighty small questions to the driver and 12 looks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/gpu_locks.h"
#include "app/look.h"
#include "report/wait.h"

namespace vacate {

/// From one sample of the driver to the next after an end or a change; each time half as long again.
inline constexpr std::chrono::milliseconds kFirstDistance{50};
/// The longest: how late a change without an end (a server that gives memory back, a booting driver) is seen at most.
inline constexpr std::chrono::milliseconds kLongestDistance{20'000};
/// A look at least so often, for what neither descriptors nor the driver's list would show.
inline constexpr std::chrono::milliseconds kLookAtLeast{300'000};
/// Looks take at most one part in so many of the time, however often things change.
inline constexpr int kShareOfLooks = 20;

class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  /// Somebody else is in the way than before, or nobody any more; also once at the start.
  virtual void on_change(const WaitReport& now) = 0;
  /// After every sample and look.
  virtual void on_sample(const WaitReport& now) = 0;
  /// Nothing else may be called for as long as this.
  virtual void on_absence(std::chrono::milliseconds at_most) = 0;
};

/// What came of ending leftovers.
struct Reaped {
  std::vector<StepResult> results;
  int interrupted_by = 0;
};

struct WaitTools {
  std::function<Look()> look;
  std::function<DriverSample(Deadline)> sample;
  /// Ends the driver child and starts another: with persistence off memory may only go once nobody has the GPU open.
  std::function<void()> reopen_driver;
  /// Lets a driver that did not answer be asked again, if the child that asked has ended.
  std::function<void()> revive_driver;
  /// Ends leftovers on these GPUs within the time, as `free` does, on a look of its own. timed_out: another vacate was
  /// at work all the while. Unset: without --reap.
  std::function<Result<Reaped>(const std::vector<unsigned>&, std::chrono::milliseconds)> reap;
  /// Tries for the locks of these GPUs until the deadline: nothing once all are taken, else who has one. Unset: without
  /// --lock.
  std::function<Result<std::optional<GpuLocks::Busy>>(const std::vector<Gpu>&, Deadline)> lock;
  WaitObserver& observer;
  int wake = -1;  ///< readable: stop
};

/// Waits. `gpu_words` are those of --gpu, none: all. While the driver does not answer, a word that names no GPU may
/// name one later; else malformed.
[[nodiscard]] Result<WaitReport> wait_for_gpus(const WaitRequest& request, const std::vector<std::string>& gpu_words,
                                               const WaitTools& tools, const Policy& policy);

}  // namespace vacate
