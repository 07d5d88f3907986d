// SPDX-License-Identifier: Apache-2.0
// A mini-language for tests: a machine described as the lab's cases describe one (lab.md 2), and the snapshot that a
// scan of it would give. It models who is adopted by whom, what a client's last reference is, and whom the driver
// charges. For tests only.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/snapshot.h"

namespace vacate::testing {

/// An actor, with the lab's conventions: "shell" is a live login shell, a job of it has its own process group; "init"
/// gives a session of its own; everybody else stays in the parent's group, and has a pipe end whose other end only the
/// parent has.
struct Actor {
  std::string parent = "shell";
  std::vector<std::string> argv = {"actor"};
  std::string title = "";
  std::string exe = "/lab/actor";
  uid_t uid = 0;
  bool session = false;
  bool group = false;
  bool detached = false;
  bool subreaper = false;
  std::optional<bool> pipe = std::nullopt;
  bool listens = false;
  Condition condition = Condition::running;
  std::optional<pid_t> named_parent = std::nullopt;
};

/// One client, or references that are none.
struct Hold {
  std::vector<unsigned> gpus = {0};
  std::uint64_t mib = 0;
  enum class How { compute, graphics, mps, files, ctl, uvm, mapped, thread } how = How::compute;
};

class TestMachine {
 public:
  explicit TestMachine(unsigned gpus = 1, std::uint64_t baseline_mib = 4) : baseline_(mebibytes(baseline_mib)) {
    for (unsigned i = 0; i < gpus; ++i) minors_.push_back(i);
    add_fixed(1, 0, 1, 1, "init", "/usr/lib/systemd/systemd", {"/sbin/init"});
    add_fixed(2, 0, 0, 0, "kthreadd", "", {}).kernel_thread = true;
    add_fixed(100, 1, 100, 100, "bash", "/usr/bin/bash", {"-bash"});
    pids_["init"] = 1;
    pids_["shell"] = 100;
  }

  void set_minors(std::vector<unsigned> minors) { minors_ = std::move(minors); }

  /// Adds an actor; `name` is its name from then on, the newest one if it is used again.
  TestMachine& actor(const std::string& name, const Actor& spec = {}) {
    const auto pid = next_pid_++;
    const auto parent = pid_of(spec.parent);
    auto& process = processes_[pid];
    process.key = {pid, static_cast<std::uint64_t>(pid) * 100, 0, kNamespace};
    process.ppid = spec.detached ? adopter_of(parent) : parent;
    const auto& above = processes_.at(parent);
    const bool leads = spec.session || spec.group || spec.parent == "shell" || spec.parent == "init";
    process.pgid = leads ? pid : above.pgid;
    process.sid = spec.session || spec.parent == "init" ? pid : above.sid;
    process.comm = (spec.title.empty() ? spec.argv.front() : spec.title).substr(0, 15);
    process.state = 'S';
    process.threads = 1;
    process.detailed = true;
    process.condition = spec.condition;
    process.uid = spec.uid;
    process.exe = spec.exe;
    process.argv = spec.title.empty() ? spec.argv : std::vector<std::string>{spec.title};
    process.pid_namespace = kNamespace;
    process.ns_pids = {pid};
    process.listens = spec.listens;
    process.named_parent = spec.named_parent;
    if (spec.condition == Condition::stopped) process.state = 'T';
    if (spec.subreaper) subreapers_.insert(pid);
    const bool actor_parent = spec.parent != "shell" && spec.parent != "init" && above.exe.value_or("") != "/bin/bash";
    if (spec.pipe.value_or(actor_parent && !spec.detached)) pipe(pid, 3, {parent});
    pids_[name] = pid;
    return *this;
  }

  /// A pipe end with these pids at the other end, as long as they live.
  TestMachine& pipe(pid_t of, int fd, std::vector<pid_t> other_end, double created_after_start = -0.001,
                    bool close_on_exec = true) {
    pipes_[of].push_back({fd, std::move(other_end), created_after_start, close_on_exec});
    return *this;
  }

  TestMachine& hold(const std::string& who, Hold hold) {
    Client client;
    client.opener = pid_of(who);
    client.hold = hold;
    std::set<std::size_t> nodes;
    const auto how = hold.how;
    if (how != Hold::How::uvm) nodes.insert(kCtl);
    if (how != Hold::How::ctl && how != Hold::How::files && how != Hold::How::graphics) nodes.insert(kUvm);
    if (how == Hold::How::uvm) nodes.insert(kUvm);
    if (how != Hold::How::uvm && how != Hold::How::ctl) {
      for (const auto gpu : hold.gpus) nodes.insert(kFirstGpu + gpu);
    }
    client.holders[client.opener] = nodes;
    client.kinds[client.opener] = how == Hold::How::mapped   ? EvidenceKind::mapping
                                  : how == Hold::How::thread ? EvidenceKind::thread_descriptor
                                                             : EvidenceKind::descriptor;
    clients_.push_back(std::move(client));
    return *this;
  }

  /// `who` is a fork of `from` that keeps these of its nodes (by snapshot index; empty: all) in this way.
  TestMachine& inherit(const std::string& who, const std::string& from, const std::set<std::size_t>& nodes = {},
                       EvidenceKind kind = EvidenceKind::descriptor) {
    for (auto& client : clients_) {
      const auto at = client.holders.find(pid_of(from));
      if (at == client.holders.end()) continue;
      std::set<std::size_t> kept;
      for (const auto node : at->second) {
        if (nodes.empty() || nodes.contains(node)) kept.insert(node);
      }
      if (kept.empty()) continue;
      client.holders[pid_of(who)] = kept;
      client.kinds[pid_of(who)] = kind;
    }
    return *this;
  }

  /// Ends it; its children are adopted by the nearest subreaper or init.
  TestMachine& dies(const std::string& who) { return end(pid_of(who), false); }
  /// Ends it and leaves a zombie without threads.
  TestMachine& zombify(const std::string& who) { return end(pid_of(who), true); }

  /// The caller is a child of this actor (default: a job of the shell).
  TestMachine& run_from(const std::string& who, uid_t uid = 0) {
    caller_parent_ = pid_of(who);
    caller_uid_ = uid;
    return *this;
  }

  [[nodiscard]] pid_t pid_of(const std::string& name) const { return pids_.at(name); }
  [[nodiscard]] Process& process(const std::string& name) { return processes_.at(pid_of(name)); }
  [[nodiscard]] std::size_t gpu_node(unsigned index) const { return kFirstGpu + index; }
  static constexpr std::size_t kCtl = 0;
  static constexpr std::size_t kUvm = 1;

  [[nodiscard]] Snapshot snapshot() const {
    Snapshot snapshot;
    snapshot.host = {"boot", "6.1", "lab", kNamespace, true};
    snapshot.driver.state = DriverState::ok;
    snapshot.services.answered = false;  // none runs, until a test says what one told
    snapshot.shells = {"/bin/sh", "/bin/bash", "/usr/bin/bash"};
    add_nodes_and_gpus(snapshot);
    for (const auto& [pid, process] : processes_) snapshot.processes.push_back(with_pipes(process));
    add_caller(snapshot);
    add_references(snapshot);
    add_charges(snapshot);
    return snapshot;
  }

 private:
  struct Client {
    pid_t opener = 0;
    Hold hold;
    std::map<pid_t, std::set<std::size_t>> holders;
    std::map<pid_t, EvidenceKind> kinds;
  };
  struct Pipe {
    int fd = 3;
    std::vector<pid_t> other_end;
    double created_after_start = 0;
    bool close_on_exec = true;
  };
  static constexpr std::size_t kFirstGpu = 2;
  static constexpr std::uint64_t kNamespace = 4026531836;

  Process& add_fixed(pid_t pid, pid_t ppid, pid_t pgid, pid_t sid, const std::string& comm, const std::string& exe,
                     const std::vector<std::string>& argv) {
    auto& process = processes_[pid];
    process.key = {pid, static_cast<std::uint64_t>(pid), 0, kNamespace};
    process.ppid = ppid;
    process.pgid = pgid;
    process.sid = sid;
    process.comm = comm;
    process.state = 'S';
    process.threads = 1;
    process.detailed = true;
    process.uid = uid_t{0};
    if (!exe.empty()) process.exe = exe;
    process.argv = argv;
    process.ns_pids = {pid};
    process.pid_namespace = kNamespace;
    return process;
  }

  [[nodiscard]] bool lives(pid_t pid) const {
    const auto at = processes_.find(pid);
    return at != processes_.end() && !is_gone(at->second);
  }

  [[nodiscard]] pid_t adopter_of(pid_t dying) const {
    for (auto pid = processes_.at(dying).ppid; pid > 1; pid = processes_.at(pid).ppid) {
      if (subreapers_.contains(pid) && lives(pid)) return pid;
    }
    return 1;
  }

  TestMachine& end(pid_t pid, bool leave_zombie) {
    const auto adopter = adopter_of(pid);
    for (auto& [other, process] : processes_) {
      if (process.ppid == pid) process.ppid = adopter;
    }
    for (auto& client : clients_) client.holders.erase(pid);
    std::erase_if(clients_, [](const Client& client) { return client.holders.empty(); });
    pipes_.erase(pid);
    if (leave_zombie) {
      processes_.at(pid).state = 'Z';
      processes_.at(pid).condition = Condition::zombie;
      processes_.at(pid).exe = Unknown::failed;
    } else {
      processes_.erase(pid);
    }
    return *this;
  }

  void add_nodes_and_gpus(Snapshot& snapshot) const {
    snapshot.nodes.push_back({NodeRole::ctl, "/dev/nvidiactl", {}, 1, 0, 0});
    snapshot.nodes.push_back({NodeRole::uvm, "/dev/nvidia-uvm", {}, 2, 0, 0});
    for (unsigned i = 0; i < minors_.size(); ++i) {
      snapshot.nodes.push_back(
          {NodeRole::gpu, "/dev/nvidia" + std::to_string(minors_[i]), minors_[i], 10 + minors_[i], 0, 0});
      Gpu gpu;
      gpu.index = i;
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.minor = minors_[i];
      auto used = baseline_;
      for (const auto& client : clients_) {
        const auto& on = client.hold.gpus;
        if (std::find(on.begin(), on.end(), i) != on.end()) used += mebibytes(client.hold.mib);
      }
      gpu.memory = {mebibytes(97887), used, Bytes{0}, mebibytes(97887) - used};
      snapshot.gpus.push_back(gpu);
    }
  }

  [[nodiscard]] Process with_pipes(Process process) const {
    const auto at = pipes_.find(process.key.pid);
    if (at == pipes_.end()) return process;
    for (const auto& pipe : at->second) {
      std::vector<pid_t> holders;
      std::copy_if(pipe.other_end.begin(), pipe.other_end.end(), std::back_inserter(holders),
                   [&](pid_t pid) { return lives(pid); });
      std::sort(holders.begin(), holders.end());
      process.pipes.push_back({pipe.fd, 0, false, pipe.close_on_exec, pipe.created_after_start, holders});
    }
    return process;
  }

  // vacate itself: a job of the shell, or a child in the group of whoever runs it.
  void add_caller(Snapshot& snapshot) const {
    const auto& parent = processes_.at(caller_parent_);
    Process self = processes_.at(100);
    self.key = {kSelf, kSelf, 0, kNamespace};
    self.ppid = caller_parent_;
    self.pgid = caller_parent_ == 100 ? kSelf : parent.pgid;
    self.sid = parent.sid;
    self.comm = "vacate";
    self.exe = std::string("/usr/bin/vacate");
    self.argv = std::vector<std::string>{"vacate", "free"};
    self.uid = caller_uid_;
    snapshot.processes.push_back(self);
    snapshot.caller.self = self.key;
    for (auto pid = caller_parent_; pid > 0; pid = processes_.at(pid).ppid) snapshot.caller.ancestors.push_back(pid);
    snapshot.caller.session_leader = parent.sid;
    snapshot.caller.uid = caller_uid_;
    snapshot.caller.root = caller_uid_ == 0;
  }

  void add_references(Snapshot& snapshot) const {
    std::set<std::vector<pid_t>> sets;
    std::map<std::tuple<pid_t, std::size_t, EvidenceKind>, unsigned> counts;
    for (const auto& client : clients_) {
      std::vector<pid_t> sharing;
      for (const auto& [pid, nodes] : client.holders) {
        sharing.push_back(pid);
        for (const auto node : nodes) ++counts[{pid, node, client.kinds.at(pid)}];
      }
      if (sharing.size() > 1) sets.insert(sharing);
    }
    for (const auto& [what, count] : counts)
      snapshot.references.push_back({std::get<0>(what), std::get<2>(what), std::get<1>(what), count, ""});
    snapshot.shared_clients.assign(sets.begin(), sets.end());
  }

  void add_charges(Snapshot& snapshot) const {
    std::map<std::pair<unsigned, pid_t>, DriverCharge> rows;
    for (const auto& client : clients_) {
      const auto how = client.hold.how;
      if (how == Hold::How::files || how == Hold::How::ctl || how == Hold::How::uvm) continue;
      for (const auto gpu : client.hold.gpus) {
        auto& row = rows[{gpu, client.opener}];
        row.gpu = gpu;
        row.pid = client.opener;
        row.memory = row.memory.value_or(Bytes{0}) + mebibytes(client.hold.mib);
        row.kinds = {how == Hold::How::mps        ? ContextKind::mps
                     : how == Hold::How::graphics ? ContextKind::graphics
                                                  : ContextKind::compute};
      }
    }
    for (const auto& [key, row] : rows) snapshot.charges.push_back(row);
  }

  static constexpr pid_t kSelf = 900000;
  Bytes baseline_;
  std::vector<unsigned> minors_;
  std::map<pid_t, Process> processes_;
  std::map<std::string, pid_t> pids_;
  std::map<pid_t, std::vector<Pipe>> pipes_;
  std::set<pid_t> subreapers_;
  std::vector<Client> clients_;
  pid_t next_pid_ = 1000;
  pid_t caller_parent_ = 100;
  uid_t caller_uid_ = 0;
};

}  // namespace vacate::testing
