// SPDX-License-Identifier: Apache-2.0
// A Debian container with its own systemd, booted by systemd-nspawn on a machine of the lab, with the machine's device
// nodes, vendor library and vacate bound in. The tree it starts from is not changed: what it writes goes to memory.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/machine/machine.h"

namespace lab {

/// What came of one command: "exit", "out", "err", "seconds".
using Finding = nlohmann::json;

class Container {
 public:
  /// Lays the container's root over `tree`; `server` is shown as /usr/local/bin/gpu-server. Files may be written to
  /// root() until it boots.
  [[nodiscard]] static vacate::Result<Container> prepare(Machine& machine, const std::string& tree,
                                                         const std::string& server, unsigned gpus);

  [[nodiscard]] const std::string& root() const noexcept { return root_; }

  /// Returns when its systemd has started everything. timed_out: it did not within a minute.
  [[nodiscard]] vacate::Result<void> boot();

  /// In the container's namespaces, beside its systemd.
  Finding run(const std::vector<std::string>& argv);
  /// As a service of the container's systemd, which is where an administrator's commands have their place.
  Finding run_as_service(const std::vector<std::string>& argv);
  /// One property of a unit, as systemctl shows it.
  std::string property(const std::string& unit, const std::string& name);
  /// Until the property has that value; the last one seen.
  std::string wait_for(const std::string& unit, const std::string& name, const std::string& value);

  /// Until the driver says that every GPU has `mib` in use; what it said last.
  std::vector<std::uint64_t> wait_for_use(std::uint64_t mib);

  /// Switches it off and returns what it had to say.
  Finding power_off();

 private:
  Container(Machine& machine, std::string root, unsigned gpus)
      : machine_(&machine), root_(std::move(root)), gpus_(gpus) {}
  [[nodiscard]] Finding finish(const std::vector<std::string>& argv);

  Machine* machine_;
  std::string root_;
  unsigned gpus_;
  int id_ = -1;
  pid_t leader_ = 0;
};

}  // namespace lab
