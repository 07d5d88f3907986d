// SPDX-License-Identifier: Apache-2.0
// What an era of the library exports and how wide the entries of its process lists are: facts.md 1.6.
#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>

#include "child.h"
#include "driver_under_test.h"
#include "nvml.h"

namespace lab {
namespace {

using nvml::Device;
using nvml::ProcessDetailList;
using nvml::ProcessInfo32;
using nvml::Return;
using vacate::UniqueFd;

struct EraFacts {
  Era era;
  std::size_t stride_v3;  ///< 0: no such symbol
  bool memory_v2;
  bool conf_compute;
  bool detail_list;
};

class Eras : public DriverUnderTest, public ::testing::WithParamInterface<EraFacts> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.loaded()) << dlerror();
    DriverConfig config = two_gpus();
    config.era = GetParam().era;
    start(config);
    show_in_dev();
    ASSERT_EQ(library_.call("nvmlInit_v2"), Return::success);
  }
  void TearDown() override {
    if (library_.loaded()) static_cast<void>(library_.call("nvmlShutdown"));
  }

  /// Bytes an entry takes, seen as facts.md 1.6 advises: by the last byte that two entries change.
  std::size_t stride_of(const char* symbol) {
    constexpr unsigned char kUntouched = 0xA5;
    std::vector<unsigned char> buffer(2 * 32 + 64, kUntouched);
    unsigned count = 2;
    EXPECT_EQ(library_.call(symbol, library_.device(0), &count, static_cast<void*>(buffer.data())), Return::success);
    EXPECT_EQ(count, 2U);
    const auto last =
        std::find_if(buffer.rbegin(), buffer.rend(), [](unsigned char byte) { return byte != kUntouched; });
    return static_cast<std::size_t>(buffer.rend() - last) / 2;
  }

  Nvml library_{nvml_library(GetParam().era)};
};

TEST_P(Eras, ExportWhatTheyDid) {
  EXPECT_EQ(library_.has("nvmlDeviceGetComputeRunningProcesses_v3"), GetParam().stride_v3 != 0);
  EXPECT_EQ(library_.has("nvmlDeviceGetGraphicsRunningProcesses_v3"), GetParam().stride_v3 != 0);
  EXPECT_EQ(library_.has("nvmlDeviceGetMPSComputeRunningProcesses_v3"), GetParam().stride_v3 != 0);
  EXPECT_EQ(library_.has("nvmlDeviceGetMemoryInfo_v2"), GetParam().memory_v2);
  EXPECT_EQ(library_.has("nvmlDeviceGetConfComputeMemSizeInfo"), GetParam().conf_compute);
  EXPECT_EQ(library_.has("nvmlDeviceGetRunningProcessDetailList"), GetParam().detail_list);
  EXPECT_FALSE(library_.has("nvmlDeviceGetRunningProcessDetailList_v1"));
}

TEST_P(Eras, EntriesAreAsWideAsTheyWere) {
  const UniqueFd first = make_client(0, 10);
  Child second([&](int) { static_cast<void>(make_client(0, 20).release()); });
  EXPECT_EQ(stride_of("nvmlDeviceGetComputeRunningProcesses"), 16U);
  EXPECT_EQ(stride_of("nvmlDeviceGetComputeRunningProcesses_v2"), 24U);
  if (GetParam().stride_v3 != 0) {
    EXPECT_EQ(stride_of("nvmlDeviceGetComputeRunningProcesses_v3"), GetParam().stride_v3);
  }
}

TEST_P(Eras, DetailListHasItsOwnProtocol) {
  if (!GetParam().detail_list) return;  // ExportWhatTheyDid has checked that it is not there
  const UniqueFd ctl = make_client(0, 10);
  const char* const symbol = "nvmlDeviceGetRunningProcessDetailList";
  ProcessDetailList list{};
  EXPECT_EQ(library_.call(symbol, library_.device(0), &list), Return::argument_version_mismatch);
  list.version = nvml::version_word<ProcessDetailList>(1);
  EXPECT_EQ(library_.call(symbol, library_.device(0), &list), Return::insufficient_size);
  ASSERT_EQ(list.count, 1U);
  ProcessInfo32 row{};
  list.entries = &row;
  EXPECT_EQ(library_.call(symbol, library_.device(0), &list), Return::success);
  EXPECT_EQ(row.pid, static_cast<unsigned>(getpid()));
  list.mode = 1;
  EXPECT_EQ(library_.call(symbol, library_.device(0), &list), Return::success);
  EXPECT_EQ(list.count, 0U) << "no graphics client";
}

constexpr EraFacts kEras[] = {
    {Era::e470, 0, false, false, false},  {Era::e510, 24, true, false, false},    {Era::e535_86, 32, true, true, false},
    {Era::e535_98, 0, true, true, false}, {Era::e535_104, 32, true, true, false}, {Era::e550, 24, true, true, true},
    {Era::e580, 24, true, true, true},
};

INSTANTIATE_TEST_SUITE_P(, Eras, ::testing::ValuesIn(kEras), [](const auto& about) {
  std::string name(era_name(about.param.era));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace lab
