// SPDX-License-Identifier: Apache-2.0
// Opening device nodes as CUDA does: every one close-on-exec, the GPU and UVM files registered with their control file,
// so that any of them keeps the client (facts.md 2.2). Speaks the lab driver's own ioctls.
#include "lab/actor/holdings.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>

#include "lab/actor/hidden.h"
#include "lab/driver/protocol.h"

namespace lab {
namespace {

using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr std::size_t kPage = 4096;

std::string gpu_word(const GpuNode& gpu) { return "gpu" + std::to_string(gpu.index); }
std::string gpu_path(const GpuNode& gpu) { return "/dev/nvidia" + std::to_string(gpu.minor); }

Result<void> open_node(HeldClient& client, std::string what, const std::string& path, int flags = O_RDWR) {
  UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC));
  if (!fd) return system_error(path);
  client.nodes.push_back({std::move(what), std::move(fd)});
  return {};
}

/// Ties every other node of the client to its control file, which is the first.
Result<void> register_nodes(const HeldClient& client) {
  TokenReply token{};
  if (ioctl(client.nodes.front().fd.get(), kToken, &token) != 0) return system_error("token of a control file");
  const RegisterRequest request{token.token};
  for (std::size_t i = 1; i < client.nodes.size(); ++i) {
    if (ioctl(client.nodes[i].fd.get(), kRegister, &request) != 0)
      return system_error("registering " + client.nodes[i].what);
  }
  return {};
}

Result<void> allocate(const HeldClient& client, const HoldPlan& plan) {
  for (const GpuNode& gpu : plan.gpus) {
    AllocateRequest request{};
    request.gpu_index = gpu.index;
    request.list = plan.list;
    request.bytes = plan.bytes;
    request.release_after_ms = plan.release_after_ms;
    request.release_steps = plan.release_steps;
    if (ioctl(client.nodes.front().fd.get(), kAllocate, &request) != 0)
      return system_error("memory on " + gpu_word(gpu));
  }
  return {};
}

Result<void> open_gpus(HeldClient& client, const HoldPlan& plan, int flags = O_RDWR) {
  for (const GpuNode& gpu : plan.gpus) {
    if (auto opened = open_node(client, gpu_word(gpu), gpu_path(gpu), flags); !opened) return opened;
  }
  return {};
}

Result<void> make_client(HeldClient& client, const HoldPlan& plan) {
  if (auto opened = open_node(client, "ctl", "/dev/nvidiactl"); !opened) return opened;
  if (plan.opens_uvm) {
    if (auto opened = open_node(client, "uvm", "/dev/nvidia-uvm"); !opened) return opened;
  }
  if (auto opened = open_gpus(client, plan); !opened) return opened;
  if (auto registered = register_nodes(client); !registered) return registered;
  return allocate(client, plan);
}

Result<void> open_for(HeldClient& client, const HoldPlan& plan) {
  switch (plan.kind) {
    case HoldKind::client:
      return make_client(client, plan);
    case HoldKind::ctl:
      return open_node(client, "ctl", "/dev/nvidiactl");
    case HoldKind::uvm:
      return open_node(client, "uvm", "/dev/nvidia-uvm");
    case HoldKind::path_only:
      return open_gpus(client, plan, O_PATH);
    case HoldKind::files:
      if (auto opened = open_node(client, "ctl", "/dev/nvidiactl"); !opened) return opened;
      return open_gpus(client, plan);
    case HoldKind::inherited:
    case HoldKind::exported:
      return {};
  }
  return {};
}

/// Maps each GPU node, or what there is if there is none, and closes every descriptor: only the mappings keep the
/// client.
Result<void> map_and_close(HeldClient& client) {
  const auto is_gpu = [](const NodeRef& node) { return node.what.starts_with("gpu"); };
  const bool any_gpu = std::any_of(client.nodes.begin(), client.nodes.end(), is_gpu);
  for (const NodeRef& node : client.nodes) {
    if (any_gpu && !is_gpu(node)) continue;
    void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd.get(), 0);
    if (memory == MAP_FAILED) return system_error("mapping " + node.what);
    client.mappings.push_back({node.what, memory});
  }
  client.nodes.clear();
  return {};
}

/// Duplicates until the holders of `clients` have `count` descriptors in all.
Result<void> add_duplicates(std::vector<HeldClient*> clients, std::uint32_t count) {
  std::vector<std::pair<HeldClient*, std::size_t>> originals;
  for (HeldClient* client : clients) {
    for (std::size_t i = 0; i < client->nodes.size(); ++i) originals.emplace_back(client, i);
  }
  if (originals.empty()) return {};
  for (std::size_t have = originals.size(); have < count; ++have) {
    const auto [client, index] = originals[have % originals.size()];
    UniqueFd copy(fcntl(client->nodes[index].fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy) return system_error("duplicating a descriptor");
    client->nodes.push_back({client->nodes[index].what, std::move(copy)});
  }
  return {};
}

/// Whether any of the holds that a fork brings along keeps the node `what` in that place.
bool wanted(const ActorPlan& plan, const std::string& what, Place place) {
  return std::any_of(plan.holds.begin(), plan.holds.end(), [&](const HoldPlan& hold) {
    return hold.kind == HoldKind::inherited && hold.place == place &&
           (hold.nodes.empty() || std::find(hold.nodes.begin(), hold.nodes.end(), what) != hold.nodes.end());
  });
}

/// Copies of the nodes that are to go to `place`.
Result<HeldClient> copies_for(const HeldClient& client, const ActorPlan& plan, Place place) {
  HeldClient copies;
  for (const NodeRef& node : client.nodes) {
    if (!wanted(plan, node.what, place)) continue;
    copies.nodes.push_back({node.what, UniqueFd(fcntl(node.fd.get(), F_DUPFD_CLOEXEC, 0))});
    if (!copies.nodes.back().fd) return system_error("duplicating a descriptor");
  }
  return copies;
}

void drop_unwanted(HeldClient& client, const ActorPlan& plan) {
  std::erase_if(client.mappings, [&](const Mapping& mapping) {
    const bool unwanted = !wanted(plan, mapping.what, Place::table) && !wanted(plan, mapping.what, Place::mapping);
    if (unwanted) munmap(mapping.memory, kPage);
    return unwanted;
  });
  std::erase_if(client.nodes, [&](const NodeRef& node) { return !wanted(plan, node.what, Place::table); });
}

}  // namespace

/// Moves all descriptors of `client` to where the hold has them.
Result<void> Holdings::place(HeldClient& client, Place where) {
  if (client.nodes.empty()) return {};
  switch (where) {
    case Place::table:
      return {};
    case Place::mapping:
      return map_and_close(client);
    case Place::thread: {
      auto put = put_in_thread(client.nodes);
      client.nodes.clear();
      return put;
    }
    case Place::queue: {
      auto ends = put_in_queue(client.nodes);
      client.nodes.clear();
      if (!ends) return ends.error();
      std::move(ends->begin(), ends->end(), std::back_inserter(queues_));
      return {};
    }
  }
  return {};
}

Result<void> Holdings::acquire(const HoldPlan& plan) {
  if (plan.kind == HoldKind::inherited || plan.kind == HoldKind::exported) return {};
  HeldClient client;
  client.plan = plan;
  if (auto opened = open_for(client, plan); !opened) return opened;
  if (auto grown = add_duplicates({&client}, plan.count); !grown) return grown;
  if (auto placed = place(client, plan.place); !placed) return placed;
  clients_.push_back(std::move(client));
  return {};
}

Result<void> Holdings::keep_inherited(const ActorPlan& plan) {
  birth.reset();
  children.clear();
  bool keeps_descriptors = false;
  std::uint32_t count = 0;
  for (const HoldPlan& hold : plan.holds) {
    if (hold.kind != HoldKind::inherited) continue;
    keeps_descriptors = keeps_descriptors || hold.place == Place::table;
    count = std::max(count, hold.count);
  }
  if (!keeps_descriptors) {
    sockets_.clear();
    queues_.clear();
  }
  std::vector<HeldClient*> all;
  for (HeldClient& client : clients_) {
    for (const Place where : {Place::mapping, Place::thread, Place::queue}) {
      auto copies = copies_for(client, plan, where);
      if (!copies) return copies.error();
      if (auto placed = place(*copies, where); !placed) return placed;
      std::move(copies->mappings.begin(), copies->mappings.end(), std::back_inserter(client.mappings));
    }
    drop_unwanted(client, plan);
    all.push_back(&client);
  }
  return add_duplicates(std::move(all), count);
}

Result<void> Holdings::take_import(UniqueFd file, const HoldPlan& plan) {
  HeldClient client;
  client.nodes.push_back({"ctl", std::move(file)});
  if (auto grown = add_duplicates({&client}, plan.count); !grown) return grown;
  clients_.push_back(std::move(client));
  return {};
}

Result<UniqueFd> Holdings::make_export(const HoldPlan& plan) const {
  HeldClient client;
  if (auto opened = open_node(client, "ctl", "/dev/nvidiactl"); !opened) return opened.error();
  if (plan.bytes > 0) {
    if (auto allocated = allocate(client, plan); !allocated) return allocated.error();
    return std::move(client.nodes.front().fd);
  }
  for (const HeldClient& own : clients_) {
    if (own.nodes.empty() || own.nodes.front().what != "ctl") continue;
    TokenReply token{};
    if (ioctl(own.nodes.front().fd.get(), kToken, &token) != 0) return system_error("token of a control file");
    const RegisterRequest request{token.token};
    if (ioctl(client.nodes.front().fd.get(), kRegister, &request) != 0) return system_error("exporting a client");
  }
  return std::move(client.nodes.front().fd);
}

Result<void> Holdings::end_mps_contexts() {
  for (HeldClient& client : clients_) {
    if (client.plan.kind != HoldKind::client || client.plan.list != ListKind::mps) continue;
    HoldPlan files = client.plan;
    files.kind = HoldKind::files;
    HeldClient rest;
    rest.plan = files;
    if (auto opened = open_for(rest, files); !opened) return opened;
    client = std::move(rest);
  }
  return {};
}

void Holdings::let_go() noexcept {
  for (const HeldClient& client : clients_)
    for (const Mapping& mapping : client.mappings) munmap(mapping.memory, kPage);
  clients_.clear();
  queues_.clear();
}

int Holdings::any_descriptor() const noexcept {
  for (const HeldClient& client : clients_) {
    if (!client.nodes.empty()) return client.nodes.front().fd.get();
  }
  return -1;
}

Result<void> Holdings::listen(std::uint32_t port) {
  if (port == 0) return {};
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return system_error("socket");
  const int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 16) != 0) {
    return system_error("listening on port " + std::to_string(port));
  }
  sockets_.push_back(std::move(socket));
  return {};
}

}  // namespace lab
