// SPDX-License-Identifier: Apache-2.0
// A whole sample against tables of functions that answer as drivers were seen to (facts.md 1).
#include "gpu/nvml_sample.h"

#include <gmock/gmock.h>

#include <cstring>

namespace vacate::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
  *memory = {gibibytes(80).count, gibibytes(70).count, gibibytes(10).count};
  return kSuccess;
}
Return memory_v2_wants_the_packed_version(Device, MemoryV2* memory) {
  if (memory->version != kMemoryV2Version) return kFunctionNotFound;
  *memory = {kMemoryV2Version, gibibytes(80).count, gibibytes(1).count, gibibytes(70).count, gibibytes(9).count};
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
  const std::uint64_t memory = gibibytes(1).count;
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
  EXPECT_EQ(gpu.memory.used, Reading<Bytes>(gibibytes(9)));
  EXPECT_EQ(gpu.memory.reserved, Reading<Bytes>(gibibytes(1)));
  EXPECT_EQ(gpu.minor, Reading<std::uint32_t>(7));
  EXPECT_EQ(gpu.pci, "00000000:65:00.0");
  EXPECT_EQ(gpu.recovery_action, Reading<std::uint32_t>(1));
  EXPECT_EQ(gpu.persistence, Reading<bool>(Unknown::not_supported));
  EXPECT_EQ(sample.gpus[1].state, GpuState::lost);
  EXPECT_FALSE(sample.gpus[1].memory.used);
  // In the compute and in the graphics list: one charge, counted once.
  ASSERT_EQ(sample.charges.size(), 1U);
  EXPECT_EQ(sample.charges[0].pid, 4711);
  EXPECT_EQ(sample.charges[0].memory, Reading<Bytes>(gibibytes(1)));
  EXPECT_THAT(sample.charges[0].kinds, ElementsAre(ContextKind::compute, ContextKind::graphics));
  EXPECT_THAT(sample.blind_spots, IsEmpty());
}

TEST(Sampler, MemoryFallsBackAndSaysWhyItIsMissing) {
  auto calls = library();
  calls.memory_v2 = memory_v2_missing;
  EXPECT_EQ(Sampler(calls).sample().gpus[0].memory.used, Reading<Bytes>(gibibytes(10)));
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
  // Found by the fuzzer: a missing figure beside it must not save an impossible one, nor a contradiction give zero.
  EXPECT_EQ(memory_from(MemoryV2{0, 100, 10, kNotAvailable, 200}).used, Reading<Bytes>(Unknown::implausible));
  EXPECT_EQ(memory_from(MemoryV2{0, 100, 10, 97, 3}).used, Reading<Bytes>(Unknown::implausible));
}

Return utilization_97(Device, Utilization* rates) {
  *rates = {97, 12};
  return kSuccess;
}
Return utilization_absurd(Device, Utilization* rates) {
  *rates = {101, 0};
  return kSuccess;
}
Return mig_on(Device, unsigned* current, unsigned* pending) {
  *current = *pending = 1;
  return kSuccess;
}
Return mig_off(Device, unsigned* current, unsigned* pending) {
  *current = 0;
  *pending = 1;
  return kSuccess;
}

TEST(Sampler, UtilizationAndMigAreReadings) {
  auto calls = library();
  EXPECT_EQ(Sampler(calls).sample().gpus[0].utilization, Reading<std::uint32_t>(Unknown::not_supported));
  EXPECT_EQ(Sampler(calls).sample().gpus[0].mig, Reading<bool>(Unknown::not_supported));
  calls.utilization = utilization_97;
  calls.mig_mode = mig_off;
  EXPECT_EQ(Sampler(calls).sample().gpus[0].utilization, Reading<std::uint32_t>(97));
  EXPECT_EQ(Sampler(calls).sample().gpus[0].mig, Reading<bool>(false));
  calls.utilization = utilization_absurd;
  calls.mig_mode = mig_on;
  EXPECT_EQ(Sampler(calls).sample().gpus[0].utilization, Reading<std::uint32_t>(Unknown::implausible));
  EXPECT_EQ(Sampler(calls).sample().gpus[0].mig, Reading<bool>(true));
}

// One row a call: how it is replaced by one that fails with kCode, and what then is unknown. Everything else has to
// stay as it was.
template <Return kCode>
struct Fails {
  static Return number(Device, unsigned*) { return kCode; }
  static Return text(Device, char*, unsigned) { return kCode; }
  static Return pci(Device, PciInfo*) { return kCode; }
  static Return memory(Device, Memory*) { return kCode; }
  static Return memory_v2(Device, MemoryV2*) { return kCode; }
  static Return fields(Device, int, FieldValue*) { return kCode; }
  static Return field(Device, int, FieldValue* field) {
    field->result = kCode;
    return kSuccess;
  }
  static Return rates(Device, Utilization*) { return kCode; }
  static Return mode(Device, unsigned*, unsigned*) { return kCode; }
  static Return processes(Device, unsigned*, void*) { return kCode; }
  static Return count(unsigned*) { return kCode; }
  static Return handle(unsigned, Device*) { return kCode; }
};

Return one_gpu(unsigned* count) {
  *count = 1;
  return kSuccess;
}

Library healthy() {
  auto calls = library();
  calls.count = one_gpu;
  calls.utilization = utilization_97;
  calls.mig_mode = mig_off;
  calls.persistence = minor_7;
  return calls;
}

template <Return kCode>
void one_failing_call_costs_its_answer_only() {
  SCOPED_TRACE(kCode);
  using F = Fails<kCode>;
  const auto good = Sampler(healthy()).sample();
  const auto with = [&](auto&& change) {
    auto calls = healthy();
    change(calls);
    auto sample = Sampler(calls).sample();
    EXPECT_EQ(sample.driver.state, DriverState::ok);
    return sample;
  };
  /// The GPU but for what `forget` takes out of both.
  const auto same_but = [&](const DriverSample& sample, auto&& forget) {
    ASSERT_EQ(sample.gpus.size(), 1U);
    auto expected = good.gpus[0];
    auto seen = sample.gpus[0];
    forget(expected);
    forget(seen);
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(sample.charges, good.charges);
  };
  const auto minor = with([](Library& calls) { calls.minor = F::number; });
  EXPECT_EQ(minor.gpus[0].minor, Reading<std::uint32_t>(reason_of(kCode)));
  same_but(minor, [](Gpu& gpu) { gpu.minor = 0U; });
  const auto name = with([](Library& calls) { calls.name = calls.uuid = F::text; });
  same_but(name, [](Gpu& gpu) { gpu.name = gpu.uuid = ""; });
  const auto pci = with([](Library& calls) { calls.pci = F::pci; });
  EXPECT_EQ(pci.gpus[0].pci, "");
  same_but(pci, [](Gpu& gpu) { gpu.pci = ""; });
  const auto persistence = with([](Library& calls) { calls.persistence = F::number; });
  EXPECT_EQ(persistence.gpus[0].persistence, Reading<bool>(reason_of(kCode)));
  same_but(persistence, [](Gpu& gpu) { gpu.persistence = true; });
  for (const auto call : {F::fields, F::field}) {
    const auto recovery = with([&](Library& calls) { calls.fields = call; });
    EXPECT_EQ(recovery.gpus[0].recovery_action, Reading<std::uint32_t>(reason_of(kCode)));
    same_but(recovery, [](Gpu& gpu) { gpu.recovery_action = 0U; });
  }
  const auto rates = with([](Library& calls) { calls.utilization = F::rates; });
  EXPECT_EQ(rates.gpus[0].utilization, Reading<std::uint32_t>(reason_of(kCode)));
  same_but(rates, [](Gpu& gpu) { gpu.utilization = 0U; });
  const auto mig = with([](Library& calls) { calls.mig_mode = F::mode; });
  EXPECT_EQ(mig.gpus[0].mig, kCode == kNotSupported ? Reading<bool>(false) : Reading<bool>(reason_of(kCode)));
  same_but(mig, [](Gpu& gpu) { gpu.mig = true; });
  const auto memory = with([](Library& calls) {
    calls.memory = F::memory;
    calls.memory_v2 = F::memory_v2;
  });
  EXPECT_EQ(memory.gpus[0].memory.used, Reading<Bytes>(reason_of(kCode)));
  EXPECT_EQ(memory.gpus[0].state, state_of_call(kCode));
  same_but(memory, [](Gpu& gpu) {
    gpu.memory = {};
    gpu.state = GpuState::ok;
  });
  const auto compute = with([](Library& calls) { calls.compute.v2 = F::processes; });
  ASSERT_EQ(compute.charges.size(), 1U);  // the graphics list has it, too
  EXPECT_THAT(compute.charges[0].kinds, ElementsAre(ContextKind::graphics));
  const bool lost = kCode == kGpuIsLost;
  EXPECT_EQ(compute.gpus[0].state == GpuState::lost, lost);
  EXPECT_EQ(compute.blind_spots.size(), lost ? 0U : 1U);
  const auto handle = with([](Library& calls) { calls.handle = F::handle; });
  ASSERT_EQ(handle.gpus.size(), 1U);
  EXPECT_NE(handle.gpus[0].state, GpuState::ok);
  EXPECT_FALSE(handle.gpus[0].memory.used.known());
  EXPECT_THAT(handle.charges, IsEmpty());
  EXPECT_EQ(handle.blind_spots.empty(), handle.gpus[0].state != GpuState::no_answer);
  auto calls = healthy();
  calls.count = F::count;
  const auto count = Sampler(calls).sample();
  EXPECT_EQ(count.driver.state, state_of_init(kCode));
  EXPECT_NE(count.driver.detail, "");
}

TEST(Sampler, EveryCodeOfEveryCallCostsItsAnswerOnly) {
  one_failing_call_costs_its_answer_only<kNotSupported>();
  one_failing_call_costs_its_answer_only<kNoPermission>();
  one_failing_call_costs_its_answer_only<kDriverNotLoaded>();
  one_failing_call_costs_its_answer_only<kTimeout>();
  one_failing_call_costs_its_answer_only<kFunctionNotFound>();
  one_failing_call_costs_its_answer_only<kGpuIsLost>();
  one_failing_call_costs_its_answer_only<kResetRequired>();
  one_failing_call_costs_its_answer_only<kVersionMismatch>();
  one_failing_call_costs_its_answer_only<kUnknown>();
}

Return every_gpu_there_is(unsigned* count) {
  *count = 0xFFFFFFFF;
  return kSuccess;
}
Return text_without_end(Device, char* text, unsigned length) {
  std::memset(text, 'x', length);
  return kSuccess;
}
Return pci_absurd(Device, PciInfo* info) {
  std::memset(info, 0xFF, sizeof *info);
  return kSuccess;
}

TEST(Sampler, ALibraryThatWritesRubbishIsCutShort) {
  auto calls = healthy();
  calls.count = every_gpu_there_is;
  calls.handle = Fails<kUnknown>::handle;
  EXPECT_EQ(Sampler(calls).sample().gpus.size(), 1024U);
  calls = healthy();
  calls.name = calls.uuid = text_without_end;
  calls.pci = pci_absurd;
  const auto gpu = Sampler(calls).sample().gpus[0];
  EXPECT_EQ(gpu.name.size(), 96U);
  EXPECT_EQ(gpu.pci, "");
}

}  // namespace
}  // namespace vacate::nvml
