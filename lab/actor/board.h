// SPDX-License-Identifier: Apache-2.0
// The shared memory in which the machine's pid 1 and its actors talk: one slot a process, with its orders and what
// became of it. A file of the machine, mapped and closed: no actor keeps a descriptor for it. It decides nothing.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "lab/actor/futex.h"

namespace lab {

inline constexpr const char* kBoardPath = "/run/lab/board";                   ///< in the machine
inline constexpr const char* kActorPath = "/usr/local/lib/vacate-lab/actor";  ///< in the machine
inline constexpr int kBoardFd = 1000;  ///< across the exec of an actor; its file offset is the slot
inline constexpr int kBirthFd = 3;     ///< across the exec of an actor: the read end of its birth pipe

inline constexpr std::uint32_t kMaxSlots = 4096;
inline constexpr std::uint32_t kInitSlot = 0;
inline constexpr std::uint32_t kNoSlot = ~0U;
inline constexpr std::int32_t kNoStatus = -1;
inline constexpr std::size_t kSignals = 65;

enum class SlotKind : std::uint32_t { actor, copy, command };

/// How far a process has come. A later phase has a greater value; `failed` is final.
enum class Phase : std::uint32_t {
  planned,    ///< its orders are written
  requested,  ///< its parent is to fork it
  forking,    ///< its parent is at it
  forked,     ///< it lives
  ready,      ///< it holds what it should
  failed,     ///< it could not: see `error`
};

/// What the control daemon's stand-in wants of a client.
enum class MpsOrder : std::uint32_t { none, end_contexts, end_contexts_and_exit, done };

struct Slot {
  FutexWord word;  ///< its process has something to look at
  std::atomic<Phase> phase;
  std::atomic<SlotKind> kind;
  std::atomic<std::uint32_t> parent;        ///< slot of who forks it
  std::atomic<std::uint32_t> never_reaped;  ///< a zombie is to stay one for as long as its parent lives
  std::atomic<std::uint32_t> adopted;       ///< detached: the intermediate parent is gone
  std::atomic<std::uint32_t> turn;          ///< take your final state (zombie, stopped, ..)
  std::atomic<std::uint32_t> asks;          ///< it waits for an export of `exporter`, for this hold of its orders
  std::atomic<std::uint32_t> exporter;
  std::atomic<std::uint32_t> import_hold;
  std::atomic<std::uint32_t> go;         ///< command: exec now
  std::atomic<MpsOrder> mps;             ///< what is to become of its MPS contexts
  std::atomic<std::int32_t> pid;         ///< in the machine; 0 before. In a child pid namespace others find it out
  std::atomic<std::int32_t> parent_pid;  ///< in its own pid namespace, as the next one
  std::atomic<std::int32_t> own_pid;     ///< written by the process itself
  std::atomic<std::uint32_t> ns;         ///< slot of the first process of its pid namespace; kNoSlot: the machine's
  std::atomic<std::int32_t> wanted_pid;  ///< the number it is to get in its own pid namespace; 0: any
  std::atomic<std::int32_t> died_by;     ///< first process of a namespace: the signal that it ended by in its own way
  std::atomic<std::int32_t> group;       ///< process group when ready
  std::atomic<std::int32_t> status;      ///< wait status, written before it is reaped
  std::array<std::atomic<std::uint32_t>, kSignals> received;  ///< signals sent by processes and handled
  std::uint64_t plan_at, plan_size;                           ///< packed orders in the arena
  char name[128];
  char error[384];
};

struct Region {
  FutexWord event;                   ///< something changed in some slot
  std::atomic<std::uint32_t> slots;  ///< in use
  std::atomic<std::uint32_t> over;   ///< the case is over: the driver may let go of everybody
  std::atomic<std::uint32_t> pid2;   ///< the machine's second process exists
  Slot slot[kMaxSlots];
  char arena[32U << 20U];
};

/// A view of the region; copies see the same memory, which stays mapped until the process ends.
class Board {
 public:
  Board() = default;
  /// Makes the file, sparse and empty, and maps it.
  [[nodiscard]] static vacate::Result<Board> create(const std::string& path);
  [[nodiscard]] static vacate::Result<Board> map(int fd);

  [[nodiscard]] Region& region() const noexcept { return *region_; }
  [[nodiscard]] Slot& slot(std::uint32_t index) const noexcept { return region_->slot[index]; }
  [[nodiscard]] std::uint32_t count() const noexcept { return region_->slots.load(); }
  /// The slot of the process that has `pid` in the caller's pid namespace now and whose end nobody has recorded;
  /// nullptr: not one of ours.
  [[nodiscard]] Slot* find(pid_t pid) const noexcept;

  /// A new slot with this name; kNoSlot when the board is full.
  [[nodiscard]] std::uint32_t add(std::string_view name, SlotKind kind, std::uint32_t parent) const noexcept;
  /// Stores packed orders. Only the conductor may: the arena has one writer.
  [[nodiscard]] vacate::Result<void> write_plan(std::uint32_t index, std::string_view packed) const;
  [[nodiscard]] std::string_view plan(std::uint32_t index) const noexcept;

  /// Sets the phase and tells the conductor.
  void enter(std::uint32_t index, Phase phase) const noexcept;
  /// The process of `index` cannot do what it should: leaves the reason and ends the calling process.
  [[noreturn]] void fail(std::uint32_t index, std::string_view why) const noexcept;
  /// Tells the process of `index` to look at its slot.
  void nudge(std::uint32_t index) const noexcept { futex_bump(slot(index).word); }
  /// Tells the conductor that something changed.
  void announce() const noexcept { futex_bump(region_->event); }

 private:
  explicit Board(Region* region) : region_(region) {}
  Region* region_ = nullptr;
};

/// Says in whose pid namespace the calling process is, as Slot::ns: what it is told of its children is in those
/// numbers.
void set_own_namespace(std::uint32_t first) noexcept;

/// Reaps ended children of the calling process, each after its status is on the board; zombies that are to stay are
/// left. May be called from a signal handler.
void reap_children(const Board& board) noexcept;

}  // namespace lab
