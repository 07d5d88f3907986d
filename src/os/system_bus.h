// SPDX-License-Identifier: Apache-2.0
// The system's message bus (D-Bus) through libsystemd, found by dlopen and never linked: a start of vacate that asks
// nobody pays nothing, and a machine without the library lacks an answer and no more. Any call can block for ever and
// the library reads its own variables: to be used in an expendable child only, which has cleared its environment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vacate {

/// Where the bus listens, whatever DBUS_SYSTEM_BUS_ADDRESS says (the D-Bus specification's path with /run for
/// /var/run).
inline constexpr const char* kSystemBusSocket = "/run/dbus/system_bus_socket";

/// One object of one peer on the bus, seen through one of its interfaces.
struct BusObject {
  std::string peer;       ///< "org.freedesktop.systemd1"
  std::string path;       ///< "/org/freedesktop/systemd1"
  std::string interface;  ///< "org.freedesktop.systemd1.Manager"
};

class SystemBus {
 public:
  /// Connects to the bus that listens on `socket`. unsupported: no library; gone: nobody listens; denied: not for us.
  [[nodiscard]] static Result<SystemBus> connect(const std::string& socket);

  SystemBus(SystemBus&&) noexcept;
  SystemBus& operator=(SystemBus&&) noexcept;
  ~SystemBus();

  /// Calls `method` with one string and returns the object path that it answers with.
  [[nodiscard]] Result<std::string> call_for_path(const BusObject& object, const char* method,
                                                  const std::string& argument);
  /// Calls `method`, which takes nothing, for its effect: done when the answer is there.
  [[nodiscard]] Result<void> call(const BusObject& object, const char* method);
  /// The same with two strings.
  [[nodiscard]] Result<std::string> call_for_path(const BusObject& object, const char* method, const std::string& first,
                                                  const std::string& second);
  /// Asks the bus for the signals that fit `match`, in the syntax of the D-Bus specification.
  [[nodiscard]] Result<void> add_match(const std::string& match);
  /// Waits for the next signal `member` of `interface` and returns its first values, as `types` gives them ("uoss"),
  /// numbers in decimal. Other messages are dropped. Blocks until there is one or the connection ends.
  [[nodiscard]] Result<std::vector<std::string>> await_signal(const char* interface, const char* member,
                                                              std::string_view types);
  [[nodiscard]] Result<std::string> read_text(const BusObject& object, const char* property);
  [[nodiscard]] Result<std::uint32_t> read_number(const BusObject& object, const char* property);
  /// Of 64 bits, as times are: microseconds.
  [[nodiscard]] Result<std::uint64_t> read_time(const BusObject& object, const char* property);

  /// Who made the socket: its pid in the caller's namespace, 0 if it is in none of those, and its user.
  struct Listener {
    pid_t pid = 0;
    uid_t uid = 0;
  };
  [[nodiscard]] Result<Listener> listener() const;

 private:
  template <class Number>
  [[nodiscard]] Result<Number> read_basic(const BusObject& object, const char* property, const char* type);

  struct Connection;
  explicit SystemBus(std::unique_ptr<Connection> connection) noexcept;
  std::unique_ptr<Connection> connection_;
};

}  // namespace vacate
