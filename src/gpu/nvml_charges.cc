// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_charges.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "gpu/nvml_sample.h"
#include "model/process.h"

namespace vacate::nvml {
namespace {

Reading<Bytes> larger(const Reading<Bytes>& a, const Reading<Bytes>& b) {
  if (!a.known() || !b.known()) return a.known() ? a : b;
  return *a < *b ? b : a;
}

/// The lists of one GPU, read one after the other.
class ListReader {
 public:
  ListReader(const Library& library, const Gpu& gpu, DriverSample& sample)
      : library_(library),
        gpu_(gpu),
        sample_(sample),
        most_memory_(gpu.memory.total.known() ? gpu.memory.total->count : kMostMemory) {}

  void read_whole(Device device) {
    const bool split = gpu_.mig.known() && *gpu_.mig;
    const bool denied = read(device, kNoInstance, "");
    const unsigned answered = split ? read_instances(device) : 0;
    if (denied && answered > 0) {
      blind("list-instances-only",
            fmt::format("the list of the whole GPU needs root or the monitor capability of MIG; {} of its instances "
                        "answered",
                        answered));
    } else if (denied) {
      blind("list-unavailable", "the driver's process lists: " + library_.describe(kNoPermission));
    }
  }

  [[nodiscard]] GpuState finish() {
    if (rubbish_ > 0)
      blind("list-rubbish", fmt::format("the driver lists {} processes with impossible numbers", rubbish_));
    auto charges = table_.charges(gpu_.index);
    std::move(charges.begin(), charges.end(), std::back_inserter(sample_.charges));
    return state_;
  }

 private:
  /// All lists of one handle. True: some were not permitted, which is not said yet.
  bool read(Device device, std::uint32_t instance, const std::string& where) {
    struct Class {
      const ProcessCalls& calls;
      ContextKind kind;
    };
    bool denied = false;
    for (const auto& [calls, kind] :
         {Class{library_.compute, ContextKind::compute}, Class{library_.graphics, ContextKind::graphics},
          Class{library_.mps, ContextKind::mps}}) {
      const auto list = sample_processes(calls, device, most_memory_);
      rubbish_ += table_.add(list.rows, kind, instance);
      denied = denied || list.result == kNoPermission;
      note(list, kind, where);
    }
    return denied;
  }

  void note(const ProcessList& list, ContextKind kind, const std::string& where) {
    const auto name = describe(kind);
    if (list.malformed) blind("list-malformed", fmt::format("the driver's {} list{} makes no sense", name, where));
    if (list.rows.size() >= kMostListedPids)
      blind("list-truncated", fmt::format("the driver's {} list{} ends at {} processes", name, where, kMostListedPids));
    const auto state = state_of_call(list.result);
    if (state == GpuState::lost || (state == GpuState::reset_required && state_ == GpuState::ok)) state_ = state;
    // Older drivers have no such list for graphics or MPS, which hides nothing; without the compute list nobody is
    // charged. A lost GPU says so in its state.
    const bool missing = is_fallback(list.result) && kind != ContextKind::compute;
    const bool said_elsewhere = state == GpuState::lost || list.result == kNoPermission || list.malformed;
    if (list.result != kSuccess && !missing && !said_elsewhere)
      blind("list-unavailable", fmt::format("the driver's {} list{}: {}", name, where, library_.describe(list.result)));
  }

  /// Returns how many instances gave their lists.
  unsigned read_instances(Device device) {
    unsigned most = 0;
    const Return counted =
        library_.most_instances == nullptr ? kFunctionNotFound : library_.most_instances(device, &most);
    if (counted != kSuccess || library_.instance == nullptr) {
      blind("list-unavailable", "the driver does not say which instances of MIG there are");
      return 0;
    }
    unsigned answered = 0;
    for (unsigned number = 0; number < std::min(most, kMostInstances); ++number) {
      Device part = nullptr;
      const Return found = library_.instance(device, number, &part);
      if (found == kNotFound) continue;  // a hole (facts.md 1.9)
      const auto where = fmt::format(" of MIG instance {}", number);
      std::uint32_t id = kNoInstance;
      if (found == kSuccess && library_.gpu_instance != nullptr && library_.gpu_instance(part, &id) != kSuccess)
        id = kNoInstance;
      if (found != kSuccess) {
        blind("list-unavailable", fmt::format("the lists{}: {}", where, library_.describe(found)));
      } else if (read(part, id, where)) {
        blind("list-unavailable", fmt::format("the lists{}: {}", where, library_.describe(kNoPermission)));
      } else {
        ++answered;
      }
    }
    return answered;
  }

  void blind(const char* code, const std::string& what) {
    sample_.blind_spots.push_back({code, fmt::format("GPU {}: {}", gpu_.index, what)});
  }

  const Library& library_;
  const Gpu& gpu_;
  DriverSample& sample_;
  std::uint64_t most_memory_;
  ChargeTable table_;
  unsigned rubbish_ = 0;
  GpuState state_ = GpuState::ok;
};

}  // namespace

Reading<Bytes> read_amount(std::uint64_t bytes) noexcept {
  if (bytes == kNotAvailable) return Unknown::not_supported;
  if (bytes > kMostMemory) return Unknown::implausible;
  return Bytes{bytes};
}

unsigned ChargeTable::add(const std::vector<ProcessRow>& rows, ContextKind kind, std::uint32_t instance) {
  unsigned rubbish = 0;
  for (const auto& row : rows) {
    if (row.pid == 0 || row.pid > kLargestPid) {
      ++rubbish;
      continue;
    }
    auto& entry = entries_[{static_cast<std::int32_t>(row.pid), row.instance == kNoInstance ? instance : row.instance}];
    entry.memory = larger(entry.memory, read_amount(row.memory));
    if (std::find(entry.kinds.begin(), entry.kinds.end(), kind) == entry.kinds.end()) entry.kinds.push_back(kind);
  }
  return rubbish;
}

std::vector<DriverCharge> ChargeTable::charges(unsigned gpu) const {
  std::vector<DriverCharge> charges;
  for (const auto& [key, entry] : entries_) {
    const auto& [pid, instance] = key;
    const bool is_new = charges.empty() || charges.back().pid != pid;
    if (is_new) charges.push_back({gpu, pid, entry.memory, {}, {}});
    auto& charge = charges.back();
    for (const auto kind : entry.kinds)
      if (std::find(charge.kinds.begin(), charge.kinds.end(), kind) == charge.kinds.end()) charge.kinds.push_back(kind);
    std::sort(charge.kinds.begin(), charge.kinds.end());
    if (instance == kNoInstance) {
      // The last of a process, kNoInstance being the largest number: its parts were summed up before.
      charge.memory = larger(charge.memory, entry.memory);
      continue;
    }
    if (!charge.instances.empty()) {
      charge.memory = charge.memory.known() && entry.memory.known() ? Reading<Bytes>(*charge.memory + *entry.memory)
                                                                    : Reading<Bytes>(Unknown::not_supported);
    }
    charge.instances.push_back(instance);
  }
  return charges;
}

GpuState sample_charges(const Library& library, Device device, const Gpu& gpu, DriverSample& sample) {
  ListReader reader(library, gpu, sample);
  reader.read_whole(device);
  return reader.finish();
}

}  // namespace vacate::nvml
