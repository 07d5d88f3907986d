// SPDX-License-Identifier: Apache-2.0
// A whole sample against tables of functions that answer as drivers were seen to (facts.md 1).
#include "gpu/nvml_sample.h"

#include <gmock/gmock.h>

#include <cstring>

namespace vacate::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

Return init_ok() { return kSuccess; }
template <Return kCode>
Return init_fails() {
  return kCode;
}
Return two_gpus(unsigned* count) {
  *count = 2;
  return kSuccess;
}
Return second_is_lost(unsigned index, Device* device) {
  static int token = 0;
  *device = reinterpret_cast<Device>(&token);
  return index == 1 ? kGpuIsLost : kSuccess;
}
Return memory_v1(Device, Memory* memory) {
  *memory = {80 * kGiB, 70 * kGiB, 10 * kGiB};
  return kSuccess;
}
Return memory_v2_wants_the_packed_version(Device, MemoryV2* memory) {
  if (memory->version != kMemoryV2Version) return kFunctionNotFound;
  *memory = {kMemoryV2Version, 80 * kGiB, kGiB, 70 * kGiB, 9 * kGiB};
  return kSuccess;
}
Return memory_v2_missing(Device, MemoryV2*) { return kFunctionNotFound; }
Return memory_v2_unsupported(Device, MemoryV2*) { return kNotSupported; }
Return minor_7(Device, unsigned* minor) {
  *minor = 7;
  return kSuccess;
}
Return pci(Device, PciInfo* info) {
  info->domain = 0;
  info->bus = 0x65;
  info->device = 0;
  return kSuccess;
}
Return recovery_1(Device, int, FieldValue* field) {
  if (field->field_id != kFieldRecoveryAction) return kInvalidArgument;
  field->value_type = 1;
  field->result = kSuccess;
  field->value = 0xDEADBEEF00000001;  // the upper half of the union is not written
  return kSuccess;
}
template <std::uint32_t kPid>
Return one_process(Device, unsigned* count, void* out) {
  if (*count < 1) return kInsufficientSize;
  *count = 1;
  const std::uint32_t pid = kPid;
  const std::uint64_t memory = kGiB;
  std::memset(out, 0xFF, 24);
  std::memcpy(out, &pid, 4);
  std::memcpy(static_cast<char*>(out) + 8, &memory, 8);
  return kSuccess;
}

Library library() {
  Library calls;
  calls.init_v2 = init_ok;
  calls.count = two_gpus;
  calls.handle = second_is_lost;
  calls.memory = memory_v1;
  calls.memory_v2 = memory_v2_wants_the_packed_version;
  calls.minor = minor_7;
  calls.pci = pci;
  calls.fields = recovery_1;
  calls.compute.v2 = one_process<4711>;
  calls.graphics.v2 = one_process<4711>;
  return calls;
}

TEST(Sampler, OneLostGpuDoesNotCostTheOther) {
  Sampler sampler(library());
  const auto sample = sampler.sample();
  EXPECT_EQ(sample.driver.state, DriverState::ok);
  ASSERT_EQ(sample.gpus.size(), 2U);
  const auto& gpu = sample.gpus[0];
  EXPECT_EQ(gpu.state, GpuState::ok);
  EXPECT_EQ(gpu.memory.used, Reading<Bytes>(Bytes{9 * kGiB}));
  EXPECT_EQ(gpu.memory.reserved, Reading<Bytes>(Bytes{kGiB}));
  EXPECT_EQ(gpu.minor, Reading<std::uint32_t>(7));
  EXPECT_EQ(gpu.pci, "00000000:65:00.0");
  EXPECT_EQ(gpu.recovery_action, Reading<std::uint32_t>(1));
  EXPECT_EQ(gpu.persistence, Reading<bool>(Unknown::not_supported));
  EXPECT_EQ(sample.gpus[1].state, GpuState::lost);
  EXPECT_FALSE(sample.gpus[1].memory.used);
  // In the compute and in the graphics list: one charge, counted once.
  ASSERT_EQ(sample.charges.size(), 1U);
  EXPECT_EQ(sample.charges[0].pid, 4711);
  EXPECT_EQ(sample.charges[0].memory, Reading<Bytes>(Bytes{kGiB}));
  EXPECT_THAT(sample.charges[0].kinds, ElementsAre(ContextKind::compute, ContextKind::graphics));
  EXPECT_THAT(sample.blind_spots, IsEmpty());
}

TEST(Sampler, MemoryFallsBackAndSaysWhyItIsMissing) {
  auto calls = library();
  calls.memory_v2 = memory_v2_missing;
  EXPECT_EQ(Sampler(calls).sample().gpus[0].memory.used, Reading<Bytes>(Bytes{10 * kGiB}));
  calls.memory_v2 = memory_v2_unsupported;
  calls.memory = nullptr;
  EXPECT_EQ(Sampler(calls).sample().gpus[0].memory.used, Reading<Bytes>(Unknown::not_supported));
  EXPECT_EQ(Sampler(calls).sample().gpus[0].state, GpuState::ok);
}

TEST(Sampler, ImpossiblePidsAreDroppedAndSaid) {
  auto calls = library();
  calls.compute.v2 = one_process<0xFFFFFFFF>;
  calls.graphics.v2 = one_process<0>;
  const auto sample = Sampler(calls).sample();
  EXPECT_THAT(sample.charges, IsEmpty());
  ASSERT_EQ(sample.blind_spots.size(), 1U);
  EXPECT_EQ(sample.blind_spots[0].code, "list-rubbish");
}

TEST(Sampler, AFailedInitIsAState) {
  struct Row {
    Init init;
    DriverState state;
  };
  for (const auto& row : {Row{init_fails<9>, DriverState::not_loaded},
                          {init_fails<18>, DriverState::mismatch},
                          {init_fails<4>, DriverState::denied},
                          {init_fails<999>, DriverState::no_answer}}) {
    auto calls = library();
    calls.init_v2 = row.init;
    const auto sample = Sampler(calls).sample();
    EXPECT_EQ(sample.driver.state, row.state);
    EXPECT_NE(sample.driver.detail, "");
    EXPECT_THAT(sample.gpus, IsEmpty());
  }
}

TEST(MemoryFrom, UsedIsAlwaysWithoutReserved) {
  EXPECT_EQ(memory_from(MemoryV2{0, 100, 10, 60, 30}).used, Reading<Bytes>(Bytes{30}));
  EXPECT_EQ(memory_from(MemoryV2{0, 100, 10, 60, 40}).used, Reading<Bytes>(Bytes{30}));  // total = free + used
  EXPECT_EQ(memory_from(MemoryV2{0, 100, 0, 60, 40}).used, Reading<Bytes>(Bytes{40}));
  EXPECT_EQ(memory_from(MemoryV2{0, kNotAvailable, kNotAvailable, kNotAvailable, kNotAvailable}).used,
            Reading<Bytes>(Unknown::not_supported));
  EXPECT_EQ(memory_from(Memory{100, 0, 200}).used, Reading<Bytes>(Unknown::implausible));
}

TEST(MergeRows, TakesTheLargerFigureAndNeverOneThatIsNotAvailable) {
  std::vector<DriverCharge> charges;
  EXPECT_EQ(
      merge_rows({{5, kNotAvailable}, {6, 7}, {0, 1}, {4194305, 1}, {4194304, 0}}, 0, ContextKind::compute, charges),
      2U);
  EXPECT_EQ(merge_rows({{5, 3}, {6, 4}, {6, 9}}, 0, ContextKind::mps, charges), 0U);
  ASSERT_EQ(charges.size(), 3U);
  EXPECT_EQ(charges[0].memory, Reading<Bytes>(Bytes{3}));
  EXPECT_EQ(charges[1].memory, Reading<Bytes>(Bytes{9}));
  EXPECT_EQ(charges[2].memory, Reading<Bytes>(Bytes{0}));
}

}  // namespace
}  // namespace vacate::nvml
