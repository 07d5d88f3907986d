// SPDX-License-Identifier: Apache-2.0
#include "os/expendable_pass.h"

#include <array>

namespace vacate {

ExpendablePass::ExpendablePass(const char* name, std::size_t count, Produce produce, PassLimits limits)
    : name_(name), count_(count), produce_(std::move(produce)), limits_(limits) {
  start_at(0);
}

void ExpendablePass::start_at(std::size_t first) {
  child_.reset();
  if (first >= count_) return;
  auto child = Expendable::start(name_, [this, first](int channel) {
    for (std::size_t index = first; index < count_; ++index) {
      FrameWriter answer;
      produce_(index, answer);
      // Sent at once: an answer kept back would be lost, and its process blamed, when the next one blocks.
      if (!send_frame(channel, answer.bytes())) return 1;
    }
    return 0;
  });
  if (child) child_.emplace(*std::move(child));
}

std::vector<std::size_t> ExpendablePass::finish(const Consume& consume) {
  std::vector<std::size_t> missing;
  std::array<char, 65536> piece;
  FrameStream stream(limits_.largest_answer);
  std::size_t index = 0;
  while (index < count_ && child_) {
    while (auto answer = stream.next()) {
      if (index < count_) consume(index++, *answer);
    }
    if (index >= count_) break;
    const auto n = stream.malformed()
                       ? std::size_t{0}
                       : child_->read_some(piece.data(), piece.size(), Deadline::after(limits_.each)).value_or(0);
    if (n > 0) {
      stream.feed({piece.data(), n});
      continue;
    }
    // Silent, dead or babbling: this item is the one it was at.
    missing.push_back(index++);
    stream = FrameStream(limits_.largest_answer);
    child_.reset();
    if (missing.size() <= limits_.most_stuck) start_at(index);
  }
  while (index < count_) missing.push_back(index++);
  if (child_) (void)child_->wait(Deadline::after(limits_.each));
  child_.reset();
  return missing;
}

}  // namespace vacate
