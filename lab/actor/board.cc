// SPDX-License-Identifier: Apache-2.0
// The board's memory and the one way to reap. What runs in signal handlers here allocates nothing and takes no lock.
#include "lab/actor/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace lab {
namespace {

using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

std::atomic<std::uint32_t> own_namespace{kNoSlot};  // of this process; handlers have no other way to find it

/// The number of a process in the caller's pid namespace; 0: it has none, or none is known.
pid_t number_here(const Slot& slot) noexcept {
  const std::uint32_t here = own_namespace.load();
  if (here == kNoSlot) return slot.pid.load();
  return slot.ns.load() == here ? slot.own_pid.load() : 0;
}

/// A wait status as waitpid gives it, from what waitid says.
std::int32_t wait_status(const siginfo_t& info) noexcept {
  return info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
}

bool stays_zombie(const Slot* slot) noexcept {
  return slot != nullptr && slot->never_reaped.load() != 0 && slot->parent_pid.load() == getpid();
}

void record_and_reap(const Board& board, Slot* slot, const siginfo_t& info) noexcept {
  if (slot != nullptr) slot->status.store(wait_status(info));  // before it can vanish: who finds it gone finds why
  siginfo_t reaped{};
  waitid(P_PID, static_cast<id_t>(info.si_pid), &reaped, WEXITED | WNOHANG);
  board.announce();
}

/// One by one, around a zombie that is to stay and would be the answer to every general question.
void reap_known(const Board& board) noexcept {
  const std::uint32_t count = board.count();
  for (std::uint32_t i = 0; i < count; ++i) {
    Slot& slot = board.slot(i);
    const pid_t pid = number_here(slot);
    if (pid <= 0 || slot.status.load() != kNoStatus || stays_zombie(&slot)) continue;
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid) {
      record_and_reap(board, &slot, info);
    }
  }
}

}  // namespace

Result<Board> Board::create(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return system_error("cannot make " + path);
  // Actors of every user map it, whatever the umask of who started the lab.
  if (fchmod(file.get(), 0666) != 0 || ftruncate(file.get(), sizeof(Region)) != 0) return system_error(path);
  return map(file.get());
}

Result<Board> Board::map(int fd) {
  void* memory = mmap(nullptr, sizeof(Region), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return system_error("cannot map the board");
  madvise(memory, sizeof(Region), MADV_DONTDUMP);  // it is large, and of no interest in an actor's core
  return Board(static_cast<Region*>(memory));
}

Slot* Board::find(pid_t pid) const noexcept {
  for (std::uint32_t i = count(); i-- > 0;) {
    if (number_here(slot(i)) == pid && slot(i).status.load() == kNoStatus) return &slot(i);
  }
  return nullptr;
}

std::uint32_t Board::add(std::string_view name, SlotKind kind, std::uint32_t parent) const noexcept {
  const std::uint32_t index = region_->slots.fetch_add(1);
  if (index >= kMaxSlots) {
    region_->slots.store(kMaxSlots);
    return kNoSlot;
  }
  Slot& fresh = slot(index);
  fresh.kind.store(kind);
  fresh.parent.store(parent);
  fresh.status.store(kNoStatus);
  fresh.ns.store(kNoSlot);
  const std::size_t length = std::min(name.size(), sizeof fresh.name - 1);
  std::memcpy(fresh.name, name.data(), length);
  return index;
}

Result<void> Board::write_plan(std::uint32_t index, std::string_view packed) const {
  // Orders follow each other in the order of their slots' making: the end of the used part is the greatest end so far.
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < count(); ++i) end = std::max(end, slot(i).plan_at + slot(i).plan_size);
  if (end + packed.size() > sizeof region_->arena) {
    return vacate::Error{vacate::ErrorCode::refused, "the case is too large for the machine's board"};
  }
  std::memcpy(region_->arena + end, packed.data(), packed.size());
  slot(index).plan_at = end;
  slot(index).plan_size = packed.size();
  return {};
}

std::string_view Board::plan(std::uint32_t index) const noexcept {
  return {region_->arena + slot(index).plan_at, slot(index).plan_size};
}

void Board::enter(std::uint32_t index, Phase phase) const noexcept {
  slot(index).phase.store(phase);
  announce();
}

void Board::fail(std::uint32_t index, std::string_view why) const noexcept {
  Slot& mine = slot(index);
  std::memcpy(mine.error, why.data(), std::min(why.size(), sizeof mine.error - 1));
  enter(index, Phase::failed);
  _exit(125);
}

void set_own_namespace(std::uint32_t first) noexcept { own_namespace.store(first); }

void reap_children(const Board& board) noexcept {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    Slot* slot = board.find(info.si_pid);
    if (stays_zombie(slot)) return reap_known(board);
    record_and_reap(board, slot, info);
  }
}

}  // namespace lab
