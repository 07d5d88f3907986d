// SPDX-License-Identifier: Apache-2.0
// The fields of everything in a Snapshot with their names in vacate.snapshot/1: one table a struct, used for writing
// and for reading. A new field of the model gets a line in its table; the sizes at the end see to it that none is
// forgotten. Only snapshot_json.cc includes this.
#pragma once

#include "model/snapshot.h"

namespace vacate::json {

/// `const T` for a visitor that writes, `T` for one that reads.
template <class Visitor, class T>
using Seen = typename Visitor::template Access<T>;

template <class V>
void fields(V& v, Seen<V, ProcessKey>& key) {
  v("pid", key.pid);
  v("start_ticks", key.start_ticks);
  v("pidfd_inode", key.pidfd_inode);
  v("pid_namespace", key.pid_namespace);
}

template <class V>
void fields(V& v, Seen<V, Host>& host) {
  v("boot_id", host.boot_id);
  v("kernel", host.kernel);
  v("hostname", host.hostname);
  v("pid_namespace", host.pid_namespace);
  v("whole_host", host.whole_host);
}

template <class V>
void fields(V& v, Seen<V, Caller>& caller) {
  v("self", caller.self);
  v("ancestors", caller.ancestors);
  v("session_leader", caller.session_leader);
  v("uid", caller.uid);
  v("root", caller.root);
  v.added("cgroups", caller.cgroups);
}

template <class V>
void fields(V& v, Seen<V, Driver>& driver) {
  v("vendor", driver.vendor);
  v("version", driver.version);
  v("state", driver.state);
  v("detail", driver.detail);
}

template <class V>
void fields(V& v, Seen<V, DeviceNode>& node) {
  v("role", node.role);
  v("path", node.path);
  v("minor", node.minor);
  v("rdev", node.rdev);
  v("device", node.device);
  v("inode", node.inode);
}

template <class V>
void fields(V& v, Seen<V, GpuMemory>& memory) {
  v("total", memory.total);
  v("used", memory.used);
  v("reserved", memory.reserved);
  v("free", memory.free);
}

template <class V>
void fields(V& v, Seen<V, Gpu>& gpu) {
  v("index", gpu.index);
  v("uuid", gpu.uuid);
  v("pci", gpu.pci);
  v("minor", gpu.minor);
  v("name", gpu.name);
  v("state", gpu.state);
  v("memory", gpu.memory);
  v("persistence", gpu.persistence);
  v("recovery_action", gpu.recovery_action);
  v("utilization", gpu.utilization);
  v("mig", gpu.mig);
  v("unified_memory", gpu.unified_memory);
}

template <class V>
void fields(V& v, Seen<V, DriverCharge>& charge) {
  v("gpu", charge.gpu);
  v("pid", charge.pid);
  v("memory", charge.memory);
  v("kinds", charge.kinds);
  v("instances", charge.instances);
}

template <class V>
void fields(V& v, Seen<V, PipeEnd>& pipe) {
  v.descriptor("fd", pipe.fd);
  v("inode", pipe.inode);
  v("is_socket", pipe.is_socket);
  v("close_on_exec", pipe.close_on_exec);
  v("created_after_start", pipe.created_after_start);
  v("other_end", pipe.other_end);
  v("reads", pipe.reads);
}

template <class V>
void fields(V& v, Seen<V, Process>& process) {
  v("key", process.key);
  v("ppid", process.ppid);
  v("pgid", process.pgid);
  v("sid", process.sid);
  v("comm", process.comm);
  v("state", process.state);
  v("threads", process.threads);
  v("kernel_thread", process.kernel_thread);
  v("exiting", process.exiting);
  v("tty", process.tty);
  v("detailed", process.detailed);
  v("condition", process.condition);
  v("uid", process.uid);
  v("user", process.user);
  v("exe", process.exe);
  v("argv", process.argv);
  v("cgroup", process.cgroup);
  v("pid_namespace", process.pid_namespace);
  v("ns_pids", process.ns_pids);
  v("started", process.started);
  v("named_parent", process.named_parent);
  v("named_parent_alive", process.named_parent_alive);
  v("listens", process.listens);
  v("pipes", process.pipes);
  v("wchan", process.wchan);
  v("kernel_frame", process.kernel_frame);
  v("kernel_module", process.kernel_module);
  v("stuck_in", process.stuck_in);
  v("login_uid", process.login_uid);
  v.added("login_user", process.login_user);
  v.added("pinned_memory", process.pinned_memory);
}

template <class V>
void fields(V& v, Seen<V, FrozenGroup>& group) {
  v("path", group.path);
  v("freezer", group.freezer);
  v("members", group.members);
}

template <class V>
void fields(V& v, Seen<V, Reference>& reference) {
  v("pid", reference.pid);
  v("kind", reference.kind);
  v("node", reference.node);
  v("count", reference.count);
  v("detail", reference.detail);
}

template <class V>
void fields(V& v, Seen<V, HiddenReference>& hidden) {
  v("pid", hidden.pid);
  v("kind", hidden.kind);
  v.descriptor("fd", hidden.fd);
  v("count", hidden.count);
  v("path", hidden.path);
}

template <class V>
void fields(V& v, Seen<V, ServiceUnit>& unit) {
  v("name", unit.name);
  v("active_state", unit.active_state);
  v("sub_state", unit.sub_state);
  v("main_pid", unit.main_pid);
  v("restart", unit.restart);
  v.added("activated", unit.activated);
}

template <class V>
void fields(V& v, Seen<V, ServiceManager>& manager) {
  v("answered", manager.answered);
  v("units", manager.units);
}

template <class V>
void fields(V& v, Seen<V, Existence>& existence) {
  v("id", existence.id);
  v("exists", existence.exists);
  v("source", existence.source);
}

template <class V>
void fields(V& v, Seen<V, MpsServer>& server) {
  v("pid", server.pid);
  v("clients", server.clients);
}

template <class V>
void fields(V& v, Seen<V, MpsDaemon>& daemon) {
  v("key", daemon.key);
  v("uid", daemon.uid);
  v("pipe_directory", daemon.pipe_directory);
  v("answered", daemon.answered);
  v("detail", daemon.detail);
  v("servers", daemon.servers);
}

template <class V>
void fields(V& v, Seen<V, BlindSpot>& spot) {
  v("code", spot.code);
  v("detail", spot.detail);
}

template <class V>
void fields(V& v, Seen<V, Visibility>& visibility) {
  v("blind_spots", visibility.blind_spots);
  v("all_references", visibility.all_references);
}

template <class V>
void fields(V& v, Seen<V, Snapshot>& snapshot) {
  v("host", snapshot.host);
  v("caller", snapshot.caller);
  v("driver", snapshot.driver);
  v("time", snapshot.time);
  v("nodes", snapshot.nodes);
  v("gpus", snapshot.gpus);
  v("charges", snapshot.charges);
  v("processes", snapshot.processes);
  v("references", snapshot.references);
  v("shared_clients", snapshot.shared_clients);
  v("hidden_references", snapshot.hidden_references);
  v("services", snapshot.services);
  v("containers", snapshot.containers);
  v("jobs", snapshot.jobs);
  v.added("mps_daemons", snapshot.mps_daemons);
  v("shells", snapshot.shells);
  v.added("frozen", snapshot.frozen);
  v("visibility", snapshot.visibility);
}

// A field that is not in its table would be lost in every recording without a word. The sizes are those of a 64-bit
// libstdc++; elsewhere nothing is checked.
#if defined(__GLIBCXX__) && defined(__LP64__)
template <class T, std::size_t expected>
constexpr bool has_size() {
  static_assert(sizeof(T) == expected, "the model has changed: put the field into its table above, then mend the size");
  return true;
}
static_assert(has_size<ProcessKey, 32>());
static_assert(has_size<Host, 112>());
static_assert(has_size<Caller, 96>());
static_assert(has_size<Driver, 104>());
static_assert(has_size<DeviceNode, 80>());
static_assert(has_size<GpuMemory, 64>());
static_assert(has_size<Gpu, 224>());
static_assert(has_size<DriverCharge, 72>());
static_assert(has_size<PipeEnd, 80>());
static_assert(has_size<Process, 488>());
static_assert(has_size<Reference, 56>());
static_assert(has_size<HiddenReference, 48>());
static_assert(has_size<ServiceUnit, 152>());
static_assert(has_size<ServiceManager, 32>());
static_assert(has_size<Existence, 72>());
static_assert(has_size<MpsServer, 32>());
static_assert(has_size<MpsDaemon, 136>());
static_assert(has_size<BlindSpot, 64>());
static_assert(has_size<Visibility, 32>());
static_assert(has_size<Snapshot, 672>());
static_assert(has_size<FrozenGroup, 72>());
#endif

}  // namespace vacate::json
