// SPDX-License-Identifier: Apache-2.0
// A block is a row of numbers of seven bits a byte, the last byte of each below 128. An end is one number for kind and
// descriptor and one for the inode; before the first end of a table stands kTable with pid and tid. Each block begins
// anew, so that blocks can be moved from one list to another.
#include "probe/channels.h"

#include <utility>

namespace vacate {
namespace {

constexpr std::size_t kBlockSize = 16384;
constexpr std::size_t kLongestEntry = 64;  // six numbers of at most ten bytes

// The lowest two bits of an entry's first number.
constexpr std::uint64_t kKindMask = 3, kSocket = 1, kTable = 2;
constexpr unsigned kKindBits = 2;

/// Small numbers for small differences of either sign.
std::uint64_t folded(std::uint64_t difference) noexcept { return (difference << 1U) ^ (0 - (difference >> 63U)); }
std::uint64_t unfolded(std::uint64_t number) noexcept { return (number >> 1U) ^ (0 - (number & 1U)); }

/// Of descriptors: as 64 bits of either sign.
std::uint64_t widened(std::int32_t number) noexcept { return static_cast<std::uint64_t>(std::int64_t{number}); }

}  // namespace

void ChannelList::put(std::uint64_t number) {
  auto& block = blocks_.back();
  for (; number > 127; number >>= 7U) block.push_back(static_cast<std::uint8_t>(number | 128U));
  block.push_back(static_cast<std::uint8_t>(number));
}

void ChannelList::push_back(const ChannelEnd& end) {
  if (blocks_.empty() || blocks_.back().size() + kLongestEntry > kBlockSize) {
    blocks_.emplace_back();
    blocks_.back().reserve(kBlockSize);
    last_ = {};
  }
  if (last_.pid != end.pid || last_.tid != end.tid) {
    put(kTable);
    put(widened(end.pid));
    put(widened(end.tid));
    last_.fd = -1;
  }
  put(folded(widened(end.fd) - widened(last_.fd)) << kKindBits | (end.is_socket ? kSocket : 0));
  put(folded(end.inode - last_.inode));
  last_ = end;
  ++size_;
}

void ChannelList::shrink_to_fit() {
  for (auto& block : blocks_) block.shrink_to_fit();
}

void ChannelList::append(ChannelList&& other) {
  if (other.empty()) return;
  for (auto& block : other.blocks_) blocks_.push_back(std::move(block));
  last_ = other.last_;
  size_ += other.size_;
  other = {};
}

void ChannelList::erase_processes(const std::set<pid_t>& pids) {
  ChannelList kept;
  for (const auto& end : *this)
    if (!pids.contains(end.pid)) kept.push_back(end);
  *this = std::move(kept);
}

std::size_t ChannelList::bytes() const noexcept {
  std::size_t sum = 0;
  for (const auto& block : blocks_) sum += block.capacity();
  return sum;
}

std::uint64_t ChannelList::Iterator::take() {
  const auto& block = (*blocks_)[block_];
  std::uint64_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint64_t byte = block[at_++];
    number |= (byte & 127U) << shift;
    if (byte < 128) return number;
  }
}

void ChannelList::Iterator::read() {
  if (block_ < blocks_->size() && at_ == (*blocks_)[block_].size()) {
    ++block_;
    at_ = 0;
    end_ = {};
  }
  if (block_ == blocks_->size()) return;
  auto first = take();
  if ((first & kKindMask) == kTable) {
    end_.pid = static_cast<pid_t>(take());
    end_.tid = static_cast<pid_t>(take());
    end_.fd = -1;
    first = take();
  }
  end_.is_socket = (first & kKindMask) == kSocket;
  end_.fd = static_cast<std::int32_t>(widened(end_.fd) + unfolded(first >> kKindBits));
  end_.inode += unfolded(take());
}

}  // namespace vacate
