// SPDX-License-Identifier: Apache-2.0
// Entry points about the condition of a GPU: memory, modes, utilisation and health.
#include "lab/nvml/era.h"
#include "lab/nvml/session.h"

using lab::GpuQuery;
using lab::nvml::Device;
using lab::nvml::FieldValue;
using lab::nvml::Memory;
using lab::nvml::MemoryV2;
using lab::nvml::Return;

namespace {

constexpr std::uint32_t kRecoveryActionField = 230;
constexpr std::uint32_t kUnsignedInt = 1;  // type of a field's value

/// A GPU whose memory may be asked for.
Return query_memory(const Device* device, GpuQuery& gpu) {
  const Return result = lab::nvml::query_device(device, gpu);
  if (result != Return::success) return result;
  if (gpu.state == static_cast<std::uint32_t>(lab::GpuState::reset_required)) return Return::reset_required;
  switch (static_cast<lab::QueryState>(gpu.memory_query)) {
    case lab::QueryState::unsupported:
      return Return::not_supported;
    case lab::QueryState::denied:
      return Return::no_permission;
    case lab::QueryState::ok:
      break;
  }
  return Return::success;
}

/// Runs `fill(gpu)` on the GPU behind a handle.
template <class Filler>
Return with_gpu(const Device* device, const void* output, Filler fill) {
  GpuQuery gpu{};
  const Return result = lab::nvml::query_device(device, gpu);
  if (result != Return::success) return result;
  if (output == nullptr) return Return::invalid_argument;
  fill(gpu);
  return Return::success;
}

}  // namespace

LAB_NVML_API Return nvmlDeviceGetMemoryInfo(Device* device, Memory* memory) {
  GpuQuery gpu{};
  const Return result = query_memory(device, gpu);
  if (result != Return::success) return result;
  if (memory == nullptr) return Return::invalid_argument;
  const std::uint64_t used = gpu.reserved + gpu.used;
  *memory = {.total = gpu.total, .free = gpu.total - used, .used = used};
  return Return::success;
}

LAB_NVML_API Return nvmlDeviceGetMemoryInfo_v2(Device* device, MemoryV2* memory) {
  GpuQuery gpu{};
  const Return result = query_memory(device, gpu);
  if (result != Return::success) return result;
  if (memory == nullptr) return Return::invalid_argument;
  if (memory->version != lab::nvml::version_word<MemoryV2>(2)) return Return::argument_version_mismatch;
  memory->total = gpu.total;
  memory->reserved = gpu.reserved;
  memory->free = gpu.total - gpu.reserved - gpu.used;
  memory->used = gpu.used;
  return Return::success;
}

LAB_NVML_API Return nvmlDeviceGetPersistenceMode(Device* device, std::uint32_t* mode) {
  return with_gpu(device, mode, [&](const GpuQuery& gpu) { *mode = gpu.persistence; });
}

LAB_NVML_API Return nvmlDeviceGetComputeMode(Device* device, std::uint32_t* mode) {
  return with_gpu(device, mode, [&](const GpuQuery&) { *mode = 0; });  // default: any number of processes
}

LAB_NVML_API Return nvmlDeviceGetUtilizationRates(Device* device, lab::nvml::Utilization* rates) {
  return with_gpu(device, rates, [&](const GpuQuery& gpu) { *rates = {.gpu = gpu.utilization, .memory = 0}; });
}

LAB_NVML_API Return nvmlDeviceGetMigMode(Device* device, std::uint32_t* /*current*/, std::uint32_t* /*pending*/) {
  GpuQuery gpu{};
  const Return result = lab::nvml::query_device(device, gpu);
  return result == Return::success ? Return::not_supported : result;
}

LAB_NVML_API Return nvmlDeviceGetConfComputeMemSizeInfo(Device* device, void* /*sizes*/) {
  GpuQuery gpu{};
  const Return result = lab::nvml::query_device(device, gpu);
  return result == Return::success ? Return::not_supported : result;
}

LAB_NVML_API Return nvmlDeviceGetFieldValues(Device* device, int count, FieldValue* values) {
  GpuQuery gpu{};
  const Return result = lab::nvml::query_device(device, gpu);
  if (result != Return::success) return result;
  if (count <= 0 || values == nullptr) return Return::invalid_argument;
  for (FieldValue* value = values; value != values + count; ++value) {
    const bool known = value->field == kRecoveryActionField && lab::nvml::kEra.recovery_action;
    value->result = known ? Return::success : Return::not_supported;
    value->timestamp = 0;
    value->latency_us = 0;
    value->value_type = kUnsignedInt;
    value->value = known ? gpu.recovery : 0;
  }
  return Return::success;
}
