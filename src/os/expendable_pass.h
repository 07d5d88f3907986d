// SPDX-License-Identifier: Apache-2.0
// Runs one unsafe read over many processes in an expendable child: one fork for all of them, one frame of answer each.
// An item that does not come in time is skipped and known by its index; the child is replaced for the rest
// (facts.md 3.2, Hazards).
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "os/expendable.h"
#include "os/frame.h"

namespace vacate {

struct PassLimits {
  std::chrono::milliseconds each{1000};  ///< longest silence of the child
  std::size_t most_stuck = 3;            ///< more wedged items than that: the rest is given up
  std::size_t largest_answer = std::size_t{4} << 20U;
};

class ExpendablePass {
 public:
  /// In the child: writes the answer for item `index`.
  using Produce = std::function<void(std::size_t index, FrameWriter& answer)>;
  /// In the caller: takes the answer for item `index`.
  using Consume = std::function<void(std::size_t index, std::string_view answer)>;

  /// Starts on `count` items at once, beside whatever the caller does until finish().
  ExpendablePass(const char* name, std::size_t count, Produce produce, PassLimits limits = {});

  /// Hands over every answer in order. Returns the indices without one, sorted.
  [[nodiscard]] std::vector<std::size_t> finish(const Consume& consume);

 private:
  void start_at(std::size_t first);

  const char* name_;
  std::size_t count_;
  Produce produce_;
  PassLimits limits_;
  std::optional<Expendable> child_;
};

}  // namespace vacate
