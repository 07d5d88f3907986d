// SPDX-License-Identifier: Apache-2.0
// The stride bug of facts.md 1.6: functions with each era's ABI write rows, and no wrong length may ever yield a pid.
#include "gpu/nvml_processes.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

namespace vacate::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What the functions below answer; a C function pointer carries nothing else.
std::vector<ProcessRow> g_rows;  // NOLINT: read by the fake driver below
unsigned g_calls = 0;            // NOLINT
unsigned g_grow = 0;             // NOLINT: rows the list gains with each call

template <std::size_t kStride, std::size_t kWritten = kStride>
Return write_rows(Device, unsigned* count, void* out) {
  ++g_calls;
  for (unsigned i = 0; i < g_grow; ++i) g_rows.push_back({5000, gibibytes(1).count});
  const auto need = static_cast<unsigned>(g_rows.size());
  if (*count < need) {
    *count = need;
    return kInsufficientSize;
  }
  *count = need;
  auto* bytes = static_cast<unsigned char*>(out);
  for (std::size_t i = 0; i < g_rows.size(); ++i) {
    unsigned char row[32] = {};
    std::memcpy(row, &g_rows[i].pid, 4);
    std::memcpy(row + 8, &g_rows[i].memory, 8);
    std::memset(row + 16, 0xFF, 8);
    std::memcpy(bytes + i * kStride, row, kWritten);
  }
  return kSuccess;
}

template <Return kCode>
Return fail(Device, unsigned*, void*) {
  return kCode;
}

Return lie_about_count(Device, unsigned* count, void*) {
  *count = 0xFFFFFFFF;
  return kSuccess;
}

template <std::size_t kStride>
Return clear_and_write(Device device, unsigned* count, void* out) {
  std::memset(out, 0, std::size_t{*count} * kStride);
  return write_rows<kStride>(device, count, out);
}

class Processes : public ::testing::Test {
 protected:
  void SetUp() override {
    g_rows = {{4711, gibibytes(1).count}, {4712, kNotAvailable}, {4713, gibibytes(2).count}};
    g_calls = 0;
    g_grow = 0;
  }
  static ProcessList ask(ProcessCalls calls) { return sample_processes(calls, nullptr, gibibytes(80).count); }
};

TEST_F(Processes, EveryEraGivesTheSameRows) {
  for (const auto& calls :
       {ProcessCalls{nullptr, nullptr, write_rows<16>}, ProcessCalls{nullptr, write_rows<24>, write_rows<16>},
        ProcessCalls{write_rows<24>, nullptr, nullptr}, ProcessCalls{write_rows<32>, nullptr, nullptr},
        ProcessCalls{write_rows<16>, nullptr, nullptr}, ProcessCalls{write_rows<32, 24>, nullptr, nullptr},
        ProcessCalls{write_rows<24, 16>, nullptr, nullptr}, ProcessCalls{clear_and_write<24>, nullptr, nullptr}}) {
    for (std::size_t n = 1; n <= 3; ++n) {
      SetUp();
      g_rows.resize(n);
      const auto list = ask(calls);
      EXPECT_EQ(list.result, kSuccess);
      EXPECT_FALSE(list.malformed);
      EXPECT_EQ(list.rows, g_rows);
    }
  }
}

template <std::size_t kStride>
Return clear_all_and_write(Device device, unsigned* count, void* out) {
  std::memset(out, 0, std::size_t{*count} * kStride);
  return write_rows<kStride>(device, count, out);
}

TEST_F(Processes, AWrongStrideNeverYieldsAPid) {
  std::mt19937 random(535);  // NOLINT: the same rows in every run
  const std::vector<GetProcesses> writers = {write_rows<16>,          write_rows<24>,          write_rows<32>,
                                             write_rows<24, 16>,      write_rows<32, 16>,      write_rows<32, 24>,
                                             clear_all_and_write<16>, clear_all_and_write<24>, clear_all_and_write<32>};
  unsigned understood = 0;
  for (int round = 0; round < 600; ++round) {
    // Small numbers, as in a container, are the ones that pass for instances; memory can pass for a pid.
    g_rows.clear();
    const std::size_t n = 1 + random() % (round % 3 == 0 ? 4 : 127);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t kinds[] = {
          0, random() % 64, 3U << 20U, kNotAvailable, gibibytes(1).count, gibibytes(4).count};
      g_rows.push_back({1 + static_cast<std::uint32_t>(random()) % 63, kinds[random() % 6]});
    }
    for (const auto writer : writers) {
      for (const auto& calls : {ProcessCalls{writer, nullptr, nullptr}, ProcessCalls{nullptr, writer, nullptr},
                                ProcessCalls{nullptr, nullptr, writer}}) {
        const auto list = ask(calls);
        if (list.malformed) {
          EXPECT_THAT(list.rows, IsEmpty());
          continue;
        }
        EXPECT_EQ(list.rows, g_rows);
        ++understood;
      }
    }
  }
  EXPECT_GT(understood, 600U * 9U);  // every writer by the version that is measured, at least
}

TEST_F(Processes, PrefersTheAbiThatNeverChanged) {
  const auto list = ask({write_rows<32>, write_rows<24>, write_rows<16>});
  EXPECT_EQ(g_calls, 1U);
  EXPECT_EQ(list.rows, g_rows);
}

TEST_F(Processes, FallsBackWhereTheDriverBehindTheLibraryLacksTheCall) {
  EXPECT_EQ(ask({fail<kFunctionNotFound>, fail<kArgumentVersionMismatch>, write_rows<16>}).rows, g_rows);
  EXPECT_EQ(ask({fail<kNotSupported>, nullptr, nullptr}).result, kNotSupported);
  EXPECT_EQ(ask({nullptr, fail<kNoPermission>, write_rows<16>}).result, kNoPermission);
  EXPECT_EQ(ask({}).result, kNotSupported);
}

TEST_F(Processes, ASecondVersionWithLongerRowsIsNotBelieved) {
  const auto list = ask({nullptr, write_rows<32>, nullptr});
  EXPECT_TRUE(list.malformed);
  EXPECT_THAT(list.rows, IsEmpty());
}

// Found by the fuzzer: the end of a cleared array was taken for the end of longer rows, and memory for pids.
TEST_F(Processes, AClearedArrayTellsItsRowsHoweverManyThereAre) {
  for (const auto& calls :
       {ProcessCalls{clear_and_write<16>, nullptr, nullptr}, ProcessCalls{clear_and_write<24>, nullptr, nullptr},
        ProcessCalls{clear_and_write<32>, nullptr, nullptr}}) {
    for (unsigned n = 1; n <= 300; ++n) {
      SetUp();
      g_rows.clear();
      // Numbers as in a container and round figures: rubbish by a wrong length would pass for plausible.
      for (unsigned i = 0; i < n; ++i) g_rows.push_back({i % 60 + 1, (std::uint64_t{i} % 8 + 1) << 32U});
      const auto list = ask(calls);
      EXPECT_FALSE(list.malformed);
      ASSERT_EQ(list.rows, g_rows) << n << " rows";
    }
  }
}

TEST_F(Processes, ASecondVersionWithShorterRowsIsNotBelieved) {
  g_rows = {{7, std::uint64_t{2} << 32U}, {8, std::uint64_t{3} << 32U}, {9, std::uint64_t{4} << 32U}};
  const auto list = ask({nullptr, write_rows<16>, nullptr});
  EXPECT_TRUE(list.malformed);
  EXPECT_THAT(list.rows, IsEmpty());
}

TEST_F(Processes, RowsOfNoKnownLengthYieldNothing) {
  for (const auto& calls :
       {ProcessCalls{write_rows<40, 32>, nullptr, nullptr}, ProcessCalls{write_rows<40, 16>, nullptr, nullptr},
        ProcessCalls{write_rows<48, 24>, nullptr, nullptr}}) {
    SetUp();
    EXPECT_TRUE(ask(calls).malformed);
  }
}

TEST_F(Processes, ListsThatGrowBetweenCallsAreReadInTheEnd) {
  g_rows.assign(120, {4711, gibibytes(1).count});
  g_grow = 20;
  const auto list = ask({write_rows<32>, nullptr, nullptr});
  EXPECT_EQ(list.result, kSuccess);
  EXPECT_EQ(list.rows.size(), g_rows.size());
}

TEST_F(Processes, AnEmptyListIsNotRubbish) {
  g_rows.clear();
  const auto list = ask({write_rows<32>, nullptr, nullptr});
  EXPECT_FALSE(list.malformed);
  EXPECT_THAT(list.rows, IsEmpty());
}

TEST_F(Processes, ACountWithoutRowsIsRubbish) { EXPECT_TRUE(ask({lie_about_count, nullptr, nullptr}).malformed); }

TEST_F(Processes, RowsThatMakeNoSenseYieldNothing) {
  std::vector<unsigned char> buffer(3 * 32 + 64, kUnwritten);
  unsigned count = 3;
  ASSERT_EQ(write_rows<24>(nullptr, &count, buffer.data()), kSuccess);
  EXPECT_FALSE(parse_process_rows(buffer, 3, kStride535, gibibytes(80).count));
  EXPECT_FALSE(parse_process_rows(buffer, 1000, kStrideV2, gibibytes(80).count));
  EXPECT_FALSE(parse_process_rows(buffer, 3, 0, gibibytes(80).count));
  EXPECT_FALSE(parse_process_rows(buffer, 3, kStrideV2, gibibytes(1).count));  // more than the GPU has
}

}  // namespace
}  // namespace vacate::nvml
