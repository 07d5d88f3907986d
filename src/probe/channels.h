// SPDX-License-Identifier: Apache-2.0
// Every pipe and socket end of a machine, packed: there are hundreds of thousands where a scan may take 16 MiB. A few
// bytes each, as differences to the end before it, in blocks that are never copied to grow. Knows nothing of what they
// mean.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

namespace vacate {

/// A pipe or socket somebody has, by its inode. `tid` differs from `pid` for a table of a thread's own.
struct ChannelEnd {
  std::uint64_t inode = 0;
  pid_t pid = 0;
  pid_t tid = 0;
  std::int32_t fd = -1;
  bool is_socket = false;
  bool operator==(const ChannelEnd&) const = default;
};

class ChannelList {
  using Block = std::vector<std::uint8_t>;

 public:
  /// Gives the ends in the order they were added, each by value: there is none to point at.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = ChannelEnd;
    using difference_type = std::ptrdiff_t;
    using pointer = const ChannelEnd*;
    using reference = const ChannelEnd&;

    Iterator(const std::vector<Block>& blocks, std::size_t block) : blocks_(&blocks), block_(block) { read(); }
    const ChannelEnd& operator*() const noexcept { return end_; }
    const ChannelEnd* operator->() const noexcept { return &end_; }
    Iterator& operator++() {
      read();
      return *this;
    }
    bool operator==(const Iterator& other) const noexcept { return block_ == other.block_ && at_ == other.at_; }

   private:
    void read();
    [[nodiscard]] std::uint64_t take();
    const std::vector<Block>* blocks_;
    std::size_t block_;
    std::size_t at_ = 0;
    ChannelEnd end_;
  };

  void push_back(const ChannelEnd& end);
  /// Gives back what was reserved and not needed: for one that will not grow for a while.
  void shrink_to_fit();
  /// All of `other` behind what is here.
  void append(ChannelList&& other);
  /// Leaves out the ends of these processes.
  void erase_processes(const std::set<pid_t>& pids);

  [[nodiscard]] Iterator begin() const { return {blocks_, 0}; }
  [[nodiscard]] Iterator end() const { return {blocks_, blocks_.size()}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Bytes that the ends take.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  void put(std::uint64_t number);
  std::vector<Block> blocks_;
  ChannelEnd last_;  ///< what the next one is a difference to
  std::size_t size_ = 0;
};

}  // namespace vacate
