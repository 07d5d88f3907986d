// SPDX-License-Identifier: Apache-2.0
// Looks until the memory of every selected GPU is back, cannot come back by ending processes, or the time is over. Read
// only: the driver is asked every few hundredths of a second, processes are looked at anew whenever its list changes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "gpu/driver_session.h"
#include "model/policy.h"
#include "verify/judge_command.h"
#include "verify/release_view.h"
#include "verify/sighting.h"

namespace vacate {

/// One GPU while it is watched, for a live line.
struct WatchedGpu {
  unsigned index = 0;
  Reading<Bytes> before, used;
  GpuVerdict verdict = GpuVerdict::cannot_tell;
};

class ReleaseObserver {
 public:
  virtual ~ReleaseObserver() = default;
  virtual void on_release(const std::vector<WatchedGpu>& gpus) = 0;
};

/// How a watch sees the machine. `look` and `sample` are the only ways; neither changes anything.
struct WatchTools {
  std::function<Sighting()> look;
  std::function<DriverSample(Deadline)> sample;
  /// Ends the driver child and starts another: with persistence off the figure may be lower once nobody has the GPU
  /// open.
  std::function<void()> reopen_driver;
  /// Has this look found more that is to be ended? Then the watch stops and says so.
  std::function<bool(const Sighting&)> wants_round;
  ReleaseObserver* observer = nullptr;
  int wake = -1;  ///< readable: stop
};

/// What is watched for.
struct WatchRequest {
  const Sighting& before;
  const Plan& plan;
  const std::vector<StepResult>& results;
  std::vector<unsigned> gpus;            ///< by index
  Deadline::Clock::time_point started;   ///< of the command: seconds count from here
  Deadline::Clock::time_point released;  ///< when the last process that was ended had gone
  bool second_look = false;              ///< a supervisor of somebody who was ended may be about to start it anew
};

struct Watched {
  enum class End { settled, deadline, another_round, interrupted };
  End end = End::settled;
  std::vector<Release> releases;  ///< by index
  Sighting last;
};

/// `first`: the look after the last process had gone; it counts as the first sample.
[[nodiscard]] Watched watch_release(const WatchRequest& request, Sighting first, const WatchTools& tools,
                                    const Policy& policy, Deadline deadline);

}  // namespace vacate
