// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "gpu/nvml_charges.h"
#include "gpu/proc_driver.h"

namespace vacate::nvml {
namespace {

constexpr unsigned kMostGpus = 1024;

std::string text_of(GetDeviceText call, Device device) {
  std::array<char, 97> text{};  // 96 is NVML's longest, and one that is always zero
  if (call == nullptr || call(device, text.data(), 96) != kSuccess) return {};
  return text.data();
}

Reading<std::uint32_t> number_of(GetDeviceNumber call, Device device) {
  unsigned value = 0;
  const Return code = call == nullptr ? kFunctionNotFound : call(device, &value);
  if (code != kSuccess) return reason_of(code);
  return value;
}

std::string pci_of(const Library& library, Device device) {
  // Larger than any version of the struct: the numbers stand at the same place in all of them, the text does not.
  union {
    PciInfo info;
    char room[128];
  } answer{};
  if (library.pci == nullptr || library.pci(device, &answer.info) != kSuccess) return {};
  return normalise_pci(fmt::format("{:X}:{:X}:{:X}.0", answer.info.domain, answer.info.bus, answer.info.device))
      .value_or("");
}

GpuMemory unknown_memory(Unknown reason) { return {reason, reason, reason, reason}; }

struct MemoryAnswer {
  GpuMemory memory;
  Return code = kNotSupported;
};
MemoryAnswer sample_memory(const Library& library, Device device) {
  MemoryAnswer answer;
  if (library.memory_v2 != nullptr) {
    MemoryV2 memory{};
    memory.version = kMemoryV2Version;
    answer.code = library.memory_v2(device, &memory);
    if (answer.code == kSuccess) return {memory_from(memory), kSuccess};
  }
  const bool older = library.memory_v2 == nullptr || is_fallback(answer.code) || answer.code == kInvalidArgument;
  if (older && library.memory != nullptr) {
    Memory memory{};
    answer.code = library.memory(device, &memory);
    if (answer.code == kSuccess) return {memory_from(memory), kSuccess};
  }
  answer.memory = unknown_memory(reason_of(answer.code));
  return answer;
}

Reading<std::uint32_t> sample_recovery_action(const Library& library, Device device) {
  static constexpr std::uint64_t kMostPlausible = 255;
  FieldValue field{};
  field.field_id = kFieldRecoveryAction;
  const Return code = library.fields == nullptr ? kFunctionNotFound : library.fields(device, 1, &field);
  if (code != kSuccess) return reason_of(code);
  if (field.result != kSuccess) return reason_of(field.result);
  const std::uint64_t value = field.value_type == 1 ? field.value & 0xFFFFFFFFU : field.value;  // 1: unsigned int
  if (value > kMostPlausible) return Unknown::implausible;
  return static_cast<std::uint32_t>(value);
}

Reading<std::uint32_t> sample_utilization(const Library& library, Device device) {
  Utilization rates{};
  const Return code = library.utilization == nullptr ? kFunctionNotFound : library.utilization(device, &rates);
  if (code != kSuccess) return reason_of(code);
  if (rates.gpu > 100) return Unknown::implausible;
  return rates.gpu;
}

/// A GPU that does not know MIG is not split.
Reading<bool> sample_mig(const Library& library, Device device) {
  if (library.mig_mode == nullptr) return Unknown::not_supported;
  unsigned current = 0;
  unsigned pending = 0;
  const Return code = library.mig_mode(device, &current, &pending);
  if (code == kNotSupported) return false;
  if (code != kSuccess) return reason_of(code);
  return current == 1;
}

/// What no call answered, for want of a handle.
void fill_unknown(Gpu& gpu, Unknown why) {
  gpu.minor = why;
  gpu.persistence = why;
  gpu.recovery_action = why;
  gpu.utilization = why;
  gpu.mig = why;
  gpu.memory = unknown_memory(why);
}

}  // namespace

DriverState state_of_init(Return code) noexcept {
  switch (code) {
    case kSuccess:
      return DriverState::ok;
    case kDriverNotLoaded:
      return DriverState::not_loaded;
    case kVersionMismatch:
      return DriverState::mismatch;
    case kNoPermission:
      return DriverState::denied;
    default:
      return DriverState::no_answer;
  }
}

GpuState state_of_call(Return code) noexcept {
  switch (code) {
    case kGpuIsLost:
      return GpuState::lost;
    case kResetRequired:
      return GpuState::reset_required;
    case kTimeout:
    case kUnknown:
      return GpuState::no_answer;
    default:
      return GpuState::ok;
  }
}

Unknown reason_of(Return code) noexcept {
  switch (code) {
    case kNotSupported:
    case kFunctionNotFound:
    case kArgumentVersionMismatch:
      return Unknown::not_supported;
    case kNoPermission:
      return Unknown::no_permission;
    case kTimeout:
      return Unknown::timed_out;
    default:
      return Unknown::failed;
  }
}

GpuMemory memory_from(const MemoryV2& memory) noexcept {
  GpuMemory result{read_amount(memory.total), read_amount(memory.used), read_amount(memory.reserved),
                   read_amount(memory.free)};
  const bool all = result.total && result.used && result.reserved && result.free;
  const bool used_includes_reserved = all && memory.reserved > 0 && memory.total == memory.used + memory.free;
  if (used_includes_reserved) {
    // Less used than reserved is a contradiction, and no proof that nothing is used.
    result.used = memory.used >= memory.reserved ? Reading(*result.used - *result.reserved) : Unknown::implausible;
  }
  if (result.total && result.used && *result.used > *result.total) result.used = Unknown::implausible;
  return result;
}

GpuMemory memory_from(const Memory& memory) noexcept {
  GpuMemory result{read_amount(memory.total), read_amount(memory.used), Unknown::not_supported,
                   read_amount(memory.free)};
  if (result.total && result.used && *result.used > *result.total) result.used = Unknown::implausible;
  return result;
}

bool Sampler::prepare(Driver& driver) {
  if (!library_) {
    auto library = Library::load();
    if (!library) {
      driver.state = DriverState::absent;
      driver.detail = library.error().message;
      return false;
    }
    library_ = *std::move(library);
  }
  if (!initialised_) {
    const Return code = library_->init();
    initialised_ = code == kSuccess;
    driver.state = state_of_init(code);
    if (!initialised_) driver.detail = "NVML: " + library_->describe(code);
  }
  driver.state = initialised_ ? DriverState::ok : driver.state;
  return initialised_;
}

DriverSample Sampler::sample() {
  DriverSample sample;
  if (!prepare(sample.driver)) return sample;
  std::array<char, 81> version{};
  if (library_->driver_version != nullptr && library_->driver_version(version.data(), 80) == kSuccess)
    sample.driver.version = version.data();
  unsigned count = 0;
  const Return code = library_->count(&count);
  if (code != kSuccess) {
    sample.driver.state = state_of_init(code);
    sample.driver.detail = "NVML: number of GPUs: " + library_->describe(code);
    return sample;
  }
  for (unsigned index = 0; index < std::min(count, kMostGpus); ++index) sample_gpu(index, sample);
  std::sort(sample.charges.begin(), sample.charges.end(), [](const DriverCharge& a, const DriverCharge& b) {
    return a.gpu != b.gpu ? a.gpu < b.gpu : a.pid < b.pid;
  });
  return sample;
}

void Sampler::sample_gpu(unsigned index, DriverSample& sample) const {
  Gpu gpu;
  gpu.index = index;
  Device device = nullptr;
  const Return handle = library_->handle(index, &device);
  if (handle != kSuccess) {
    gpu.state = state_of_call(handle) == GpuState::ok ? GpuState::no_answer : state_of_call(handle);
    fill_unknown(gpu, reason_of(handle));
    // One that is lost or wants a reset says so in its state; any other failure is something unseen.
    if (gpu.state == GpuState::no_answer)
      sample.blind_spots.push_back({"gpu-no-answer", fmt::format("GPU {}: {}", index, library_->describe(handle))});
    sample.gpus.push_back(std::move(gpu));
    return;
  }
  gpu.uuid = text_of(library_->uuid, device);
  gpu.name = text_of(library_->name, device);
  gpu.pci = pci_of(*library_, device);
  gpu.minor = number_of(library_->minor, device);
  const auto memory = sample_memory(*library_, device);
  gpu.memory = memory.memory;
  gpu.state = state_of_call(memory.code);
  const auto persistence = number_of(library_->persistence, device);
  gpu.persistence = persistence ? Reading<bool>(*persistence != 0) : Reading<bool>(persistence.reason());
  gpu.recovery_action = sample_recovery_action(*library_, device);
  gpu.utilization = sample_utilization(*library_, device);
  gpu.mig = sample_mig(*library_, device);
  const auto said_by_lists = sample_charges(*library_, device, gpu, sample);
  if (gpu.state == GpuState::ok) gpu.state = said_by_lists;
  if (gpu.state == GpuState::no_answer)
    sample.blind_spots.push_back({"gpu-no-answer", fmt::format("GPU {}: {}", index, library_->describe(memory.code))});
  sample.gpus.push_back(std::move(gpu));
}

void Sampler::shut_down() {
  if (initialised_ && library_ && library_->shutdown != nullptr) (void)library_->shutdown();
  initialised_ = false;
}

}  // namespace vacate::nvml
