// SPDX-License-Identifier: Apache-2.0
// A stand-in for the system's message bus with a service manager on it, at the usual place in the machine: enough of
// D-Bus and of org.freedesktop.systemd1 to ask about units and to stop one, as systemctl does. It routes nothing:
// whoever connects talks to the manager.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "lab/machine/units.h"

namespace lab {

class UnitBus {
 public:
  /// Listens in the calling process's root and serves in a thread until it is destroyed.
  [[nodiscard]] static vacate::Result<std::unique_ptr<UnitBus>> start(Units& units);

  UnitBus(const UnitBus&) = delete;
  UnitBus& operator=(const UnitBus&) = delete;
  ~UnitBus();

 private:
  UnitBus(Units& units, vacate::UniqueFd listener, vacate::UniqueFd wake);
  void serve();

  Units& units_;
  vacate::UniqueFd listener_;
  vacate::UniqueFd wake_;
  std::thread server_;
};

}  // namespace lab
