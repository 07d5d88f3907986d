// SPDX-License-Identifier: Apache-2.0
// Prototypes are our own, of calls whose ABI has not changed since systemd 221: the shared library of every
// distribution of the last ten years has them all.
#include "os/system_bus.h"

#include <dlfcn.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "os/systemd_library.h"

namespace vacate {
namespace {

constexpr std::size_t kLongestText = 4096;

// Opaque to everybody but the library.
struct Bus;
struct Message;

/// As the library lays it out.
struct BusError {
  const char* name = nullptr;
  const char* message = nullptr;
  int need_free = 0;
};

using NewBus = int (*)(Bus** bus);
using SetAddress = int (*)(Bus* bus, const char* address);
using SetBusClient = int (*)(Bus* bus, int on);
using Start = int (*)(Bus* bus);
using GetFd = int (*)(Bus* bus);
using CloseUnref = Bus* (*)(Bus* bus);
using CallMethod = int (*)(Bus* bus, const char* peer, const char* path, const char* interface, const char* member,
                           BusError* error, Message** reply, const char* types, ...);
using GetProperty = int (*)(Bus* bus, const char* peer, const char* path, const char* interface, const char* member,
                            BusError* error, Message** reply, const char* type);
using ReadBasic = int (*)(Message* message, char type, void* value);
using UnrefMessage = Message* (*)(Message* message);
using FreeError = void (*)(BusError* error);

using Process = int (*)(Bus* bus, Message** message);
using Wait = int (*)(Bus* bus, std::uint64_t microseconds);
using IsSignal = int (*)(Message* message, const char* interface, const char* member);

struct BusLibrary {
  NewBus new_bus = nullptr;
  SetAddress set_address = nullptr;
  SetBusClient set_bus_client = nullptr;
  Start start = nullptr;
  GetFd get_fd = nullptr;
  CloseUnref close = nullptr;
  CallMethod call_method = nullptr;
  GetProperty get_property = nullptr;
  ReadBasic read_basic = nullptr;
  Process process = nullptr;
  Wait wait = nullptr;
  IsSignal is_signal = nullptr;
  UnrefMessage unref_message = nullptr;
  FreeError free_error = nullptr;
};

Result<BusLibrary> load() {
  void* library = dlopen(kSystemdLibrary, RTLD_LAZY | RTLD_LOCAL);  // kept until the child ends
  if (library == nullptr) return Error{ErrorCode::unsupported, std::string(kSystemdLibrary) + " is not there"};
  BusLibrary calls;
  const bool complete =
      find_call(library, calls.new_bus, "sd_bus_new") && find_call(library, calls.set_address, "sd_bus_set_address") &&
      find_call(library, calls.set_bus_client, "sd_bus_set_bus_client") &&
      find_call(library, calls.start, "sd_bus_start") && find_call(library, calls.get_fd, "sd_bus_get_fd") &&
      find_call(library, calls.close, "sd_bus_flush_close_unref") &&
      find_call(library, calls.call_method, "sd_bus_call_method") &&
      find_call(library, calls.get_property, "sd_bus_get_property") &&
      find_call(library, calls.read_basic, "sd_bus_message_read_basic") &&
      find_call(library, calls.process, "sd_bus_process") && find_call(library, calls.wait, "sd_bus_wait") &&
      find_call(library, calls.is_signal, "sd_bus_message_is_signal") &&
      find_call(library, calls.unref_message, "sd_bus_message_unref") &&
      find_call(library, calls.free_error, "sd_bus_error_free");
  if (!complete) return Error{ErrorCode::unsupported, std::string(kSystemdLibrary) + " lacks a call"};
  return calls;
}

}  // namespace

struct SystemBus::Connection {
  BusLibrary calls;
  Bus* bus = nullptr;

  explicit Connection(const BusLibrary& library) : calls(library) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (bus != nullptr) calls.close(bus);
  }

  /// What a call answered with, freed with this.
  struct Reply {
    const BusLibrary& calls;
    Message* message = nullptr;
    BusError error;
    explicit Reply(const BusLibrary& library) : calls(library) {}
    Reply(const Reply&) = delete;
    Reply& operator=(const Reply&) = delete;
    ~Reply() {
      if (message != nullptr) calls.unref_message(message);
      calls.free_error(&error);
    }
    /// The library's negative errno as an Error, with the peer's own name for it.
    [[nodiscard]] Error failure(int code, const char* what) const {
      auto problem = system_error(what, -code);
      if (error.name != nullptr) problem.message += " (" + std::string(error.name) + ")";
      return problem;
    }
    /// The one string-like value of the reply.
    [[nodiscard]] Result<std::string> text(char type, const char* what) const {
      const char* value = nullptr;
      const int code = calls.read_basic(message, type, &value);
      if (code < 0) return failure(code, what);
      const std::string copy(value != nullptr ? value : "");
      if (code == 0 || copy.size() > kLongestText) return Error{ErrorCode::malformed, what};
      return copy;
    }
    /// The next value, a number or text.
    [[nodiscard]] Result<std::string> value(char type, const char* what) const {
      if (type != 'u') return text(type, what);
      std::uint32_t number = 0;
      const int code = calls.read_basic(message, type, &number);
      if (code < 0) return failure(code, what);
      if (code == 0) return Error{ErrorCode::malformed, what};
      return std::to_string(number);
    }
  };
};

SystemBus::SystemBus(std::unique_ptr<Connection> connection) noexcept : connection_(std::move(connection)) {}
SystemBus::SystemBus(SystemBus&&) noexcept = default;
SystemBus& SystemBus::operator=(SystemBus&&) noexcept = default;
SystemBus::~SystemBus() = default;

Result<SystemBus> SystemBus::connect(const std::string& socket) {
  const auto library = load();
  if (!library) return library.error();
  auto connection = std::make_unique<Connection>(*library);
  const auto& calls = connection->calls;
  int code = calls.new_bus(&connection->bus);
  if (code >= 0) code = calls.set_address(connection->bus, ("unix:path=" + socket).c_str());
  if (code >= 0) code = calls.set_bus_client(connection->bus, 1);
  if (code >= 0) code = calls.start(connection->bus);
  if (code < 0) return system_error("the system bus", -code);
  return SystemBus(std::move(connection));
}

Result<std::string> SystemBus::call_for_path(const BusObject& object, const char* method, const std::string& argument) {
  Connection::Reply reply(connection_->calls);
  const int code = connection_->calls.call_method(connection_->bus, object.peer.c_str(), object.path.c_str(),
                                                  object.interface.c_str(), method, &reply.error, &reply.message, "s",
                                                  argument.c_str());
  if (code < 0) return reply.failure(code, method);
  return reply.text('o', method);
}

Result<void> SystemBus::call(const BusObject& object, const char* method) {
  Connection::Reply reply(connection_->calls);
  const int code =
      connection_->calls.call_method(connection_->bus, object.peer.c_str(), object.path.c_str(),
                                     object.interface.c_str(), method, &reply.error, &reply.message, nullptr);
  if (code < 0) return reply.failure(code, method);
  return {};
}

Result<std::string> SystemBus::call_for_path(const BusObject& object, const char* method, const std::string& first,
                                             const std::string& second) {
  Connection::Reply reply(connection_->calls);
  const int code = connection_->calls.call_method(connection_->bus, object.peer.c_str(), object.path.c_str(),
                                                  object.interface.c_str(), method, &reply.error, &reply.message, "ss",
                                                  first.c_str(), second.c_str());
  if (code < 0) return reply.failure(code, method);
  return reply.text('o', method);
}

Result<void> SystemBus::add_match(const std::string& match) {
  Connection::Reply reply(connection_->calls);
  const int code = connection_->calls.call_method(connection_->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                                  "org.freedesktop.DBus", "AddMatch", &reply.error, &reply.message, "s",
                                                  match.c_str());
  if (code < 0) return reply.failure(code, "AddMatch");
  return {};
}

Result<std::vector<std::string>> SystemBus::await_signal(const char* interface, const char* member,
                                                         std::string_view types) {
  static constexpr std::uint64_t kForEver = ~std::uint64_t{0};
  const auto& calls = connection_->calls;
  for (;;) {
    Connection::Reply signal(calls);
    const int code = calls.process(connection_->bus, &signal.message);
    if (code < 0) return signal.failure(code, member);
    if (code == 0) {
      if (const int waited = calls.wait(connection_->bus, kForEver); waited < 0 && waited != -EINTR)
        return signal.failure(waited, member);
      continue;
    }
    if (signal.message == nullptr || calls.is_signal(signal.message, interface, member) <= 0) continue;
    std::vector<std::string> values;
    for (const char type : types) {
      auto value = signal.value(type, member);
      if (!value) return value.error();
      values.push_back(*std::move(value));
    }
    return values;
  }
}

Result<std::string> SystemBus::read_text(const BusObject& object, const char* property) {
  Connection::Reply reply(connection_->calls);
  const int code =
      connection_->calls.get_property(connection_->bus, object.peer.c_str(), object.path.c_str(),
                                      object.interface.c_str(), property, &reply.error, &reply.message, "s");
  if (code < 0) return reply.failure(code, property);
  return reply.text('s', property);
}

template <class Number>
Result<Number> SystemBus::read_basic(const BusObject& object, const char* property, const char* type) {
  Connection::Reply reply(connection_->calls);
  int code = connection_->calls.get_property(connection_->bus, object.peer.c_str(), object.path.c_str(),
                                             object.interface.c_str(), property, &reply.error, &reply.message, type);
  if (code < 0) return reply.failure(code, property);
  Number value = 0;
  code = connection_->calls.read_basic(reply.message, *type, &value);
  if (code <= 0) return Error{ErrorCode::malformed, property};
  return value;
}

Result<std::uint32_t> SystemBus::read_number(const BusObject& object, const char* property) {
  return read_basic<std::uint32_t>(object, property, "u");
}

Result<std::uint64_t> SystemBus::read_time(const BusObject& object, const char* property) {
  return read_basic<std::uint64_t>(object, property, "t");
}

Result<SystemBus::Listener> SystemBus::listener() const {
  const int fd = connection_->calls.get_fd(connection_->bus);
  if (fd < 0) return system_error("the system bus", -fd);
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return system_error("SO_PEERCRED");
  return Listener{credentials.pid, credentials.uid};
}

}  // namespace vacate
