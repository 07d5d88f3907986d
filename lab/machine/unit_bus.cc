// SPDX-License-Identifier: Apache-2.0
// See unit_bus.h. libsystemd does the handshake and the marshalling, in its server mode; what is said is here.
#include "lab/machine/unit_bus.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "lab/actor/signals.h"
#include "lab/machine/files.h"

namespace lab {
namespace {

using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr const char* kSocket = "/run/dbus/system_bus_socket";
constexpr const char* kBooted = "/run/systemd/system";  // by which programs know that systemd runs: sd_booted(3)
constexpr const char* kUnitPrefix = "/org/freedesktop/systemd1/unit";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";
constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";
constexpr const char* kService = "org.freedesktop.systemd1.Service";
constexpr const char* kNoSuchUnit = "org.freedesktop.systemd1.NoSuchUnit";
constexpr int kBusBacklog = 128;

/// A string that libsystemd gave and malloc owns.
struct Freed {
  void operator()(char* text) const noexcept { std::free(text); }
};
using Text = std::unique_ptr<char, Freed>;

std::string path_of(const std::string& unit) {
  char* path = nullptr;
  if (sd_bus_path_encode(kUnitPrefix, unit.c_str(), &path) < 0) return "/";
  return std::string(Text(path).get());
}

/// The unit that an object path names; one that the case has not is known to be not there.
std::optional<UnitView> unit_at(const Units& units, const char* path) {
  char* name = nullptr;
  if (sd_bus_path_decode(path, kUnitPrefix, &name) <= 0) return std::nullopt;
  const Text owned(name);
  if (auto unit = units.find(owned.get())) return unit;
  UnitView none;
  none.name = owned.get();
  none.load_state = "not-found";
  none.active_state = "inactive";
  none.sub_state = "dead";
  none.restart = "no";
  return none;
}

/// A property: what it is called and how its value is added to a message.
struct Property {
  const char* interface;
  const char* name;
  int (*append)(sd_bus_message* reply, const UnitView& unit);
};

template <std::string UnitView::*Member>
int append_text(sd_bus_message* reply, const UnitView& unit) {
  return sd_bus_message_append(reply, "v", "s", (unit.*Member).c_str());
}
template <std::uint64_t UnitView::*Member>
int append_time(sd_bus_message* reply, const UnitView& unit) {
  return sd_bus_message_append(reply, "v", "t", unit.*Member);
}
int append_main_pid(sd_bus_message* reply, const UnitView& unit) {
  return sd_bus_message_append(reply, "v", "u", static_cast<std::uint32_t>(unit.main_pid));
}

constexpr auto kProperties = std::to_array<Property>({
    {kUnit, "Id", append_text<&UnitView::name>},
    {kUnit, "LoadState", append_text<&UnitView::load_state>},
    {kUnit, "ActiveState", append_text<&UnitView::active_state>},
    {kUnit, "SubState", append_text<&UnitView::sub_state>},
    {kUnit, "InactiveExitTimestamp", append_time<&UnitView::activated_real>},
    {kUnit, "InactiveExitTimestampMonotonic", append_time<&UnitView::activated_monotonic>},
    {kService, "Restart", append_text<&UnitView::restart>},
    {kService, "ControlGroup", append_text<&UnitView::control_group>},
    {kService, "MainPID", append_main_pid},
});

/// A reply that is sent when it is complete.
class Reply {
 public:
  explicit Reply(sd_bus_message* call) { good_ = sd_bus_message_new_method_return(call, &message_) >= 0; }
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  ~Reply() { sd_bus_message_unref(message_); }
  void add(int result) { good_ = good_ && result >= 0; }
  [[nodiscard]] sd_bus_message* message() const noexcept { return message_; }
  [[nodiscard]] int send() { return good_ ? sd_bus_message_send(message_) : -EIO; }

 private:
  sd_bus_message* message_ = nullptr;
  bool good_ = false;
};

int get_property(sd_bus_message* call, const UnitView& unit) {
  const char* interface = nullptr;
  const char* name = nullptr;
  if (sd_bus_message_read(call, "ss", &interface, &name) < 0) return -EINVAL;
  for (const Property& property : kProperties) {
    if (std::string_view(property.interface) != interface || std::string_view(property.name) != name) continue;
    Reply reply(call);
    reply.add(property.append(reply.message(), unit));
    return reply.send();
  }
  return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_UNKNOWN_PROPERTY, "Unknown property %s", name);
}

int get_all(sd_bus_message* call, const UnitView& unit) {
  const char* interface = nullptr;
  if (sd_bus_message_read(call, "s", &interface) < 0) return -EINVAL;
  Reply reply(call);
  reply.add(sd_bus_message_open_container(reply.message(), 'a', "{sv}"));
  for (const Property& property : kProperties) {
    if (*interface != '\0' && std::string_view(property.interface) != interface) continue;
    reply.add(sd_bus_message_open_container(reply.message(), 'e', "sv"));
    reply.add(sd_bus_message_append(reply.message(), "s", property.name));
    reply.add(property.append(reply.message(), unit));
    reply.add(sd_bus_message_close_container(reply.message()));
  }
  reply.add(sd_bus_message_close_container(reply.message()));
  return reply.send();
}

int list_units(sd_bus_message* call, const Units& units) {
  Reply reply(call);
  reply.add(sd_bus_message_open_container(reply.message(), 'a', "(ssssssouso)"));
  for (const UnitView& unit : units.all()) {
    const std::string path = path_of(unit.name);
    reply.add(sd_bus_message_append(reply.message(), "(ssssssouso)", unit.name.c_str(), unit.name.c_str(),
                                    unit.load_state.c_str(), unit.active_state.c_str(), unit.sub_state.c_str(), "",
                                    path.c_str(), 0U, "", "/"));
  }
  reply.add(sd_bus_message_close_container(reply.message()));
  return reply.send();
}

/// A stop that was asked for. It is done when the unit's control group is empty.
struct StopJob {
  unsigned number = 0;
  std::string unit;
  UniqueFd events;  ///< cgroup.events, which changes then; owns nothing: there is no such group

  [[nodiscard]] std::string path() const { return fmt::format("/org/freedesktop/systemd1/job/{}", number); }
  [[nodiscard]] bool done() const {
    std::array<char, 256> text{};
    if (!events || pread(events.get(), text.data(), text.size() - 1, 0) <= 0) return true;
    return std::string_view(text.data()).find("populated 0") != std::string_view::npos;
  }
};

/// What one connection has: its number on the bus.
struct Connection {
  Units* units = nullptr;
  std::vector<StopJob>* jobs = nullptr;
  unsigned number = 0;
  sd_bus* bus = nullptr;
};

int stop_unit(sd_bus_message* call, const Connection& connection, const UnitView& unit) {
  static unsigned last_job = 0;
  StopJob job;
  job.number = ++last_job;
  job.unit = unit.name;
  job.events.reset(open(("/sys/fs/cgroup" + unit.control_group + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  connection.units->stop(unit.name);
  const std::string path = job.path();
  connection.jobs->push_back(std::move(job));
  return sd_bus_reply_method_return(call, "o", path.c_str());
}

int answer_manager(sd_bus_message* call, const Connection& connection, std::string_view member) {
  const Units& units = *connection.units;
  if (member == "ListUnits") return list_units(call, units);
  if (member == "Subscribe" || member == "Unsubscribe") return sd_bus_reply_method_return(call, "");
  const char* name = nullptr;
  if (member != "GetUnit" && member != "LoadUnit" && member != "StopUnit")
    return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_UNKNOWN_METHOD, "The stand-in has no %s",
                                      std::string(member).c_str());
  if (sd_bus_message_read(call, "s", &name) < 0) return -EINVAL;
  const auto unit = units.find(name);
  if (member == "StopUnit" && unit) return stop_unit(call, connection, *unit);
  if (member == "LoadUnit" || (member == "GetUnit" && unit))
    return sd_bus_reply_method_return(call, "o", path_of(name).c_str());
  return sd_bus_reply_method_errorf(call, kNoSuchUnit, "Unit %s not loaded.", name);
}

int answer_bus(sd_bus_message* call, std::string_view member, unsigned number) {
  if (member == "Hello") return sd_bus_reply_method_return(call, "s", fmt::format(":1.{}", number).c_str());
  if (member == "AddMatch" || member == "RemoveMatch") return sd_bus_reply_method_return(call, "");
  if (member == "NameHasOwner") return sd_bus_reply_method_return(call, "b", 1);
  if (member == "GetNameOwner") return sd_bus_reply_method_return(call, "s", ":1.0");
  return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_UNKNOWN_METHOD, "The stand-in has no %s",
                                    std::string(member).c_str());
}

/// Every message of a connection. 1: it was dealt with.
int answer(sd_bus_message* call, void* data, sd_bus_error* /*error*/) {
  const Connection& connection = *static_cast<Connection*>(data);
  std::uint8_t type = 0;
  if (sd_bus_message_get_type(call, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL) return 0;
  const char* interface = sd_bus_message_get_interface(call);
  const char* member = sd_bus_message_get_member(call);
  const char* path = sd_bus_message_get_path(call);
  if (interface == nullptr || member == nullptr || path == nullptr) return 0;
  int done = 0;
  if (std::string_view(interface) == "org.freedesktop.DBus") {
    done = answer_bus(call, member, connection.number);
  } else if (std::string_view(interface) == kManager) {
    done = answer_manager(call, connection, member);
  } else if (std::string_view(interface) == "org.freedesktop.DBus.Properties") {
    const auto unit = unit_at(*connection.units, path);
    if (!unit) return 0;
    done = std::string_view(member) == "GetAll" ? get_all(call, *unit) : get_property(call, *unit);
  } else {
    return 0;
  }
  return done < 0 ? done : 1;
}

/// The connections of the stand-in.
class Server {
 public:
  explicit Server(Units& units) : units_(units) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    for (auto& connection : connections_) sd_bus_flush_close_unref(connection->bus);
  }

  void accept_from(int listener) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    auto connection = std::make_unique<Connection>();
    connection->units = &units_;
    connection->jobs = &jobs_;
    connection->number = next_number_++;
    if (sd_bus_new(&connection->bus) < 0) {
      close(fd);
      return;
    }
    const sd_id128_t id{};
    const bool up = sd_bus_set_fd(connection->bus, fd, fd) >= 0 && sd_bus_set_server(connection->bus, 1, id) >= 0 &&
                    sd_bus_set_sender(connection->bus, ":1.0") >= 0 && sd_bus_start(connection->bus) >= 0 &&
                    sd_bus_add_filter(connection->bus, nullptr, answer, connection.get()) >= 0;
    if (up) {
      connections_.push_back(std::move(connection));
    } else {
      sd_bus_close_unref(connection->bus);
    }
  }

  /// What to wait for on each connection and for each stop, after the first `waits`.
  void add_waits(std::vector<pollfd>& waits) const {
    for (const StopJob& job : jobs_) waits.push_back({job.events.get(), POLLPRI, 0});
    for (const auto& connection : connections_) {
      const int events = sd_bus_get_events(connection->bus);
      waits.push_back({sd_bus_get_fd(connection->bus), static_cast<short>(std::max(events, 0)), 0});
    }
  }

  void process() {
    std::erase_if(connections_, [](const std::unique_ptr<Connection>& connection) {
      int done = 1;
      while (done > 0) done = sd_bus_process(connection->bus, nullptr);
      if (done < 0) sd_bus_close_unref(connection->bus);
      return done < 0;
    });
    tell_done_jobs();
  }

 private:
  void tell_done_jobs() {
    std::erase_if(jobs_, [this](const StopJob& job) {
      if (!job.done()) return false;
      for (const auto& connection : connections_) {
        (void)sd_bus_emit_signal(connection->bus, "/org/freedesktop/systemd1", kManager, "JobRemoved", "uoss",
                                 job.number, job.path().c_str(), job.unit.c_str(), "done");
        (void)sd_bus_flush(connection->bus);
      }
      return true;
    });
  }

  Units& units_;
  std::vector<StopJob> jobs_;
  unsigned next_number_ = 1;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace

Result<std::unique_ptr<UnitBus>> UnitBus::start(Units& units) {
  for (const std::string folder : {"/run/dbus", kBooted}) {
    if (auto made = make_directories(folder); !made) return made.error();
  }
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, kSocket, sizeof address.sun_path - 1);
  if (!listener || bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(kSocket, 0666) != 0 || listen(listener.get(), kBusBacklog) != 0) {
    return system_error("the machine's message bus");
  }
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return system_error("eventfd");
  return std::unique_ptr<UnitBus>(new UnitBus(units, std::move(listener), std::move(wake)));
}

UnitBus::UnitBus(Units& units, UniqueFd listener, UniqueFd wake)
    : units_(units), listener_(std::move(listener)), wake_(std::move(wake)) {
  const SignalsBlocked blocked;  // the reaping of pid 1 is for its first thread
  server_ = std::thread([this] { serve(); });
}

UnitBus::~UnitBus() {
  const std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  server_.join();
}

void UnitBus::serve() {
  Server server(units_);
  for (;;) {
    std::vector<pollfd> waits{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    server.add_waits(waits);
    poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) return;
    if (waits[1].revents != 0) server.accept_from(listener_.get());
    server.process();
  }
}

}  // namespace lab
