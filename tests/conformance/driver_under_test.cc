// SPDX-License-Identifier: Apache-2.0
// Starts and asks the lab's driver for driver_under_test.h.
#include "driver_under_test.h"

#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "waiting.h"

namespace lab {

using vacate::UniqueFd;

std::string nvml_library(Era era) {
  return std::string(LAB_NVML_DIRECTORY) + "/" + std::string(era_name(era)) + "/libnvidia-ml.so.1";
}

DriverUnderTest::DriverUnderTest() {
  std::string pattern = "/tmp/vacate-conformance-XXXXXX";
  if (mkdtemp(pattern.data()) != nullptr) directory_ = pattern;
}

DriverUnderTest::~DriverUnderTest() {
  hide_from_dev();
  server_.reset();
  rmdir(directory_.c_str());
}

void DriverUnderTest::hide_from_dev() {
  for (const std::string& path : shown_) {
    umount2(path.c_str(), MNT_DETACH);
    unlink(path.c_str());
  }
  shown_.clear();
}

DriverConfig DriverUnderTest::two_gpus() {
  DriverConfig config;
  config.gpus = {GpuConfig{}, GpuConfig{}};
  for (GpuConfig& gpu : config.gpus) gpu.baseline_mib = kBaseline;
  return config;
}

void DriverUnderTest::start(DriverConfig config) {
  server_.reset();  // before the new one is mounted, for what is mounted last is what an unmount takes away
  auto server = DriverServer::start(config, directory_);
  ASSERT_TRUE(server) << server.error().message;
  server_.emplace(std::move(*server));
}

void DriverUnderTest::show_in_dev() {
  for (const char* name : {"nvidiactl", "nvidia0", "nvidia1", "nvidia-uvm"}) {
    const std::string node = directory_ + "/" + name;
    if (access(node.c_str(), F_OK) != 0) continue;
    const std::string path = std::string("/dev/") + name;
    const UniqueFd place(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
    ASSERT_TRUE(place) << path;
    shown_.push_back(path);
    ASSERT_EQ(mount(node.c_str(), path.c_str(), nullptr, MS_BIND, nullptr), 0) << path;
  }
}

UniqueFd DriverUnderTest::open_node(const std::string& name, int flags) const {
  return UniqueFd(open((directory_ + "/" + name).c_str(), flags));
}

UniqueFd DriverUnderTest::make_client(std::uint32_t gpu, std::uint64_t mib) const {
  UniqueFd ctl = open_ctl();
  if (!ctl || allocate(ctl.get(), gpu, mib) != 0) return {};
  return ctl;
}

DriverState DriverUnderTest::state() const {
  auto state = read_driver_state(directory_);
  EXPECT_TRUE(state) << state.error().message;
  return state ? *state : DriverState{};
}

std::uint64_t DriverUnderTest::used_mib(std::uint32_t gpu) const {
  const DriverState now = state();
  return gpu < now.gpus.size() ? now.gpus[gpu].used.mib() : ~std::uint64_t{0};
}

bool DriverUnderTest::comes_to_use(std::uint32_t gpu, std::uint64_t mib) const {
  return eventually([&] { return used_mib(gpu) == mib; });
}

bool DriverUnderTest::comes_to_hold(const Child& child, unsigned long command) const {
  if (!eventually([&] { return child.waits_in_ioctl(command); })) return false;
  // The driver takes requests in order: when it has answered this one, it has the child's.
  return !state().gpus.empty();
}

int allocate(int ctl, std::uint32_t gpu, std::uint64_t mib, ListKind list, std::int64_t release_after_ms,
             std::uint32_t release_steps) {
  const AllocateRequest request{.gpu_index = gpu,
                                .list = list,
                                .bytes = vacate::mebibytes(mib).count,
                                .release_after_ms = release_after_ms,
                                .release_steps = release_steps,
                                .reserved = 0};
  return ioctl(ctl, kAllocate, &request) == 0 ? 0 : errno;
}

int register_file(int file, int ctl) {
  TokenReply reply{};
  if (ioctl(ctl, kToken, &reply) != 0) return errno;
  const RegisterRequest request{reply.token};
  return ioctl(file, kRegister, &request) == 0 ? 0 : errno;
}

std::vector<ProcessRow> listed(int ctl, std::uint32_t gpu, ListKind list) {
  std::vector<ProcessRow> rows;
  ProcessPage page{};
  do {
    page.index = gpu;
    page.list = list;
    page.first = static_cast<std::uint32_t>(rows.size());
    if (ioctl(ctl, kProcesses, &page) != 0) return rows;
    rows.insert(rows.end(), page.rows, page.rows + page.filled);
  } while (page.filled > 0 && rows.size() < page.total);
  return rows;
}

std::vector<std::uint32_t> listed_pids(int ctl, std::uint32_t gpu, ListKind list) {
  std::vector<std::uint32_t> pids;
  for (const ProcessRow& row : listed(ctl, gpu, list)) pids.push_back(row.pid);
  return pids;
}

}  // namespace lab
