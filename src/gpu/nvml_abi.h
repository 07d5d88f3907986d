// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that vacate uses, written from facts.md 1.2-1.4: no vendor header is copied or
// needed. Sizes and offsets are asserted; every call goes through a pointer found by name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vacate::nvml {

struct DeviceOpaque;
using Device = DeviceOpaque*;
using Return = std::int32_t;

inline constexpr Return kSuccess = 0;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kVersionMismatch = 18;
inline constexpr Return kArgumentVersionMismatch = 25;
inline constexpr Return kUnknown = 999;

inline constexpr unsigned kInitNoGpus = 1;
inline constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 && offsetof(PciInfo, bus_id) == 36);

struct Memory {
  std::uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8 && offsetof(MemoryV2, used) == 32);
inline constexpr std::uint32_t kMemoryV2Version = 0x02000028;
static_assert(kMemoryV2Version == (sizeof(MemoryV2) | 2U << 24U));

struct Utilization {
  std::uint32_t gpu, memory;  ///< per cent
};
static_assert(sizeof(Utilization) == 8);

struct FieldValue {
  std::uint32_t field_id, scope_id;
  std::int64_t timestamp, latency;
  std::uint32_t value_type;
  Return result;
  std::uint64_t value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, result) == 28 && offsetof(FieldValue, value) == 32);
inline constexpr std::uint32_t kFieldRecoveryAction = 230;

// Process rows are read by offset, because their stride has to be found out (facts.md 1.6).
inline constexpr std::size_t kStrideV1 = 16, kStrideV2 = 24, kStride535 = 32;
inline constexpr std::size_t kPidOffset = 0, kMemoryOffset = 8, kGpuInstanceOffset = 16, kComputeInstanceOffset = 20;
inline constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;  // in a row: not on an instance of MIG
inline constexpr std::uint32_t kMostInstances = 64;
inline constexpr unsigned kMostListedPids = 950;  // RM lists no more in one class (facts.md 1.6)

using InitWithFlags = Return (*)(unsigned);
using Init = Return (*)();
using Shutdown = Return (*)();
using ErrorString = const char* (*)(Return);
using GetText = Return (*)(char*, unsigned);
using GetCount = Return (*)(unsigned*);
using GetHandle = Return (*)(unsigned, Device*);
using GetDeviceText = Return (*)(Device, char*, unsigned);
using GetDeviceNumber = Return (*)(Device, unsigned*);
using GetPci = Return (*)(Device, PciInfo*);
using GetMemory = Return (*)(Device, Memory*);
using GetMemoryV2 = Return (*)(Device, MemoryV2*);
using GetProcesses = Return (*)(Device, unsigned*, void*);
using GetUtilization = Return (*)(Device, Utilization*);
using GetMode = Return (*)(Device, unsigned* current, unsigned* pending);
using GetPart = Return (*)(Device, unsigned, Device*);
using GetFields = Return (*)(Device, int, FieldValue*);

}  // namespace vacate::nvml
