// SPDX-License-Identifier: Apache-2.0
// Entry points that list processes, in every layout the vendor ever used (facts.md 1.6).
#include <cstring>

#include "lab/nvml/era.h"
#include "lab/nvml/session.h"

using lab::GpuQuery;
using lab::ListKind;
using lab::ProcessPage;
using lab::ProcessRow;
using lab::nvml::Device;
using lab::nvml::kEra;
using lab::nvml::kNoInstance;
using lab::nvml::kNotAvailable;
using lab::nvml::ProcessDetailList;
using lab::nvml::ProcessInfo16;
using lab::nvml::ProcessInfo24;
using lab::nvml::ProcessInfo32;
using lab::nvml::Return;
using lab::nvml::Stride;

namespace {

constexpr std::uint32_t kMaxProcesses = 950;  // the driver gives no more

struct ProcessList {
  std::uint32_t count = 0;
  ProcessRow rows[kMaxProcesses];
};

/// Whether the GPU's processes may be asked for.
Return check_device(const Device* device) {
  GpuQuery gpu{};
  const Return result = lab::nvml::query_device(device, gpu);
  if (result != Return::success) return result;
  if (gpu.state == static_cast<std::uint32_t>(lab::GpuState::reset_required)) return Return::reset_required;
  switch (static_cast<lab::QueryState>(gpu.process_query)) {
    case lab::QueryState::unsupported:
      return Return::not_supported;
    case lab::QueryState::denied:
      return Return::no_permission;
    case lab::QueryState::ok:
      break;
  }
  return Return::success;
}

Return fetch(const Device* device, ListKind kind, ProcessList& list) {
  Return result = check_device(device);
  if (result != Return::success) return result;
  list.count = 0;
  ProcessPage page{};
  do {
    page.index = device->index;
    page.list = kind;
    page.first = list.count;
    result = lab::nvml::query_processes(page);
    if (result != Return::success) return result;
    for (std::uint32_t row = 0; row < page.filled && list.count < kMaxProcesses; ++row) {
      list.rows[list.count++] = page.rows[row];
    }
  } while (page.filled > 0 && list.count < page.total && list.count < kMaxProcesses);
  return Return::success;
}

void put(const ProcessRow& row, ProcessInfo16& entry) { entry = {.pid = row.pid, .bytes = row.bytes}; }

void put(const ProcessRow& row, ProcessInfo24& entry) {
  entry = {.pid = row.pid, .bytes = row.bytes, .gpu_instance = kNoInstance, .compute_instance = kNoInstance};
}

void put(const ProcessRow& row, ProcessInfo32& entry) {
  entry = {.pid = row.pid,
           .bytes = row.bytes,
           .gpu_instance = kNoInstance,
           .compute_instance = kNoInstance,
           .protected_bytes = kNotAvailable};
}

/// The two-phase protocol: too small a buffer is told the needed count and gets no entry.
template <class Entry>
Return give(const ProcessList& list, std::uint32_t& count, Entry* entries) {
  const std::uint32_t room = count;
  count = list.count;
  if (room < list.count) return Return::insufficient_size;
  if (list.count > 0 && entries == nullptr) return Return::invalid_argument;
  for (std::uint32_t row = 0; row < list.count; ++row) put(list.rows[row], entries[row]);
  return Return::success;
}

template <class Entry>
Return running(const Device* device, ListKind kind, std::uint32_t* count, void* entries) {
  ProcessList list;
  const Return result = fetch(device, kind, list);
  if (result != Return::success) return result;
  if (count == nullptr || (*count > 0 && entries == nullptr)) return Return::invalid_argument;
  return give(list, *count, static_cast<Entry*>(entries));
}

/// The layout of `_v3` is the era's, and its name does not tell.
Return running_v3(const Device* device, ListKind kind, std::uint32_t* count, void* entries) {
  return kEra.processes_v3 == Stride::v32 ? running<ProcessInfo32>(device, kind, count, entries)
                                          : running<ProcessInfo24>(device, kind, count, entries);
}

}  // namespace

LAB_NVML_API Return nvmlDeviceGetComputeRunningProcesses_v3(Device* device, std::uint32_t* count, void* entries) {
  return running_v3(device, ListKind::compute, count, entries);
}
LAB_NVML_API Return nvmlDeviceGetComputeRunningProcesses_v2(Device* device, std::uint32_t* count, void* entries) {
  return running<ProcessInfo24>(device, ListKind::compute, count, entries);
}
LAB_NVML_API Return nvmlDeviceGetComputeRunningProcesses(Device* device, std::uint32_t* count, void* entries) {
  return running<ProcessInfo16>(device, ListKind::compute, count, entries);
}

LAB_NVML_API Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device* device, std::uint32_t* count, void* entries) {
  return running_v3(device, ListKind::graphics, count, entries);
}
LAB_NVML_API Return nvmlDeviceGetGraphicsRunningProcesses_v2(Device* device, std::uint32_t* count, void* entries) {
  return running<ProcessInfo24>(device, ListKind::graphics, count, entries);
}
LAB_NVML_API Return nvmlDeviceGetGraphicsRunningProcesses(Device* device, std::uint32_t* count, void* entries) {
  return running<ProcessInfo16>(device, ListKind::graphics, count, entries);
}

LAB_NVML_API Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device* device, std::uint32_t* count, void* entries) {
  return running_v3(device, ListKind::mps, count, entries);
}
LAB_NVML_API Return nvmlDeviceGetMPSComputeRunningProcesses_v2(Device* device, std::uint32_t* count, void* entries) {
  return running<ProcessInfo24>(device, ListKind::mps, count, entries);
}
LAB_NVML_API Return nvmlDeviceGetMPSComputeRunningProcesses(Device* device, std::uint32_t* count, void* entries) {
  return running<ProcessInfo16>(device, ListKind::mps, count, entries);
}

LAB_NVML_API Return nvmlDeviceGetRunningProcessDetailList(Device* device, ProcessDetailList* details) {
  const Return usable = check_device(device);
  if (usable != Return::success) return usable;
  if (details == nullptr) return Return::invalid_argument;
  if (details->version != lab::nvml::version_word<ProcessDetailList>(1)) return Return::argument_version_mismatch;
  constexpr ListKind kModes[] = {ListKind::compute, ListKind::graphics, ListKind::mps};
  if (details->mode >= 3) return Return::invalid_argument;
  ProcessList list;
  const Return result = fetch(device, kModes[details->mode], list);
  return result == Return::success ? give(list, details->count, details->entries) : result;
}
