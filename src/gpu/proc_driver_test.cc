// SPDX-License-Identifier: Apache-2.0
#include "gpu/proc_driver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <iostream>

#include "base/unique_fd.h"
#include "os/test_mounts.h"

namespace vacate {
namespace {

TEST(ParseGpuInformation, ReadsAnInformationFile) {
  const auto gpu = parse_gpu_information(
      "Model: \t\t NVIDIA H100\nIRQ:   \t\t 42\nGPU UUID: \t GPU-11111111-2222\nVideo BIOS: \t ??.??\nBus Location: \t "
      "0000:65:00.0\nDevice Minor: \t 3\nGPU Excluded:\t No\n");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->name, "NVIDIA H100");
  EXPECT_EQ(gpu->uuid, "GPU-11111111-2222");
  EXPECT_EQ(gpu->pci, "00000000:65:00.0");
  EXPECT_EQ(gpu->minor, Reading<std::uint32_t>(3));
  EXPECT_FALSE(gpu->memory.used);
}

TEST(ParseGpuInformation, ToleratesWhatIsMissing) {
  EXPECT_FALSE(parse_gpu_information(""));
  EXPECT_FALSE(parse_gpu_information("Model: x\nDevice Minor: 1\n"));
  const auto gpu =
      parse_gpu_information("GPU UUID: GPU-????????\nBus Location: 0000:0a:00.0\nDevice Minor: 99999999999\n");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->uuid, "");
  EXPECT_EQ(gpu->pci, "00000000:0A:00.0");
  EXPECT_FALSE(gpu->minor);
}

TEST(NormalisePci, AcceptsEverySpelling) {
  for (const char* text : {"0000:65:00.0", "00000000:65:00.0", "0:65:0.0", "0000:65:00"})
    EXPECT_EQ(normalise_pci(text), "00000000:65:00.0") << text;
  EXPECT_EQ(normalise_pci("0001:ab:1f.7"), "00000001:AB:1F.7");
  for (const char* text :
       {"", "65:00.0", "0000:65:00.8", "0000:165:00.0", "0000:65:20.0", "x:65:00.0", "1:2:3:4", "0000:65:00."})
    EXPECT_FALSE(normalise_pci(text)) << text;
}

TEST(ParseModuleVersion, FindsTheNumber) {
  EXPECT_EQ(parse_module_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC "
                                 "2023\nGCC version: 12.2.0\n"),
            "535.104.05");
  EXPECT_EQ(parse_module_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"),
            "580.95.05");
  EXPECT_EQ(parse_module_version(""), "");
}

Gpu gpu_at(const char* pci, const char* uuid, std::uint32_t minor) {
  Gpu gpu;
  gpu.pci = pci;
  gpu.uuid = uuid;
  gpu.minor = minor;
  return gpu;
}

TEST(CompleteFrom, ALostGpuGetsWhatIsLeftOver) {
  const std::vector<Gpu> known = {gpu_at("00000000:01:00.0", "GPU-a", 5), gpu_at("00000000:02:00.0", "GPU-b", 4)};
  Gpu seen;
  seen.pci = "00000000:01:00.0";
  seen.minor = 5U;
  std::vector<Gpu> gpus = {seen, Gpu{}};
  gpus[1].minor = Unknown::failed;
  complete_from(known, gpus);
  EXPECT_EQ(gpus[0].uuid, "GPU-a");
  EXPECT_EQ(gpus[1].uuid, "GPU-b");
  EXPECT_EQ(gpus[1].minor, Reading<std::uint32_t>(4));
}

TEST(CompleteFrom, DoesNotGuess) {
  const std::vector<Gpu> known = {gpu_at("00000000:01:00.0", "GPU-a", 0), gpu_at("00000000:02:00.0", "GPU-b", 1)};
  std::vector<Gpu> gpus = {Gpu{}};
  complete_from(known, gpus);
  EXPECT_EQ(gpus[0].uuid, "");
}

TEST(ParseGpuInformation, AnExcludedGpuIsNone) {
  EXPECT_TRUE(parse_gpu_information("Bus Location: 0000:0a:00.0\nGPU Excluded:\t No\n"));
  EXPECT_FALSE(parse_gpu_information("Bus Location: 0000:0a:00.0\nGPU Excluded:\t Yes\n"));
}

/// Runs `check` where /proc/driver is an empty folder of its own.
void in_empty_proc_driver(const std::function<void()>& check) {
  testing::in_mount_namespace([] { return mount("tmpfs", "/proc/driver", "tmpfs", 0, nullptr) == 0; }, check);
}

void write_file(const std::string& path, std::string_view text) {
  for (auto slash = path.find('/', 13); slash != std::string::npos; slash = path.find('/', slash + 1))
    (void)mkdir(path.substr(0, slash).c_str(), 0755);
  const UniqueFd fd(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  ASSERT_TRUE(fd);
  ASSERT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(ReadProcDriver, NoModuleIsAbsent) {
  in_empty_proc_driver([] {
    const auto driver = read_proc_driver();
    EXPECT_FALSE(driver.present);
    EXPECT_TRUE(driver.gpus.empty());
  });
}

TEST(ReadProcDriver, TheSandboxsTreeHasNoGpus) {
  in_empty_proc_driver([] {
    write_file("/proc/driver/nvidia/params", "Mobile: 4294967295\n");  // all that gVisor shows (facts.md 2.5)
    const auto driver = read_proc_driver();
    EXPECT_TRUE(driver.present);
    EXPECT_EQ(driver.version, "");
    EXPECT_TRUE(driver.gpus.empty());
  });
}

TEST(ReadProcDriver, NumbersByAddressAndKnowsUnifiedMemory) {
  in_empty_proc_driver([] {
    write_file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  x\n");
    write_file("/proc/driver/nvidia/gpus/0009:01:00.0/information",
               "Model: GH200\nGPU UUID: GPU-b\nBus Location: 0009:01:00.0\nDevice Minor: 0\n");
    write_file("/proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node: 1\n");
    write_file("/proc/driver/nvidia/gpus/0000:65:00.0/information",
               "Model: H100\nBus Location: 0000:65:00.0\nDevice Minor: 1\n");
    write_file("/proc/driver/nvidia/gpus/0000:66:00.0/registry", "");
    const auto driver = read_proc_driver();
    EXPECT_EQ(driver.version, "580.95.05");
    ASSERT_EQ(driver.gpus.size(), 2U);
    EXPECT_EQ(driver.gpus[0].pci, "00000000:65:00.0");
    EXPECT_EQ(driver.gpus[0].uuid, "");  // before its first use
    EXPECT_EQ(driver.gpus[0].minor, Reading<std::uint32_t>(1));
    EXPECT_FALSE(driver.gpus[0].unified_memory);
    EXPECT_EQ(driver.gpus[1].index, 1U);
    EXPECT_EQ(driver.gpus[1].name, "GH200");
    EXPECT_TRUE(driver.gpus[1].unified_memory);
    std::vector<Gpu> from_library(1);
    from_library[0].pci = "00000009:01:00.0";
    complete_from(driver.gpus, from_library);
    EXPECT_TRUE(from_library[0].unified_memory);
  });
}

}  // namespace
}  // namespace vacate
