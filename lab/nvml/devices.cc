// SPDX-License-Identifier: Apache-2.0
// Entry points that find GPUs and say which they are.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "lab/nvml/session.h"
#include "lab/nvml/text.h"

using lab::GpuQuery;
using lab::SystemReply;
using lab::nvml::Device;
using lab::nvml::PciInfo;
using lab::nvml::Return;

namespace {

struct PciAddress {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  bool operator==(const PciAddress&) const = default;
};

/// %x:%x:%x.%x, %x:%x:%x or %x:%x.%x (facts.md 1.2): the vendor's own notation for what it accepts is that of scanf.
bool parse_pci(const char* text, PciAddress& pci) {
  pci = {};
  // NOLINTNEXTLINE(cert-err34-c): overflow is as good as any other wrong id
  if (std::sscanf(text, "%x:%x:%x.%x", &pci.domain, &pci.bus, &pci.device, &pci.function) >= 3) return true;
  pci = {};
  return std::sscanf(text, "%x:%x.%x", &pci.bus, &pci.device, &pci.function) == 3;  // NOLINT(cert-err34-c)
}

/// Attaches the first GPU for which `matches`; one that is lost is found like any other, and then said to be.
template <class Predicate>
Return attach_matching(Device** device, Predicate matches) {
  SystemReply system{};
  Return result = lab::nvml::query_system(system);
  if (result != Return::success) return result;
  for (std::uint32_t index = 0; index < system.gpu_count; ++index) {
    GpuQuery gpu{};
    result = lab::nvml::query_gpu(index, gpu);
    if (result != Return::success) return result;
    if (matches(gpu)) return lab::nvml::attach(index, device);
  }
  return Return::not_found;
}

/// The first generation of calls hides GPUs whose node may not be opened, so its indices differ.
bool may_open(const GpuQuery& gpu) { return access(lab::nvml::NodePath(gpu).text, R_OK | W_OK) == 0; }

/// Calls `visit(gpu)` for each GPU the first generation shows, until it returns false.
template <class Visitor>
Return for_each_visible(Visitor visit) {
  SystemReply system{};
  Return result = lab::nvml::query_system(system);
  for (std::uint32_t index = 0; result == Return::success && index < system.gpu_count; ++index) {
    GpuQuery gpu{};
    result = lab::nvml::query_gpu(index, gpu);
    if (result == Return::success && may_open(gpu) && !visit(gpu)) break;
  }
  return result;
}

Return fill_pci(const Device* device, PciInfo* info, std::size_t known_bytes) {
  GpuQuery gpu{};
  const Return result = lab::nvml::query_device(device, gpu);
  if (result != Return::success) return result;
  PciAddress pci;
  if (info == nullptr || !parse_pci(gpu.pci, pci)) return Return::invalid_argument;
  PciInfo full{};
  // Each field is 32 bits wide for our arithmetic but only so many digits on the bus.
  const unsigned bus = pci.bus & 0xFFU;
  const unsigned slot = pci.device & 0xFFU;
  static_cast<void>(
      snprintf(full.bus_id_legacy, sizeof full.bus_id_legacy, "%04X:%02X:%02X.0", pci.domain & 0xFFFFU, bus, slot));
  static_cast<void>(snprintf(full.bus_id, sizeof full.bus_id, "%08X:%02X:%02X.0", pci.domain, bus, slot));
  full.domain = pci.domain;
  full.bus = pci.bus;
  full.device = pci.device;
  std::memcpy(info, &full, known_bytes);
  return Return::success;
}

/// Runs `use(gpu)` on the GPU behind a handle.
template <class User>
Return with_gpu(const Device* device, const void* output, User use) {
  GpuQuery gpu{};
  const Return result = lab::nvml::query_device(device, gpu);
  if (result != Return::success) return result;
  return output == nullptr ? Return::invalid_argument : use(gpu);
}

}  // namespace

LAB_NVML_API Return nvmlDeviceGetCount_v2(unsigned* count) {
  SystemReply system{};
  const Return result = lab::nvml::query_system(system);
  if (result != Return::success) return result;
  if (count == nullptr) return Return::invalid_argument;
  *count = system.gpu_count;
  return Return::success;
}

LAB_NVML_API Return nvmlDeviceGetCount(unsigned* count) {
  unsigned visible = 0;
  const Return result = for_each_visible([&](const GpuQuery&) {
    ++visible;
    return true;
  });
  if (result != Return::success) return result;
  if (count == nullptr) return Return::invalid_argument;
  *count = visible;
  return Return::success;
}

LAB_NVML_API Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** device) {
  return lab::nvml::attach(index, device);
}

LAB_NVML_API Return nvmlDeviceGetHandleByIndex(unsigned index, Device** device) {
  unsigned to_skip = index;
  Return found = Return::invalid_argument;
  const Return result = for_each_visible([&](const GpuQuery& gpu) {
    if (to_skip-- > 0) return true;
    found = lab::nvml::attach(gpu.index, device);
    return false;
  });
  return result == Return::success ? found : result;
}

LAB_NVML_API Return nvmlDeviceGetHandleByUUID(const char* uuid, Device** device) {
  return attach_matching(device, [&](const GpuQuery& gpu) { return uuid != nullptr && strcmp(gpu.uuid, uuid) == 0; });
}

LAB_NVML_API Return nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device** device) {
  PciAddress wanted;
  const bool parsed = bus_id != nullptr && parse_pci(bus_id, wanted);
  return attach_matching(device, [&](const GpuQuery& gpu) {
    PciAddress pci;
    return parsed && parse_pci(gpu.pci, pci) && pci == wanted;
  });
}

LAB_NVML_API Return nvmlDeviceGetUUID(Device* device, char* uuid, unsigned length) {
  return with_gpu(device, uuid, [&](const GpuQuery& gpu) { return lab::nvml::give_text(gpu.uuid, uuid, length); });
}

LAB_NVML_API Return nvmlDeviceGetName(Device* device, char* name, unsigned length) {
  return with_gpu(device, name, [&](const GpuQuery& gpu) { return lab::nvml::give_text(gpu.name, name, length); });
}

LAB_NVML_API Return nvmlDeviceGetIndex(Device* device, unsigned* index) {
  return with_gpu(device, index, [&](const GpuQuery& gpu) {
    *index = gpu.index;
    return Return::success;
  });
}

LAB_NVML_API Return nvmlDeviceGetMinorNumber(Device* device, unsigned* minor) {
  return with_gpu(device, minor, [&](const GpuQuery& gpu) {
    *minor = gpu.minor;
    return Return::success;
  });
}

LAB_NVML_API Return nvmlDeviceGetPciInfo_v3(Device* device, PciInfo* info) {
  return fill_pci(device, info, sizeof *info);
}

// The older struct ends before the long bus id.
LAB_NVML_API Return nvmlDeviceGetPciInfo_v2(Device* device, PciInfo* info) {
  return fill_pci(device, info, offsetof(PciInfo, bus_id));
}

LAB_NVML_API Return nvmlDeviceGetPciInfo(Device* device, PciInfo* info) {
  return fill_pci(device, info, offsetof(PciInfo, bus_id));
}
