// SPDX-License-Identifier: Apache-2.0
// Tells the service manager how a service's command is doing, by the datagram protocol that sd_notify(3) documents
// ($NOTIFY_SOCKET: a path, or '@' and an abstract name). systemd listens only where the unit has NotifyAccess=exec or
// all (measured on 252). Never says READY=1: that is the service's own word.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace vacate {

class ServiceNotifier {
 public:
  /// Of $NOTIFY_SOCKET. Without it, or where it names no socket that could be written to: one that says nothing.
  [[nodiscard]] static ServiceNotifier from_environment() noexcept;
  /// Of an address as $NOTIFY_SOCKET has it.
  [[nodiscard]] static ServiceNotifier to(std::string_view address) noexcept;

  [[nodiscard]] bool is_heard() const noexcept { return socket_.get() >= 0; }
  /// STATUS=: one line, shown by `systemctl status`. Must be printable(). Does not block; a lost datagram is lost.
  void say_status(std::string_view line) const noexcept;
  /// EXTEND_TIMEOUT_USEC=: the start may take this long from now; has to be repeated within that time.
  void extend_timeout(std::chrono::microseconds from_now) const noexcept;

 private:
  ServiceNotifier() = default;
  void send(std::string_view message) const noexcept;

  UniqueFd socket_;
  std::string address_;  ///< as in sun_path: a path, or a zero byte and a name
};

}  // namespace vacate
