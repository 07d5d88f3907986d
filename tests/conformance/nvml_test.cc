// SPDX-License-Identifier: Apache-2.0
// The library's manners with its newest era: facts.md 1.1-1.5, 1.9. What differs between eras is in nvml_eras_test.cc.
#include "nvml.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>

#include "child.h"
#include "driver_under_test.h"
#include "waiting.h"

namespace lab {
namespace {

using nvml::Device;
using nvml::FieldValue;
using nvml::Memory;
using nvml::MemoryV2;
using nvml::PciInfo;
using nvml::ProcessInfo24;
using nvml::Return;
using vacate::mebibytes;
using vacate::UniqueFd;

constexpr const char* kProcesses3 = "nvmlDeviceGetComputeRunningProcesses_v3";

class Library : public DriverUnderTest {
 protected:
  void begin(DriverConfig config = two_gpus()) {
    ASSERT_TRUE(library_.loaded()) << dlerror();
    start(std::move(config));
    show_in_dev();
  }
  void begin_initialised(DriverConfig config = two_gpus()) {
    begin(std::move(config));
    ASSERT_EQ(library_.call("nvmlInit_v2"), Return::success);
  }
  void TearDown() override {
    while (library_.loaded() && library_.call("nvmlShutdown") == Return::success) {
    }
  }

  Nvml library_{nvml_library(Era::e580)};
};

/// How many descriptors of a process, by default this one, are files of the driver.
int open_device_files(pid_t pid = getpid()) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("/dev/nvidia")) ++count;
  }
  return count;
}

TEST_F(Library, IsUninitializedBeforeInitAndAfterShutdown) {
  begin();
  unsigned count = 0;
  EXPECT_EQ(library_.call("nvmlDeviceGetCount_v2", &count), Return::uninitialized);
  EXPECT_EQ(library_.call("nvmlShutdown"), Return::uninitialized);
  ASSERT_EQ(library_.call("nvmlInit_v2"), Return::success);
  ASSERT_EQ(library_.call("nvmlInitWithFlags", 0U), Return::success);
  EXPECT_EQ(library_.call("nvmlDeviceGetCount_v2", &count), Return::success);
  EXPECT_EQ(count, 2U);
  Device* device = library_.device(0);
  EXPECT_EQ(library_.call("nvmlShutdown"), Return::success);
  EXPECT_EQ(library_.call("nvmlDeviceGetCount_v2", &count), Return::success) << "init is counted";
  EXPECT_EQ(library_.call("nvmlShutdown"), Return::success);
  Memory memory{};
  EXPECT_EQ(library_.call("nvmlDeviceGetCount_v2", &count), Return::uninitialized);
  EXPECT_EQ(library_.call("nvmlDeviceGetMemoryInfo", device, &memory), Return::uninitialized);
}

TEST_F(Library, HoldsDeviceFilesOnlyBetweenInitAndShutdown) {
  begin();
  EXPECT_EQ(open_device_files(), 0);
  ASSERT_EQ(library_.call("nvmlInit_v2"), Return::success);
  EXPECT_EQ(open_device_files(), 1) << "the control file";
  ASSERT_NE(library_.device(0), nullptr);
  ASSERT_NE(library_.device(0), nullptr);
  EXPECT_EQ(open_device_files(), 2) << "a handle attaches its GPU, once";
  Child exec([](int) { become_another_program(); });
  ASSERT_TRUE(eventually([&] { return exec.status("Name") == "cat"; }));
  EXPECT_EQ(open_device_files(exec.pid()), 0) << "they are close-on-exec";
  ASSERT_EQ(library_.call("nvmlShutdown"), Return::success);
  EXPECT_EQ(open_device_files(), 0);
}

TEST_F(Library, NamesTheDevices) {
  DriverConfig config = two_gpus();
  config.gpus[1].minor = 7;
  config.gpus[1].pci = "00000001:C1:00.0";
  config.gpus[1].uuid = "GPU-11111111-2222-3333-4444-555555555555";
  config.gpus[1].name = "NVIDIA Test";
  begin(config);
  ASSERT_EQ(library_.call("nvmlInitWithFlags", 2U), Return::success);  // NO_ATTACH: nvidia7 is not in /dev
  Device* device = library_.device(1);
  ASSERT_NE(device, nullptr);
  std::array<char, 96> text{};
  EXPECT_EQ(library_.call("nvmlDeviceGetUUID", device, text.data(), 96U), Return::success);
  EXPECT_STREQ(text.data(), "GPU-11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(library_.call("nvmlDeviceGetUUID", device, text.data(), 10U), Return::insufficient_size);
  EXPECT_EQ(library_.call("nvmlDeviceGetName", device, text.data(), 96U), Return::success);
  EXPECT_STREQ(text.data(), "NVIDIA Test");
  unsigned number = 0;
  EXPECT_EQ(library_.call("nvmlDeviceGetMinorNumber", device, &number), Return::success);
  EXPECT_EQ(number, 7U);
  EXPECT_EQ(library_.call("nvmlDeviceGetIndex", device, &number), Return::success);
  EXPECT_EQ(number, 1U);
  PciInfo pci{};
  EXPECT_EQ(library_.call("nvmlDeviceGetPciInfo_v3", device, &pci), Return::success);
  EXPECT_STREQ(pci.bus_id, "00000001:C1:00.0");
  EXPECT_STREQ(pci.bus_id_legacy, "0001:C1:00.0");
  EXPECT_EQ(pci.domain, 1U);
  EXPECT_EQ(pci.bus, 0xC1U);
}

TEST_F(Library, FindsDevicesByUuidAndBusId) {
  begin_initialised();
  std::array<char, 96> uuid{};
  ASSERT_EQ(library_.call("nvmlDeviceGetUUID", library_.device(1), uuid.data(), 96U), Return::success);
  PciInfo pci{};
  ASSERT_EQ(library_.call("nvmlDeviceGetPciInfo_v3", library_.device(1), &pci), Return::success);
  const char* const by_uuid = uuid.data();
  const char* const by_bus = pci.bus_id;
  Device* found = nullptr;
  EXPECT_EQ(library_.call("nvmlDeviceGetHandleByUUID", by_uuid, &found), Return::success);
  EXPECT_EQ(found, library_.device(1));
  found = nullptr;
  EXPECT_EQ(library_.call("nvmlDeviceGetHandleByPciBusId_v2", by_bus, &found), Return::success);
  EXPECT_EQ(found, library_.device(1));
  const char* const nonsense = "GPU-nonsense";
  EXPECT_EQ(library_.call("nvmlDeviceGetHandleByUUID", nonsense, &found), Return::not_found);
  EXPECT_EQ(library_.call("nvmlDeviceGetHandleByIndex_v2", 2U, &found), Return::invalid_argument);
}

TEST_F(Library, MemoryInBothConventions) {
  DriverConfig config = two_gpus();
  config.gpus[0].reserved_mib = 500;
  config.gpus[0].residue_mib = 6;
  begin_initialised(config);
  const UniqueFd ctl = make_client(0, 1000);
  Memory v1{};
  ASSERT_EQ(library_.call("nvmlDeviceGetMemoryInfo", library_.device(0), &v1), Return::success);
  EXPECT_EQ(v1.total, mebibytes(97887).count);
  EXPECT_EQ(v1.used, mebibytes(1510).count) << "reserved is part of it";
  EXPECT_EQ(v1.free, v1.total - v1.used);
  MemoryV2 v2{};
  v2.version = 2;
  EXPECT_EQ(library_.call("nvmlDeviceGetMemoryInfo_v2", library_.device(0), &v2), Return::argument_version_mismatch)
      << "the packed word, not the plain number";
  v2.version = nvml::version_word<MemoryV2>(2);
  ASSERT_EQ(library_.call("nvmlDeviceGetMemoryInfo_v2", library_.device(0), &v2), Return::success);
  EXPECT_EQ(v2.used, mebibytes(1010).count);
  EXPECT_EQ(v2.reserved, mebibytes(500).count);
  EXPECT_EQ(v2.total, v2.reserved + v2.free + v2.used);
}

TEST_F(Library, ListsInTwoPhases) {
  begin_initialised();
  Device* device = library_.device(0);
  unsigned count = 0;
  ProcessInfo24* const nowhere = nullptr;
  EXPECT_EQ(library_.call(kProcesses3, device, &count, nowhere), Return::success) << "nobody there";
  const UniqueFd ctl = open_ctl();
  ASSERT_EQ(allocate(ctl.get(), 0, 100), 0);
  Child second([&](int) { static_cast<void>(make_client(0, 200).release()); });
  count = 0;
  EXPECT_EQ(library_.call(kProcesses3, device, &count, nowhere), Return::insufficient_size);
  EXPECT_EQ(count, 2U);
  std::array<ProcessInfo24, 4> rows{};
  count = 1;
  EXPECT_EQ(library_.call(kProcesses3, device, &count, rows.data()), Return::insufficient_size);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(rows[0].pid, 0U) << "too small a buffer gets no entry";
  count = 4;
  ASSERT_EQ(library_.call(kProcesses3, device, &count, rows.data()), Return::success);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(rows[0].pid, static_cast<unsigned>(getpid()));
  EXPECT_EQ(rows[0].bytes, mebibytes(100).count);
  EXPECT_EQ(rows[0].gpu_instance, nvml::kNoInstance);
  EXPECT_EQ(rows[1].pid, static_cast<unsigned>(second.pid()));
  EXPECT_EQ(rows[1].bytes, mebibytes(200).count);
  EXPECT_EQ(library_.call(kProcesses3, device, static_cast<unsigned*>(nullptr), rows.data()), Return::invalid_argument);
}

TEST_F(Library, ItsOwnFilesMakeNoClient) {
  begin_initialised();
  ASSERT_NE(library_.device(0), nullptr);
  EXPECT_TRUE(state().clients.empty());
  EXPECT_EQ(used_mib(0), kBaseline);
}

TEST_F(Library, TruncatesAt950) {
  DriverConfig config = two_gpus();
  for (unsigned pid = 1; pid <= 1000; ++pid) config.garbage_pids.push_back(pid);
  begin_initialised(config);
  std::vector<ProcessInfo24> rows(1000);
  unsigned count = 1000;
  ASSERT_EQ(library_.call(kProcesses3, library_.device(0), &count, rows.data()), Return::success);
  EXPECT_EQ(count, 950U);
  EXPECT_EQ(rows[949].pid, 950U);
}

TEST_F(Library, QueriesMayBeUnsupportedOrDenied) {
  DriverConfig config = two_gpus();
  config.gpus[0].memory_query = QueryState::unsupported;
  config.gpus[0].process_query = QueryState::unsupported;
  config.gpus[1].memory_query = QueryState::denied;
  config.gpus[1].process_query = QueryState::denied;
  begin_initialised(config);
  Memory memory{};
  unsigned count = 0;
  ProcessInfo24* const nowhere = nullptr;
  for (const auto& [index, expected] : {std::pair{0U, Return::not_supported}, {1U, Return::no_permission}}) {
    EXPECT_EQ(library_.call("nvmlDeviceGetMemoryInfo", library_.device(index), &memory), expected);
    EXPECT_EQ(library_.call(kProcesses3, library_.device(index), &count, nowhere), expected);
  }
}

TEST_F(Library, ReportsHealth) {
  DriverConfig config = two_gpus();
  config.gpus[0].recovery = Recovery::gpu_reset;
  config.gpus[1].state = GpuState::reset_required;
  begin_initialised(config);
  std::array<FieldValue, 2> values{};
  values[0].field = 230;
  values[1].field = 1;
  ASSERT_EQ(library_.call("nvmlDeviceGetFieldValues", library_.device(0), 2, values.data()), Return::success);
  EXPECT_EQ(values[0].result, Return::success);
  EXPECT_EQ(values[0].value, 1U);
  EXPECT_EQ(values[1].result, Return::not_supported);
  Memory memory{};
  EXPECT_EQ(library_.call("nvmlDeviceGetMemoryInfo", library_.device(1), &memory), Return::reset_required);
  Device* before = library_.device(0);
  ASSERT_TRUE(set_gpu_state(directory(), 0, GpuState::lost));
  EXPECT_EQ(library_.call("nvmlDeviceGetMemoryInfo", before, &memory), Return::gpu_is_lost);
  EXPECT_EQ(library_.call("nvmlDeviceGetHandleByIndex_v2", 0U, &before), Return::gpu_is_lost);
}

TEST_F(Library, InitTellsWhyThereIsNoDriver) {
  ASSERT_TRUE(library_.loaded()) << dlerror();
  EXPECT_EQ(library_.call("nvmlInit_v2"), Return::driver_not_loaded) << "no /dev/nvidiactl";
  std::array<char, 80> version{};
  EXPECT_EQ(library_.call("nvmlSystemGetNVMLVersion", version.data(), 80U), Return::success) << "works without init";
  EXPECT_EQ(library_.error_text(Return::driver_not_loaded), "Driver Not Loaded");
  EXPECT_EQ(library_.error_text(static_cast<Return>(12345)), "Unknown Error");
}

TEST_F(Library, NeedsNoRights) {
  begin();
  Child child([&](int say) {
    if (setuid(65534) != 0) _exit(1);
    const auto result = std::to_string(static_cast<int>(library_.call("nvmlInit_v2")));
    static_cast<void>(!write(say, result.data(), result.size()));
  });
  EXPECT_EQ(child.said(), "0") << "everybody may open the nodes";
}

TEST_F(Library, ModesAnswerAsTheyShould) {
  ASSERT_TRUE(library_.loaded()) << dlerror();
  for (const auto& [mode, expected] : {std::pair{NvmlMode::not_loaded, Return::driver_not_loaded},
                                       {NvmlMode::mismatch, Return::mismatch},
                                       {NvmlMode::denied, Return::no_permission}}) {
    DriverConfig config = two_gpus();
    config.nvml = mode;
    start(config);
    show_in_dev();
    EXPECT_EQ(library_.call("nvmlInit_v2"), expected);
    EXPECT_EQ(open_device_files(), 0);
    hide_from_dev();
  }
}

TEST_F(Library, HangCanBeKilled) {
  DriverConfig config = two_gpus();
  config.nvml = NvmlMode::hang;
  begin(config);
  Child child([&](int say) {
    close(say);
    static_cast<void>(library_.call("nvmlInit_v2"));
    _exit(0);
  });
  EXPECT_FALSE(child.ends_within(100));
  child.signal(SIGKILL);
  EXPECT_TRUE(child.ends_within(5000));
}

TEST_F(Library, StuckCannotBeKilled) {
  DriverConfig config = two_gpus();
  config.nvml = NvmlMode::stuck;
  begin(config);
  Child child([&](int say) {
    close(say);
    static_cast<void>(library_.call("nvmlInit_v2"));
    _exit(0);
  });
  ASSERT_TRUE(comes_to_hold(child, kNeverAnswered));
  child.signal(SIGKILL);
  EXPECT_FALSE(child.ends_within(200));
  server().stop();
  EXPECT_TRUE(child.ends_within(5000));
}

TEST_F(Library, CrashCrashes) {
  DriverConfig config = two_gpus();
  config.nvml = NvmlMode::crash;
  begin(config);
  EXPECT_EXIT(static_cast<void>(library_.call("nvmlInit_v2")), ::testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace lab
