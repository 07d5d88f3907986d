// SPDX-License-Identifier: Apache-2.0
// What one process of the machine has to be: the orders that the conductor writes on the board and the process carries
// out. Plain values with everything resolved (numbers for users, minors for GPUs, paths that exist); knows no cases.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lab/driver/protocol.h"

namespace lab {

enum class TermHabit : std::uint32_t { exit, ignore, slow, fork, let_go };
enum class KillHabit : std::uint32_t { exit, stuck, exiting };
enum class FinalState : std::uint32_t {
  running,
  stopped,
  traced,
  frozen,
  frozen_v1,
  zombie,
  zombie_leader,
  spinning,
  dumping
};
enum class HoldKind : std::uint32_t { client, files, ctl, uvm, inherited, path_only, exported };

/// Where the references of a hold are.
enum class Place : std::uint32_t {
  table,    ///< descriptors of the process
  mapping,  ///< mappings, every descriptor is closed
  thread,   ///< descriptors in the own table of a thread
  queue,    ///< sent over a socket of the process and not received
};

struct GpuNode {
  std::uint32_t index = 0;
  std::uint32_t minor = 0;
};

struct HoldPlan {
  HoldKind kind = HoldKind::client;
  ListKind list = ListKind::compute;
  bool opens_uvm = true;  ///< client: whether it has nvidia-uvm open
  Place place = Place::table;
  std::uint32_t exporter = 0;  ///< exported: the slot of who sends it
  std::vector<GpuNode> gpus;
  std::uint64_t bytes = 0;         ///< on each of `gpus`
  std::vector<std::string> nodes;  ///< inherited: kept ones, "ctl", "uvm", "gpuN"; empty: all
  std::uint32_t count = 0;         ///< descriptors in all; 0, or fewer than it needs: what it needs
  std::int64_t release_after_ms = 0;
  std::uint32_t release_steps = 1;
};

enum class ShmUse : std::uint32_t { mapped, opened, locked, attached };

/// A file of /dev/shm or a System V segment that the process uses.
struct ShmPlan {
  ShmUse use = ShmUse::mapped;
  std::string name;         ///< below /dev/shm
  std::uint64_t bytes = 0;  ///< what a mapping covers, a page at least
  std::uint32_t id = 0;     ///< attached: of the System V segment
};

struct ActorPlan {
  std::vector<std::string> argv;
  std::string title;             ///< empty: argv stays
  std::string exe;               ///< resolved path that exists; empty: the actor program itself
  std::vector<std::string> env;  ///< NAME=value, all of it
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string cgroup;        ///< directory to join; empty: the parent's
  std::string proc_options;  ///< of the /proc of a new pid namespace
  bool new_session = false;
  bool new_group = false;
  bool detached = false;
  bool subreaper = false;
  bool pipe = false;
  bool fork_only = false;  ///< no exec: goes on as a copy of its parent, with the holds that say so
  bool exits_with_parent = false;
  std::uint32_t listen = 0;
  TermHabit on_term = TermHabit::exit;
  std::uint64_t slow_ms = 0;
  KillHabit on_kill = KillHabit::exit;
  std::int64_t stuck_ms = -1;  ///< how long on_kill lasts; -1: for ever
  FinalState state = FinalState::running;
  std::vector<HoldPlan> holds;
  std::vector<ShmPlan> shms;
};

/// A command of a step. Its output goes to files, or all three descriptors to a terminal.
struct CommandPlan {
  std::vector<std::string> argv;
  std::vector<std::string> env;  ///< set over what the parent has
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  bool job = true;  ///< a process group of its own, in the foreground of the terminal if there is one
  std::string in, out, err;
  std::string tty;  ///< instead of the three above
};

/// Writes plain values one after the other.
class Packer {
 public:
  template <class T>
  void operator()(const T& value) {
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      const auto wide = static_cast<std::uint64_t>(value);
      bytes_.append(reinterpret_cast<const char*>(&wide), sizeof wide);
    } else {
      visit(*this, value);
    }
  }
  void operator()(const std::string& text) {
    (*this)(text.size());
    bytes_ += text;
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    (*this)(list.size());
    for (const T& entry : list) (*this)(entry);
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads what Packer wrote. Bytes that end early give zeros and empty texts: both ends are the same build.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  void operator()(T& value) {
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      value = static_cast<T>(number());
    } else {
      visit(*this, value);
    }
  }
  void operator()(std::string& text) {
    const auto size = static_cast<std::size_t>(number());
    text = rest_.substr(0, size);
    rest_.remove_prefix(text.size());
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    list.resize(static_cast<std::size_t>(number()));
    for (T& entry : list) (*this)(entry);
  }

 private:
  std::uint64_t number() {
    std::uint64_t wide = 0;
    if (rest_.size() < sizeof wide) return 0;
    rest_.copy(reinterpret_cast<char*>(&wide), sizeof wide);
    rest_.remove_prefix(sizeof wide);
    return wide;
  }
  std::string_view rest_;
};

/// The members of a plan, the same list for both directions. `Plan` is const when packing.
template <class Archive, class Plan, class... Members>
void visit_all(Archive& archive, Plan& plan, Members... members) {
  (archive(plan.*members), ...);
}
template <class Archive>
void visit(Archive& a, std::conditional_t<std::is_same_v<Archive, Packer>, const GpuNode, GpuNode>& p) {
  visit_all(a, p, &GpuNode::index, &GpuNode::minor);
}
template <class Archive>
void visit(Archive& a, std::conditional_t<std::is_same_v<Archive, Packer>, const HoldPlan, HoldPlan>& p) {
  using H = HoldPlan;
  visit_all(a, p, &H::kind, &H::list, &H::opens_uvm, &H::place, &H::exporter, &H::gpus, &H::bytes, &H::nodes, &H::count,
            &H::release_after_ms, &H::release_steps);
}
template <class Archive>
void visit(Archive& a, std::conditional_t<std::is_same_v<Archive, Packer>, const ShmPlan, ShmPlan>& p) {
  visit_all(a, p, &ShmPlan::use, &ShmPlan::name, &ShmPlan::bytes, &ShmPlan::id);
}
template <class Archive>
void visit(Archive& a, std::conditional_t<std::is_same_v<Archive, Packer>, const ActorPlan, ActorPlan>& p) {
  using A = ActorPlan;
  visit_all(a, p, &A::argv, &A::title, &A::exe, &A::env, &A::uid, &A::gid, &A::cgroup, &A::proc_options,
            &A::new_session, &A::new_group, &A::detached, &A::subreaper, &A::pipe, &A::fork_only, &A::exits_with_parent,
            &A::listen, &A::on_term, &A::slow_ms, &A::on_kill, &A::stuck_ms, &A::state, &A::holds, &A::shms);
}
template <class Archive>
void visit(Archive& a, std::conditional_t<std::is_same_v<Archive, Packer>, const CommandPlan, CommandPlan>& p) {
  using C = CommandPlan;
  visit_all(a, p, &C::argv, &C::env, &C::uid, &C::gid, &C::job, &C::in, &C::out, &C::err, &C::tty);
}

}  // namespace lab
