// SPDX-License-Identifier: Apache-2.0
// The machine's part of the host's cgroup v2 tree: a directory made before the machine and removed after it. Nothing
// but that directory is ever touched.
#pragma once

#include <string>

#include "base/result.h"

namespace lab {

class MachineCgroup {
 public:
  /// Below the caller's own cgroup. unsupported: no cgroup v2 tree, or no right to make a directory there; says which.
  [[nodiscard]] static vacate::Result<MachineCgroup> create();

  MachineCgroup(MachineCgroup&& other) noexcept;
  MachineCgroup& operator=(MachineCgroup&&) = delete;
  MachineCgroup(const MachineCgroup&) = delete;
  MachineCgroup& operator=(const MachineCgroup&) = delete;
  /// Waits up to 2 s for its last process to have gone, and removes it with all below.
  ~MachineCgroup();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  explicit MachineCgroup(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace lab
