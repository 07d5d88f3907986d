// SPDX-License-Identifier: Apache-2.0
#include "os/expendable_pass.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

namespace vacate {

/// The item that the child is at, in memory shared with it.
class ExpendablePass::Progress {
 public:
  Progress() : memory_(mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ != MAP_FAILED) new (memory_) Counter(0);
  }
  ~Progress() {
    if (memory_ != MAP_FAILED) munmap(memory_, sizeof(Counter));
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  [[nodiscard]] bool usable() const noexcept { return memory_ != MAP_FAILED; }
  void set(std::size_t item) noexcept { counter().store(item, std::memory_order_release); }
  [[nodiscard]] std::size_t get() noexcept { return counter().load(std::memory_order_acquire); }

 private:
  using Counter = std::atomic<std::size_t>;
  static_assert(Counter::is_always_lock_free);
  Counter& counter() noexcept { return *static_cast<Counter*>(memory_); }
  void* memory_;
};

ExpendablePass::ExpendablePass(const char* name, std::size_t count, Produce produce, PassLimits limits)
    : name_(name),
      count_(count),
      produce_(std::move(produce)),
      limits_(limits),
      progress_(std::make_unique<Progress>()) {
  start_at(0);
}

ExpendablePass::~ExpendablePass() = default;

void ExpendablePass::start_at(std::size_t first) {
  child_.reset();
  if (first >= count_ || !progress_->usable()) return;
  progress_->set(first);
  auto child = Expendable::start(name_, [this, first](int channel) {
    for (std::size_t index = first; index < count_; ++index) {
      FrameWriter answer;
      answer.number(static_cast<std::uint32_t>(index));
      const std::size_t nothing = answer.bytes().size();
      produce_(index, answer);
      // Sent at once: an answer kept back would be lost, and its process blamed, when the next one blocks.
      if (answer.bytes().size() > nothing && !send_frame(channel, answer.bytes())) return 1;
      progress_->set(index + 1);
    }
    return 0;
  });
  if (child) child_.emplace(*std::move(child));
}

bool ExpendablePass::take_answers(FrameStream& stream, const Consume& consume) {
  while (const auto frame = stream.next()) {
    FrameReader reader(*frame);
    const auto index = reader.number<std::uint32_t>();
    if (reader.failed() || index < next_ || index >= count_) return false;
    next_ = index + 1;
    consume(index, std::string_view{*frame}.substr(sizeof index));
  }
  return !stream.malformed();
}

std::size_t ExpendablePass::read_in_time(char* buffer, std::size_t size) {
  static constexpr int kLooks = 4;  // at how far it is, while it says nothing
  auto item = progress_->get();
  for (int silent = 0; silent < kLooks;) {
    const auto n = child_->read_some(buffer, size, Deadline::after(limits_.each / kLooks));
    if (n) return *n;
    if (n.error().code != ErrorCode::timed_out) return 0;
    const auto now = progress_->get();
    silent = now == item ? silent + 1 : 0;
    item = now;
  }
  return 0;
}

std::vector<std::size_t> ExpendablePass::finish(const Consume& consume) {
  std::vector<std::size_t> missing;
  std::array<char, 16384> piece;
  FrameStream stream(limits_.largest_answer);
  while (next_ < count_ && child_) {
    const bool sound = take_answers(stream, consume);
    const std::size_t n = sound ? read_in_time(piece.data(), piece.size()) : 0;
    if (n > 0) {
      stream.feed({piece.data(), n});
      continue;
    }
    // Silent, dead, babbling or done. What it was at stands in memory that it may have spoilt as well.
    const std::size_t at = std::clamp(progress_->get(), next_, count_);
    if (sound) next_ = at;
    if (next_ == count_) break;
    do missing.push_back(next_++);
    while (next_ < count_ && next_ <= at);
    stream = FrameStream(limits_.largest_answer);
    child_.reset();
    if (missing.size() <= limits_.most_stuck) start_at(next_);
  }
  while (next_ < count_) missing.push_back(next_++);
  if (child_) (void)child_->wait(Deadline::after(limits_.each));
  child_.reset();
  return missing;
}

}  // namespace vacate
