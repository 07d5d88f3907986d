// SPDX-License-Identifier: Apache-2.0
// Lists of a GPU and of its MIG instances, merged (facts.md 1.6, 1.9).
#include "gpu/nvml_charges.h"

#include <gmock/gmock.h>

#include <cstring>

namespace vacate::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kNone = kNoInstance;

TEST(ChargeTable, TakesTheLargerFigureAndNeverOneThatIsNotAvailable) {
  ChargeTable table;
  EXPECT_EQ(table.add({{5, kNotAvailable}, {6, 7}, {0, 1}, {4194305, 1}, {4194304, 0}}, ContextKind::mps, kNone), 2U);
  EXPECT_EQ(table.add({{5, 3}, {6, 4}, {6, 9}}, ContextKind::compute, kNone), 0U);
  const auto charges = table.charges(1);
  ASSERT_EQ(charges.size(), 3U);
  EXPECT_EQ(charges[0].gpu, 1U);
  EXPECT_EQ(charges[0].memory, Reading<Bytes>(Bytes{3}));
  EXPECT_EQ(charges[1].memory, Reading<Bytes>(Bytes{9}));
  EXPECT_THAT(charges[1].kinds, ElementsAre(ContextKind::compute, ContextKind::mps));
  EXPECT_EQ(charges[2].memory, Reading<Bytes>(Bytes{0}));  // known to be nothing, not unknown
  EXPECT_THAT(charges[2].instances, IsEmpty());
}

TEST(ChargeTable, InstancesAddUpOnce) {
  ChargeTable table;
  // The list of the whole GPU, then those of two instances, whose rows may or may not say whose they are.
  EXPECT_EQ(table.add({{5, 10, 1}, {5, 20, 2}, {6, 7, 2}}, ContextKind::compute, kNone), 0U);
  EXPECT_EQ(table.add({{5, 10}}, ContextKind::compute, 1), 0U);
  EXPECT_EQ(table.add({{5, 20, 2}, {6, kNotAvailable, 2}}, ContextKind::graphics, 2), 0U);
  const auto charges = table.charges(0);
  ASSERT_EQ(charges.size(), 2U);
  EXPECT_EQ(charges[0].memory, Reading<Bytes>(Bytes{30}));
  EXPECT_THAT(charges[0].instances, ElementsAre(1U, 2U));
  EXPECT_THAT(charges[0].kinds, ElementsAre(ContextKind::compute, ContextKind::graphics));
  EXPECT_EQ(charges[1].memory, Reading<Bytes>(Bytes{7}));
}

TEST(ChargeTable, AnUnknownInstanceMakesTheSumUnknown) {
  ChargeTable table;
  (void)table.add({{5, 10, 1}, {5, kNotAvailable, 2}, {6, 1, 1}, {6, 2, 2}}, ContextKind::compute, kNone);
  // Rows of a first-version list say no instance: the same memory once more.
  (void)table.add({{6, 3}}, ContextKind::compute, kNone);
  const auto charges = table.charges(0);
  ASSERT_EQ(charges.size(), 2U);
  EXPECT_FALSE(charges[0].memory.known());
  EXPECT_EQ(charges[1].memory, Reading<Bytes>(Bytes{3}));
  EXPECT_THAT(charges[1].instances, ElementsAre(1U, 2U));
}

// A GPU with instances 0 and 2, and a hole between them; its own list wants a permission. Handles are addresses.
int g_whole, g_first, g_third;  // NOLINT: what the handles point at
Device as_device(int& token) { return reinterpret_cast<Device>(&token); }

Return three(Device, unsigned* count) {
  *count = 3;
  return kSuccess;
}
Return part(Device, unsigned number, Device* out) {
  if (number == 1) return kNotFound;
  *out = as_device(number == 0 ? g_first : g_third);
  return kSuccess;
}
template <Return kCode>
Return no_part(Device, unsigned, Device*) {
  return kCode;
}
Return part_id(Device device, unsigned* id) {
  *id = device == as_device(g_first) ? 3U : 7U;
  return kSuccess;
}
Return rows_of(Device device, unsigned* count, void* out) {
  if (device == as_device(g_whole)) return kNoPermission;
  if (*count < 1) return kInsufficientSize;
  *count = 1;
  const std::uint32_t pid = device == as_device(g_first) ? 100 : 200;
  const std::uint64_t memory = gibibytes(1).count;
  const std::uint32_t instance = device == as_device(g_first) ? kNone : 7;
  std::memset(out, 0, 24);
  std::memcpy(out, &pid, 4);
  std::memcpy(static_cast<char*>(out) + 8, &memory, 8);
  std::memcpy(static_cast<char*>(out) + 16, &instance, 4);
  return kSuccess;
}
template <Return kCode>
Return no_rows(Device, unsigned*, void*) {
  return kCode;
}
Return full_list(Device, unsigned* count, void* out) {
  if (*count < kMostListedPids) {
    *count = kMostListedPids;
    return kInsufficientSize;
  }
  *count = kMostListedPids;
  for (unsigned i = 0; i < kMostListedPids; ++i) {
    char* row = static_cast<char*>(out) + i * std::size_t{24};
    const std::uint32_t pid = 1000 + i;
    std::memset(row, 0xFF, 24);
    std::memcpy(row, &pid, 4);
  }
  return kSuccess;
}

Library split_library() {
  Library calls;
  calls.most_instances = three;
  calls.instance = part;
  calls.gpu_instance = part_id;
  calls.compute.v2 = rows_of;
  return calls;
}

struct Answer {
  DriverSample sample;
  GpuState state = GpuState::ok;
};
Answer ask(const Library& calls, bool split) {
  Answer answer;
  Gpu gpu;
  gpu.mig = split;
  gpu.memory.total = gibibytes(80);
  answer.state = sample_charges(calls, as_device(g_whole), gpu, answer.sample);
  return answer;
}
std::vector<std::string> codes(const Answer& answer) {
  std::vector<std::string> codes;
  for (const auto& spot : answer.sample.blind_spots) codes.push_back(spot.code);
  return codes;
}

TEST(SampleCharges, InstancesStandInForAListThatIsNotPermitted) {
  const auto answer = ask(split_library(), true);
  ASSERT_EQ(answer.sample.charges.size(), 2U);
  EXPECT_EQ(answer.sample.charges[0].pid, 100);
  EXPECT_THAT(answer.sample.charges[0].instances, ElementsAre(3U));
  EXPECT_EQ(answer.sample.charges[1].pid, 200);
  EXPECT_THAT(answer.sample.charges[1].instances, ElementsAre(7U));
  EXPECT_THAT(codes(answer), ElementsAre("list-instances-only"));
  EXPECT_EQ(answer.state, GpuState::ok);
}

TEST(SampleCharges, WithoutMigADeniedListIsABlindSpot) {
  const auto answer = ask(split_library(), false);
  EXPECT_THAT(answer.sample.charges, IsEmpty());
  EXPECT_THAT(codes(answer), ElementsAre("list-unavailable"));
}

TEST(SampleCharges, AnInstanceThatDoesNotAnswerIsSaid) {
  auto calls = split_library();
  calls.instance = no_part<kNoPermission>;
  EXPECT_THAT(codes(ask(calls, true)),
              ElementsAre("list-unavailable", "list-unavailable", "list-unavailable", "list-unavailable"));
  calls.instance = no_part<kNotFound>;
  EXPECT_THAT(codes(ask(calls, true)), ElementsAre("list-unavailable"));  // the whole GPU's, which is denied
  calls.most_instances = nullptr;
  EXPECT_THAT(codes(ask(calls, true)), ElementsAre("list-unavailable", "list-unavailable"));
  calls = split_library();
  calls.gpu_instance = nullptr;
  EXPECT_THAT(ask(calls, true).sample.charges[0].instances, IsEmpty());
  EXPECT_EQ(ask(calls, true).sample.charges.size(), 2U);
}

TEST(SampleCharges, WhatEachCodeOfAListMeans) {
  struct Row {
    GetProcesses call;
    GpuState state;
    std::vector<std::string> codes;
  };
  for (const auto& row :
       {Row{no_rows<kNotSupported>, GpuState::ok, {"list-unavailable"}},
        Row{no_rows<kNoPermission>, GpuState::ok, {"list-unavailable"}},
        Row{no_rows<kDriverNotLoaded>, GpuState::ok, {"list-unavailable"}},
        Row{no_rows<kGpuIsLost>, GpuState::lost, {}},
        Row{no_rows<kResetRequired>, GpuState::reset_required, {"list-unavailable"}},
        Row{no_rows<kVersionMismatch>, GpuState::ok, {"list-unavailable"}},
        Row{no_rows<kUnknown>, GpuState::ok, {"list-unavailable"}}, Row{full_list, GpuState::ok, {"list-truncated"}}}) {
    Library calls;
    calls.compute.v2 = row.call;
    const auto answer = ask(calls, false);
    EXPECT_EQ(answer.state, row.state);
    EXPECT_EQ(codes(answer), row.codes);
  }
  // Lists that older drivers have not got hide nothing; other failures do.
  Library calls;
  calls.compute.v2 = full_list;
  calls.graphics.v2 = no_rows<kNotSupported>;
  calls.mps.v2 = no_rows<kUnknown>;
  EXPECT_THAT(codes(ask(calls, false)), ElementsAre("list-truncated", "list-unavailable"));
  EXPECT_EQ(ask(calls, false).sample.charges.size(), kMostListedPids);
}

}  // namespace
}  // namespace vacate::nvml
