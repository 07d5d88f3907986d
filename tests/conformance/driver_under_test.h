// SPDX-License-Identifier: Apache-2.0
// The driver a conformance test talks to. All that is particular to the lab's driver (how a client is made, how the
// truth about memory is read) is in this class, so that tests which use nothing else of the lab can run on a real
// driver.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "child.h"
#include "lab/driver/driver.h"

namespace lab {

/// Path of the library of an era.
[[nodiscard]] std::string nvml_library(Era era);

class DriverUnderTest : public ::testing::Test {
 protected:
  DriverUnderTest();
  ~DriverUnderTest() override;

  /// Starts the driver; by default one of two GPUs. Before anything else in a test.
  void start(DriverConfig config = two_gpus());
  /// Shows the nodes in this test program's own /dev as well, for the library.
  void show_in_dev();
  void hide_from_dev();
  [[nodiscard]] static DriverConfig two_gpus();

  [[nodiscard]] vacate::UniqueFd open_node(const std::string& name, int flags = kReadWrite) const;
  [[nodiscard]] vacate::UniqueFd open_ctl() const { return open_node("nvidiactl"); }
  /// A control file whose client, charged to the calling process, has `mib` on `gpu`.
  [[nodiscard]] vacate::UniqueFd make_client(std::uint32_t gpu, std::uint64_t mib) const;

  [[nodiscard]] std::uint64_t used_mib(std::uint32_t gpu) const;
  /// Whether `gpu` comes to have exactly `mib` in use within some seconds.
  [[nodiscard]] bool comes_to_use(std::uint32_t gpu, std::uint64_t mib) const;
  [[nodiscard]] DriverState state() const;
  /// Whether the driver comes to have the ioctl `command` of `child` in hand, unanswered.
  [[nodiscard]] bool comes_to_hold(const Child& child, unsigned long command) const;

  [[nodiscard]] DriverServer& server() { return *server_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }

  static constexpr std::uint64_t kBaseline = 4;

 private:
  static constexpr int kReadWrite = O_RDWR | O_CLOEXEC;

  std::string directory_;
  std::optional<DriverServer> server_;
  std::vector<std::string> shown_;
};

/// Adds to the client of `ctl` on `gpu`; errno, 0 for success.
[[nodiscard]] int allocate(int ctl, std::uint32_t gpu, std::uint64_t mib, ListKind list = ListKind::compute,
                           std::int64_t release_after_ms = 0, std::uint32_t release_steps = 1);
/// Makes `file` hold a reference on the control file `ctl`; errno, 0 for success.
[[nodiscard]] int register_file(int file, int ctl);
/// A list as the calling process may see it.
[[nodiscard]] std::vector<ProcessRow> listed(int ctl, std::uint32_t gpu, ListKind list = ListKind::compute);
[[nodiscard]] std::vector<std::uint32_t> listed_pids(int ctl, std::uint32_t gpu, ListKind list = ListKind::compute);

}  // namespace lab
