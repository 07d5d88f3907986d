// SPDX-License-Identifier: Apache-2.0
// The order of one scan: list, start reading maps beside, walk descriptors, ask the driver, pin candidates, read their
// evidence again and their details, prove them alive. Anything that ended meanwhile is left out; what could not be seen
// becomes a blind spot.
#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "gpu/device_nodes.h"
#include "model/find_by_pid.h"
#include "model/origin.h"
#include "os/host.h"
#include "os/proc_parse.h"
#include "os/system_calls.h"
#include "probe/clients.h"
#include "probe/clocks.h"
#include "probe/details.h"
#include "probe/frozen.h"
#include "probe/hidden_references.h"
#include "probe/holdings.h"
#include "probe/look_at_processes.h"
#include "probe/mps.h"
#include "probe/pipes.h"
#include "probe/probe.h"
#include "probe/references.h"
#include "probe/relatives.h"
#include "probe/sockets.h"
#include "probe/supervision.h"
#include "probe/visibility.h"
#include "probe/walk.h"

namespace vacate {
namespace {

bool may_restart(const ServiceUnit& unit) { return !unit.restart.empty() && unit.restart != "no"; }

/// Which processes are vacate: the same program file as ours. Its driver child is one, and so is another vacate's.
class OwnTool {
 public:
  explicit OwnTool(const ProcDirectory& root) : root_(root), own_(root.identity("self/exe")) {}
  [[nodiscard]] bool is_own(pid_t pid) const {
    const auto exe = root_.identity((std::to_string(pid) + "/exe").c_str());
    return own_ && exe && exe->device == own_->device && exe->inode == own_->inode;
  }

 private:
  const ProcDirectory& root_;
  Result<FileIdentity> own_;
};

template <class T>
void append(std::vector<T>& into, const std::vector<T>& from) {
  into.insert(into.end(), from.begin(), from.end());
}

class Scanner {
 public:
  Scanner(DriverSession& driver, const Policy& policy, ProcDirectory root)
      : driver_(driver), policy_(policy), root_(std::move(root)), nodes_(DeviceNodes::read()) {}

  Scan run() {
    auto& snapshot = scan_.snapshot;
    snapshot.time = seconds_of(CLOCK_REALTIME);
    snapshot.host = read_host();
    snapshot.host.whole_host = is_whole_host(root_);
    auto caller = read_caller(root_);
    if (!caller) blind_.add_unread_caller(caller.error());
    snapshot.caller = caller ? *std::move(caller) : caller_without_ancestors();
    if (!nodes_.complete()) blind_.add_unread_nodes();
    snapshot.shells = read_shells();
    look();
    ask_driver();
    collect_references();
    read_candidates();
    read_relations();
    finish();
    return std::move(scan_);
  }

 private:
  void look();
  void ask_driver();
  void add_late_comers();
  void add_gpus_of_nodes();
  void leave_out_other_buffers();
  void leave_out_own_tool();
  void collect_references();
  [[nodiscard]] std::vector<pid_t> choose_candidates();
  void read_candidates();
  void read_evidence_again(const std::vector<pid_t>& pinned);
  void replace_evidence(const std::vector<pid_t>& of, Holdings again);
  void read_kernel_stacks(const std::vector<pid_t>& pinned);
  void drop(const std::set<pid_t>& gone);
  void read_relations();
  void read_main_processes();
  void read_members_of_services();
  void read_self();
  void note_hidden();
  void finish();

  [[nodiscard]] std::vector<Process>& processes() { return walker_->result().processes; }
  [[nodiscard]] Process* find(pid_t pid);

  DriverSession& driver_;
  const Policy& policy_;
  ProcDirectory root_;
  DeviceNodes nodes_;
  std::optional<Walker> walker_;
  Mappings mappings_;
  BlindSpots blind_;
  double boot_time_ = 0;
  Scan scan_;
};

Process* Scanner::find(pid_t pid) { return find_by_pid(processes(), pid); }

void Scanner::look() {
  walker_.emplace(root_, nodes_, scan_.snapshot.host.pid_namespace);
  if (const auto listed = walker_->list_processes(); !listed) blind_.add_unlisted(listed.error());
  auto looked = look_at_processes(*walker_, nodes_, {}, policy_.scan);
  mappings_ = std::move(looked.mappings);
  scan_.use = std::move(looked.use);
  if (policy_.scan == ScanMethod::bpf && scan_.use.used != ScanMethod::bpf) blind_.add_other_scan(scan_.use);
}

/// After the walk, not before: a process that ended in between would look like a charge to a dead one. Who started in
/// between is looked at now. A driver that took long has made the walk old: it is done again.
void Scanner::ask_driver() {
  static constexpr std::chrono::milliseconds kFresh{300};
  const auto begin = Deadline::Clock::now();
  auto sample = driver_.sample(Deadline::after(policy_.driver_deadline));
  if (Deadline::Clock::now() - begin > kFresh) look();
  auto& snapshot = scan_.snapshot;
  snapshot.driver = std::move(sample.driver);
  snapshot.gpus = std::move(sample.gpus);
  snapshot.charges = std::move(sample.charges);
  blind_.add(sample.blind_spots);
  add_late_comers();
  add_gpus_of_nodes();
}

void Scanner::add_late_comers() {
  std::vector<pid_t> late;
  for (const auto& charge : scan_.snapshot.charges) {
    if (find(charge.pid) != nullptr) continue;
    walker_->add_process(charge.pid);
    if (find(charge.pid) != nullptr) late.push_back(charge.pid);
  }
  if (late.empty()) return;
  auto more = MappingScan(late, nodes_).finish();
  append(mappings_.hits, more.hits);
  append(mappings_.denied, more.denied);
  append(mappings_.stuck, more.stuck);
  append(mappings_.failed, more.failed);
}

/// Neither library nor module told of any GPU, yet there are nodes: each nvidiaN is one, in the order of minors.
void Scanner::add_gpus_of_nodes() {
  auto& gpus = scan_.snapshot.gpus;
  if (!gpus.empty()) return;
  for (const auto& node : nodes_.nodes()) {
    if (node.role != NodeRole::gpu || !node.minor) continue;
    Gpu gpu;
    gpu.index = static_cast<unsigned>(gpus.size());
    gpu.minor = *node.minor;
    gpu.state = GpuState::no_answer;
    gpus.push_back(std::move(gpu));
  }
}

void Scanner::leave_out_own_tool() {
  const OwnTool tool(root_);
  std::map<pid_t, bool> known;
  const auto is_own = [&](pid_t pid) {
    const auto [entry, added] = known.try_emplace(pid, false);
    if (added) entry->second = pid == driver_.child() || tool.is_own(pid);
    return entry->second;
  };
  auto& walk = walker_->result();
  std::erase_if(walk.hits, [&](const NodeHit& hit) { return is_own(hit.pid); });
  std::erase_if(mappings_.hits, [&](const MappingHit& hit) { return is_own(hit.pid); });
}

/// A mapping does not tell whose buffer a dma-buf is; a descriptor of the same buffer does.
void Scanner::leave_out_other_buffers() {
  std::set<NodeKey> buffers;
  for (const auto& hit : walker_->result().hits)
    if (hit.node.kind == NodeKind::dma_buf) buffers.insert(hit.node);
  std::erase_if(mappings_.hits, [&](const MappingHit& hit) {
    return hit.node.kind == NodeKind::dma_buf && !buffers.contains(hit.node);
  });
}

void Scanner::collect_references() {
  leave_out_other_buffers();
  leave_out_own_tool();
  scan_.snapshot.references = references_from(walker_->result().hits, mappings_.hits, nodes_);
}

/// Holders with everything around them, and whoever is charged: the driver's word alone widens nothing, nor does a node
/// that pins no memory.
std::vector<pid_t> Scanner::choose_candidates() {
  std::vector<pid_t> holders;
  std::vector<pid_t> others;
  for (const auto& reference : scan_.snapshot.references)
    (pins_memory(nodes_.nodes()[reference.node].role) ? holders : others).push_back(reference.pid);
  auto candidates = related_processes(processes(), holders);
  for (const pid_t pid : others)
    if (find(pid) != nullptr) candidates.push_back(pid);
  for (const auto& charge : scan_.snapshot.charges)
    if (find(charge.pid) != nullptr) candidates.push_back(charge.pid);
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return candidates;
}

/// Whoever let go between the walk and his pin is no holder: what the walk said of the pinned ones is replaced by what
/// is so now. It stays where that cannot be read.
void Scanner::read_evidence_again(const std::vector<pid_t>& pinned) {
  std::set<pid_t> holding;
  for (const auto& reference : scan_.snapshot.references) holding.insert(reference.pid);
  const auto& stuck = mappings_.stuck;
  std::vector<pid_t> open, mapped;
  for (const pid_t pid : pinned) {
    if (!holding.contains(pid)) continue;
    open.push_back(pid);
    if (std::find(stuck.begin(), stuck.end(), pid) == stuck.end()) mapped.push_back(pid);
  }
  if (open.empty()) return;
  replace_evidence(open, read_holdings(root_, nodes_, scan_.snapshot.host.pid_namespace, open, std::move(mapped)));
  collect_references();
}

void Scanner::replace_evidence(const std::vector<pid_t>& of, Holdings again) {
  std::set<pid_t> fresh;
  for (const pid_t pid : of)
    if (!again.is_unread(pid)) fresh.insert(pid);
  const auto is_old = [&](const auto& hit) { return fresh.contains(hit.pid); };
  const auto is_partial = [&](const auto& hit) { return !fresh.contains(hit.pid); };
  auto& walk = walker_->result();
  std::erase_if(walk.hits, is_old);
  std::erase_if(walk.rings, is_old);
  std::erase_if(mappings_.hits, is_old);
  std::erase_if(again.walk.hits, is_partial);
  std::erase_if(again.walk.rings, is_partial);
  std::erase_if(again.mappings.hits, is_partial);
  append(walk.hits, again.walk.hits);
  append(walk.rings, again.walk.rings);
  append(walk.failed, again.walk.failed);
  append(mappings_.hits, again.mappings.hits);
  append(mappings_.stuck, again.mappings.stuck);
  append(mappings_.failed, again.mappings.failed);
  const auto add_once = [](std::vector<pid_t>& list, const std::vector<pid_t>& pids) {
    for (const pid_t pid : pids)
      if (std::find(list.begin(), list.end(), pid) == list.end()) list.push_back(pid);
  };
  add_once(walk.denied, again.walk.denied);
  add_once(mappings_.denied, again.mappings.denied);
}

/// Pin, read, prove: in this order what was read is about the pinned process (facts.md 3.4).
void Scanner::read_candidates() {
  const auto candidates = choose_candidates();
  DetailReader reader(root_, Users::read());
  boot_time_ = reader.boot_time();
  std::set<pid_t> gone;
  std::vector<pid_t> pinned;
  for (const pid_t pid : candidates) {
    Process& process = *find(pid);
    if (is_gone(process)) {
      (void)reader.read(process);  // a zombie: nothing to pin, but it is somebody's parent or leader
      continue;
    }
    const auto key = scan_.pins.pin(pid);
    if (key) {
      process.key.pidfd_inode = key->pidfd_inode;
      pinned.push_back(pid);
    } else if (key.error().code != ErrorCode::gone) {
      blind_.add_unpinned(pid, key.error());
    }
    const bool same = key ? key->start_ticks == process.key.start_ticks : key.error().code != ErrorCode::gone;
    if (!same) gone.insert(pid);
  }
  read_evidence_again(pinned);
  CommandLineScan command_lines(pinned);
  for (const pid_t pid : pinned) {
    if (gone.contains(pid)) continue;
    const auto read = reader.read(*find(pid));
    if (!read && read.error().code == ErrorCode::gone) gone.insert(pid);
    if (!read && read.error().code != ErrorCode::gone) blind_.add_undetailed(pid, read.error());
  }
  for (auto& [pid, argv] : command_lines.finish()) {
    if (!argv.known() && argv.reason() == Unknown::timed_out) blind_.add_stuck_argv(pid);
    find(pid)->argv = std::move(argv);
  }
  read_kernel_stacks(pinned);
  for (const pid_t pid : pinned) {
    const auto* pin = scan_.pins.find(find(pid)->key);
    if (pin == nullptr || !pin->prove_alive()) gone.insert(pid);
  }
  drop(gone);
}

void Scanner::read_kernel_stacks(const std::vector<pid_t>& pinned) {
  std::vector<pid_t> waiting;
  for (const pid_t pid : pinned)
    if (waits_in_kernel(*find(pid))) waiting.push_back(pid);
  if (waiting.empty()) return;
  for (const auto& [pid, look] : KernelStackScan(waiting).finish()) apply_look(look, *find(pid));
}

/// Ended, or somebody else by now: neither the process nor what it held is there any more.
void Scanner::drop(const std::set<pid_t>& gone) {
  if (gone.empty()) return;
  auto& walk = walker_->result();
  std::erase_if(processes(), [&](const Process& process) { return gone.contains(process.key.pid); });
  std::erase_if(walk.hits, [&](const NodeHit& hit) { return gone.contains(hit.pid); });
  walk.channels.erase_processes(gone);
  std::erase_if(walk.rings, [&](const RingFile& ring) { return gone.contains(ring.pid); });
  std::erase_if(scan_.snapshot.references, [&](const Reference& reference) { return gone.contains(reference.pid); });
}

void Scanner::read_relations() {
  static constexpr std::chrono::milliseconds kNetlink{500};
  Supervision supervision(root_, scan_.snapshot.host, processes());
  const auto& walk = walker_->result();
  auto told = read_unix_sockets(Deadline::after(kNetlink));
  if (!told) blind_.add_unread_sockets(told.error());
  const auto sockets = told ? *std::move(told) : std::vector<UnixSocket>();
  blind_.add_unreadable(walk, mappings_, scan_.snapshot.caller.root);
  blind_.add_hiding(root_, scan_.snapshot);
  blind_.add_unread_channels(
      read_pipes({root_, walk.channels, sockets, blind_.everybody_seen(), boot_time_}, processes()));
  blind_.add_unread_listeners(read_listeners(root_, walk.channels, processes()));
  resolve_named_parents(root_, processes());
  const auto in_flight = find_in_flight(root_, walk.channels, sockets);
  blind_.add_in_flight(in_flight, processes());
  blind_.add_rings(walk.rings);
  scan_.snapshot.hidden_references = hidden_references_from(in_flight.queued, walk.rings, processes());
  std::vector<NodeHit> pinning;
  for (const auto& hit : walk.hits)
    if (pins_memory(nodes_.nodes()[nodes_.index_of(hit.node)].role)) pinning.push_back(hit);
  auto clients = find_shared_clients(pinning);
  scan_.snapshot.shared_clients = std::move(clients.sets);
  if (!clients.complete) blind_.add_unknown_clients();
  note_hidden();
  supervision.finish(processes(), scan_.snapshot);
  read_main_processes();
  read_members_of_services();
  ask_mps_daemons(root_, processes(), scan_.snapshot);
  read_self();
  scan_.snapshot.frozen = read_frozen_groups(root_, processes());
}

/// Of which container and job the caller is, and as whom he logged in: his own work is told from that of others.
void Scanner::read_self() {
  auto* self = find(scan_.snapshot.caller.self.pid);
  if (self == nullptr || self->detailed) return;
  DetailReader reader(root_, Users::read());
  (void)reader.read(*self);
}

/// Main processes of services are often no relatives of what a former one left over: whether they are in the control
/// group of the service, and what they run, is told of them too. Facts only; nothing is pinned.
void Scanner::read_main_processes() {
  std::optional<DetailReader> reader;
  for (const auto& unit : scan_.snapshot.services.units) {
    auto* main = unit.main_pid > 0 ? find(unit.main_pid) : nullptr;
    if (main == nullptr || main->detailed || is_gone(*main)) continue;
    if (!reader) reader.emplace(root_, Users::read());
    (void)reader->read(*main);  // gone meanwhile: it stays as it was, and no unit is its
  }
}

/// Whoever else would end by a stop of a service that starts its process again: whose it is decides whether that stops.
void Scanner::read_members_of_services() {
  const auto& units = scan_.snapshot.services.units;
  if (std::none_of(units.begin(), units.end(), [](const ServiceUnit& unit) { return may_restart(unit); })) return;
  DetailReader reader(root_, Users::read());
  for (auto& process : processes()) {
    if (process.detailed || is_gone(process)) continue;
    const auto directory = root_.open(process.key.pid);
    const auto text = directory ? directory->read("cgroup", 65536) : Result<std::string>(directory.error());
    const auto service = text ? parse_origin(parse_cgroup(*text)).service : std::nullopt;
    const auto is_its = [&](const ServiceUnit& unit) { return may_restart(unit) && unit.name == service; };
    if (!service || std::none_of(units.begin(), units.end(), is_its)) continue;
    (void)reader.read(process);
  }
}

/// Charged, existing and without an entry in /proc: hidden, neither dead nor a ghost (BR-147).
void Scanner::note_hidden() {
  for (const auto& charge : scan_.snapshot.charges) {
    if (find(charge.pid) != nullptr) continue;
    const UniqueFd pidfd(open_pidfd(charge.pid));
    const bool may_exist = pidfd || (errno != ESRCH && errno != EINVAL && errno != ENOENT);
    if (may_exist && !root_.identity(std::to_string(charge.pid).c_str())) blind_.add_hidden(charge.pid);
  }
}

void Scanner::finish() {
  auto& snapshot = scan_.snapshot;
  const auto moved_to = nodes_.sort();
  for (auto& reference : snapshot.references) reference.node = moved_to[reference.node];
  std::sort(snapshot.references.begin(), snapshot.references.end(), [](const Reference& a, const Reference& b) {
    return std::tie(a.pid, a.node, a.kind) < std::tie(b.pid, b.node, b.kind);
  });
  snapshot.nodes = nodes_.nodes();
  snapshot.processes = std::move(processes());
  snapshot.visibility = blind_.take();
}

}  // namespace

Scan take_scan(DriverSession& driver, const Policy& policy) {
  auto root = ProcDirectory::open_root();
  if (root) return Scanner(driver, policy, *std::move(root)).run();
  // Without /proc nothing but the driver's word is left.
  Scan scan;
  scan.snapshot.time = seconds_of(CLOCK_REALTIME);
  scan.snapshot.host = read_host();
  scan.snapshot.visibility.all_references = false;
  scan.snapshot.visibility.blind_spots.push_back({"no-proc", root.error().message});
  return scan;
}

}  // namespace vacate
