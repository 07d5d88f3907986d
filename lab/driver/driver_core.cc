// SPDX-License-Identifier: Apache-2.0
// Open files and ioctls of driver_core.h; what it reports about itself is in driver_reports.cc.
#include "lab/driver/driver_core.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lab/driver/slow_file.h"

namespace lab {

namespace {

constexpr std::uint32_t kMaxReleaseSteps = 100'000;

template <class Struct>
std::string bytes_of(const Struct& data) {
  return {reinterpret_cast<const char*>(&data), sizeof data};
}

template <class Reply>
IoctlAnswer with_reply(const Reply& reply) {
  return {.out = bytes_of(reply)};
}

/// Runs `handle`, which returns errno, on what the caller passed and gives it back as `handle` left it.
template <class Query, class Handler>
IoctlAnswer with_query(std::string_view in, Handler handle) {
  Query query{};
  if (in.size() != sizeof query) return {.error = EINVAL};
  std::memcpy(&query, in.data(), sizeof query);
  const int error = handle(query);
  return error != 0 ? IoctlAnswer{.error = error} : with_reply(query);
}

/// The same where nothing goes back.
template <class Request, class Handler>
IoctlAnswer with_request(std::string_view in, Handler handle) {
  IoctlAnswer answer = with_query<Request>(in, handle);
  answer.out.clear();
  return answer;
}

IoctlAnswer stuck(std::string_view in) {
  std::int64_t delay_ms = 0;
  IoctlAnswer answer = with_request<DelayRequest>(in, [&](const auto& request) {
    delay_ms = request.after_ms;
    return delay_ms < kForEver ? EINVAL : 0;
  });
  if (answer.error == 0) answer.when = IoctlAnswer::When::after_interrupt;
  answer.delay_ms = delay_ms;
  return answer;
}

}  // namespace

DriverCore::DriverCore(DriverConfig config, ProcessTable processes)
    : config_(std::move(config)), nodes_(config_), processes_(std::move(processes)), clients_(config_.gpus.size()) {}

int DriverCore::open(const Node& node, FileId& id) {
  if (node.kind == NodeKind::directory) return EISDIR;
  if (node.kind == NodeKind::gpu && config_.gpus[node.gpu_index].state == GpuState::lost) return ENODEV;
  OpenFile file{.kind = node.kind, .gpu_index = node.gpu_index};
  if (node.kind == NodeKind::ctl) file.own = clients_.add();
  if (node.kind == NodeKind::lab) file.text = state_text();
  id = ++last_file_;
  files_.emplace(id, std::move(file));
  return 0;
}

void DriverCore::release(FileId id) {
  const auto found = files_.find(id);
  if (found == files_.end()) return;
  const OpenFile file = std::move(found->second);
  files_.erase(found);
  const auto now = Clock::now();
  for (const Token token : file.registered) {
    if (file.kind == NodeKind::ctl) {
      clients_.drop_import(token, now);
    } else {
      clients_.drop_reference(token, now);
    }
  }
  if (file.kind == NodeKind::ctl) clients_.drop_reference(file.own, now);
}

IoctlAnswer DriverCore::ioctl(FileId id, pid_t caller_tid, unsigned long command, std::string_view in) {
  OpenFile& file = files_.at(id);
  if (file.kind == NodeKind::lab) {
    if (command != kSetGpuState) return {.error = ENOTTY};
    return with_request<GpuStateRequest>(in, [&](auto& request) { return set_gpu_state(request); });
  }
  if (file.kind == NodeKind::slow) {
    if (command != kDelayRead) return {.error = ENOTTY};
    return with_request<DelayRequest>(in, [&](auto& request) {
      if (request.after_ms < kForEver) return EINVAL;
      file.read_delay_ms = request.after_ms;
      return 0;
    });
  }
  switch (command) {
    case kRegister:
      return with_request<RegisterRequest>(in, [&](auto& request) { return register_with(file, request); });
    case kNeverAnswered:
      return {.when = IoctlAnswer::When::never};
    case kStuck:
      return stuck(in);
    case kDelayFlush:
      return with_request<DelayRequest>(in, [&](auto& request) {
        if (request.after_ms < kForEver) return EINVAL;
        file.flush_delay_ms = request.after_ms;
        return 0;
      });
    case kDelayExit:
      return with_request<DelayRequest>(in, [&](auto& request) { return delay_exit(file, caller_tid, request); });
    case kAnswer:
      return {.answers_waiting = true};
    default:
      return file.kind == NodeKind::ctl ? ioctl_on_ctl(file, caller_tid, command, in) : IoctlAnswer{.error = ENOTTY};
  }
}

IoctlAnswer DriverCore::ioctl_on_ctl(const OpenFile& file, pid_t caller_tid, unsigned long command,
                                     std::string_view in) {
  switch (command) {
    case kAllocate:
      return with_request<AllocateRequest>(in, [&](auto& request) { return allocate(file, caller_tid, request); });
    case kToken:
      return with_reply(TokenReply{file.own});
    case kSystem:
      return with_reply(system());
    case kGpu:
      return with_query<GpuQuery>(in, [&](auto& query) { return describe(query); });
    case kProcesses:
      return with_query<ProcessPage>(in, [&](auto& page) { return list(caller_tid, page); });
    default:
      return {.error = ENOTTY};
  }
}

int DriverCore::allocate(const OpenFile& file, pid_t caller_tid, const AllocateRequest& request) {
  if (request.gpu_index >= config_.gpus.size() || request.list > ListKind::mps) return EINVAL;
  if (request.release_after_ms < kForEver) return EINVAL;
  if (request.release_steps < 1 || request.release_steps > kMaxReleaseSteps) return EINVAL;
  const GpuConfig& gpu = config_.gpus[request.gpu_index];
  if (gpu.state == GpuState::lost) return EINVAL;  // what the real one answers to everything then
  const std::uint64_t total = vacate::mebibytes(gpu.memory_mib - gpu.reserved_mib).count;
  const std::uint64_t in_use = used(request.gpu_index, Clock::now());
  if (in_use > total || request.bytes > total - in_use) return ENOMEM;
  const auto caller = processes_.identify(caller_tid);
  if (!caller) return EPERM;
  clients_.allocate(file.own, *caller,
                    {request.gpu_index, request.list, request.bytes, request.release_after_ms, request.release_steps});
  return 0;
}

int DriverCore::register_with(OpenFile& file, const RegisterRequest& request) {
  if (file.kind == NodeKind::uvm_tools) return ENOTTY;
  if (std::find(file.registered.begin(), file.registered.end(), request.token) != file.registered.end()) return 0;
  if (file.kind == NodeKind::gpu && !file.registered.empty()) return EINVAL;
  if (file.own == request.token) return EINVAL;
  const bool import = file.kind == NodeKind::ctl;
  if (!(import ? clients_.add_import(request.token) : clients_.add_reference(request.token))) return EINVAL;
  file.registered.push_back(request.token);
  return 0;
}

int DriverCore::delay_exit(OpenFile& file, pid_t caller_tid, const DelayRequest& request) {
  if (request.after_ms < kForEver) return EINVAL;
  const auto process = processes_.process_of(caller_tid);
  if (!process) return EPERM;
  if (request.after_ms == 0) {
    file.exit_delays_ms.erase(*process);
  } else {
    file.exit_delays_ms[*process] = request.after_ms;
  }
  return 0;
}

std::int64_t DriverCore::take_flush_delay_ms(FileId id, pid_t caller_tid) {
  OpenFile& file = files_.at(id);
  if (file.exit_delays_ms.empty()) return file.flush_delay_ms;
  const auto process = processes_.process_of(caller_tid);
  const auto own = process ? file.exit_delays_ms.find(*process) : file.exit_delays_ms.end();
  if (own == file.exit_delays_ms.end()) return file.flush_delay_ms;
  const std::int64_t delay = own->second;
  file.exit_delays_ms.erase(own);
  return delay;
}

int DriverCore::set_gpu_state(const GpuStateRequest& request) {
  if (request.gpu_index >= config_.gpus.size()) return EINVAL;
  const auto state = static_cast<GpuState>(request.state);
  if (state > GpuState::reset_required) return EINVAL;
  config_.gpus[request.gpu_index].state = state;
  return 0;
}

}  // namespace lab
