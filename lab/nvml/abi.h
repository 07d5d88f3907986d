// SPDX-License-Identifier: Apache-2.0
// The binary interface of the vendor's management library as far as the stand-in has it: our own declarations after
// facts.md 1.2-1.4, checked by size. No vendor header is copied and nothing beyond plain C data is declared here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lab::nvml {

/// The numbers are the vendor's (facts.md 1.4).
enum class Return : std::uint32_t {
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  insufficient_size = 7,
  driver_not_loaded = 9,
  function_not_found = 13,
  gpu_is_lost = 15,
  reset_required = 16,
  mismatch = 18,
  argument_version_mismatch = 25,
  unknown = 999,
};
static_assert(sizeof(Return) == 4);

struct Device;  // opaque to callers

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct Memory {
  std::uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8);

struct ProcessInfo16 {
  std::uint32_t pid;
  std::uint64_t bytes;
};
static_assert(sizeof(ProcessInfo16) == 16);

struct ProcessInfo24 {
  std::uint32_t pid;
  std::uint64_t bytes;
  std::uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo24) == 24);

struct ProcessInfo32 {
  std::uint32_t pid;
  std::uint64_t bytes;
  std::uint32_t gpu_instance, compute_instance;
  std::uint64_t protected_bytes;
};
static_assert(sizeof(ProcessInfo32) == 32 && offsetof(ProcessInfo32, protected_bytes) == 24);

struct ProcessDetailList {
  std::uint32_t version, mode, count;
  ProcessInfo32* entries;
};
static_assert(sizeof(ProcessDetailList) == 24 && offsetof(ProcessDetailList, entries) == 16);

struct FieldValue {
  std::uint32_t field, scope;
  std::int64_t timestamp, latency_us;
  std::uint32_t value_type;
  Return result;
  std::uint64_t value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);

struct Utilization {
  std::uint32_t gpu, memory;
};

/// What the vendor's version words are: the size and the version of a struct in one.
template <class Struct>
constexpr std::uint32_t version_word(std::uint32_t version) {
  return static_cast<std::uint32_t>(sizeof(Struct)) | version << 24U;
}
static_assert(version_word<MemoryV2>(2) == 0x02000028);
static_assert(version_word<ProcessDetailList>(1) == 0x01000018);

constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;  // no MIG
constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};

}  // namespace lab::nvml

/// Marks the library's entry points; the era's list of exports may still hide one.
#define LAB_NVML_API extern "C" __attribute__((visibility("default")))
