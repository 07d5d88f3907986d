// SPDX-License-Identifier: Apache-2.0
// Runs one unsafe read over many processes in an expendable child: one fork for all of them, one frame for each that
// has an answer. How far the child is stands in memory that both share, so that thousands of items without an answer
// cost nothing to tell. An item that does not come in time is skipped and known by its index; the child is replaced for
// the rest (facts.md 3.2, Hazards).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/expendable.h"
#include "os/frame.h"

namespace vacate {

struct PassLimits {
  std::chrono::milliseconds each{1000};  ///< longest stay of the child at one item
  std::size_t most_stuck = 3;            ///< more wedged items than that: the rest is given up
  std::size_t largest_answer = std::size_t{4} << 20U;
};

class ExpendablePass {
 public:
  /// In the child: writes the answer for item `index`. Nothing written: there is nothing to tell about it.
  using Produce = std::function<void(std::size_t index, FrameWriter& answer)>;
  /// In the caller: takes the answer for item `index`.
  using Consume = std::function<void(std::size_t index, std::string_view answer)>;

  /// Starts on `count` items at once, beside whatever the caller does until finish().
  ExpendablePass(const char* name, std::size_t count, Produce produce, PassLimits limits = {});
  ~ExpendablePass();

  /// Hands over every answer in order. Returns the indices, sorted, that the child did not come past.
  [[nodiscard]] std::vector<std::size_t> finish(const Consume& consume);

 private:
  class Progress;
  void start_at(std::size_t first);
  /// False: what came is not as the child writes it.
  [[nodiscard]] bool take_answers(FrameStream& stream, const Consume& consume);
  /// Some bytes; 0: it has ended, or stays at one item.
  [[nodiscard]] std::size_t read_in_time(char* buffer, std::size_t size);

  const char* name_;
  std::size_t count_;
  Produce produce_;
  PassLimits limits_;
  std::unique_ptr<Progress> progress_;
  std::size_t next_ = 0;  ///< every item before it is answered, passed over or missing
  std::optional<Expendable> child_;
};

}  // namespace vacate
