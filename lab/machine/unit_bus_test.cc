// SPDX-License-Identifier: Apache-2.0
// The stand-in service manager, asked from inside a machine by libsystemd as any program would ask. Needs root and the
// actor program beside the test program.
#include <gmock/gmock.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "lab/actor/signals.h"
#include "lab/machine/test_machine.h"

namespace lab {
namespace {

using ::testing::ElementsAre;
using vacate::Deadline;

constexpr const char* kPeer = "org.freedesktop.systemd1";
constexpr const char* kPath = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";

/// A client of the machine's bus. Its calls are not to be interrupted: one that stops a unit ends actors before it has
/// its answer, and this process, their init, hears of that by a signal.
class Client {
 public:
  Client() {
    good_ = sd_bus_new(&bus_) >= 0 && sd_bus_set_address(bus_, "unix:path=/run/dbus/system_bus_socket") >= 0 &&
            sd_bus_set_bus_client(bus_, 1) >= 0 && sd_bus_start(bus_) >= 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { sd_bus_flush_close_unref(bus_); }

  /// The object path that a method of the manager answers with, or the name of its error.
  std::string call(const char* method, const char* unit) {
    const SignalsBlocked uninterrupted;
    sd_bus_error error{};
    sd_bus_message* reply = nullptr;
    const bool stops = std::string_view(method) == "StopUnit";
    const int code =
        stops ? sd_bus_call_method(bus_, kPeer, kPath, kManager, method, &error, &reply, "ss", unit, "replace")
              : sd_bus_call_method(bus_, kPeer, kPath, kManager, method, &error, &reply, "s", unit);
    const char* path = nullptr;
    std::string result = "no answer";
    if (code >= 0 && sd_bus_message_read(reply, "o", &path) >= 0) result = path;
    if (code < 0 && error.name != nullptr) result = error.name;
    sd_bus_message_unref(reply);
    sd_bus_error_free(&error);
    return good_ ? result : "no bus";
  }

  std::string text(const std::string& path, const char* interface, const char* property) {
    const SignalsBlocked uninterrupted;
    char* value = nullptr;
    if (sd_bus_get_property_string(bus_, kPeer, path.c_str(), interface, property, nullptr, &value) < 0) return "none";
    std::string copy(value);
    std::free(value);  // NOLINT(cppcoreguidelines-no-malloc): the library gave it
    return copy;
  }

  /// From now on jobs that are done are told of.
  void subscribe() { (void)sd_bus_match_signal(bus_, nullptr, kPeer, kPath, kManager, "JobRemoved", take_job, this); }
  /// The next one: its unit and its result.
  std::string await_job() {
    const Deadline deadline = Deadline::after(std::chrono::seconds(5));
    while (job_.empty() && !deadline.passed()) {
      if (sd_bus_process(bus_, nullptr) == 0) (void)sd_bus_wait(bus_, 100'000);
    }
    return job_;
  }

  std::uint32_t main_pid(const std::string& path) {
    const SignalsBlocked uninterrupted;
    std::uint32_t pid = 0;
    (void)sd_bus_get_property_trivial(bus_, kPeer, path.c_str(), "org.freedesktop.systemd1.Service", "MainPID", nullptr,
                                      'u', &pid);
    return pid;
  }

 private:
  static int take_job(sd_bus_message* signal, void* self, sd_bus_error* /*error*/) {
    std::uint32_t number = 0;
    const char* path = nullptr;
    const char* unit = nullptr;
    const char* result = nullptr;
    if (sd_bus_message_read(signal, "uoss", &number, &path, &unit, &result) >= 0)
      static_cast<Client*>(self)->job_ = fmt::format("{} {}", unit, result);
    return 0;
  }

  sd_bus* bus_ = nullptr;
  std::string job_;
  bool good_ = false;
};

constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";

/// "active 6": state and main process, the latter as the name of the actor that has it.
std::string state(Client& client, Machine& machine, const std::string& unit, const std::string& main) {
  const std::string path = client.call("LoadUnit", unit.c_str());
  const auto actor = machine.actor(main);
  const std::uint32_t pid = client.main_pid(path);
  const std::string who = pid == 0 ? "nobody" : actor && static_cast<std::uint32_t>(actor->pid) == pid ? main : "other";
  return client.text(path, kUnit, "LoadState") + " " + client.text(path, kUnit, "ActiveState") + " " + who;
}

std::string machine_with(const std::string& restart) {
  return "title = 't'\n[[unit]]\nname = 'llm.service'\nmain = 'api'\nrestart = '" + restart +
         "'\n[[actor]]\nname = 'api'\nparent = 'init'\ncgroup = '/system.slice/llm.service'\n"
         "[[actor]]\nname = 'worker'\nparent = 'api'\n";
}

/// Until another process than `before` bears `name` and holds what it should.
void await_successor(Machine& machine, const std::string& name, pid_t before) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(5));
  for (auto actor = machine.actor(name); !deadline.passed(); actor = machine.actor(name)) {
    if (actor && actor->pid > 0 && actor->pid != before) return;
    usleep(1000);
  }
}

TEST(UnitBus, TellsTheStateAndTheMainProcessOfAUnit) {
  const auto seen = observe_in(machine_with("no"), [](Machine& machine) {
    Client client;
    Lines lines{state(client, machine, "llm.service", "api")};
    const std::string path = client.call("GetUnit", "llm.service");
    lines.push_back(client.text(path, "org.freedesktop.systemd1.Service", "ControlGroup"));
    lines.push_back(client.text(path, "org.freedesktop.systemd1.Service", "Restart"));
    end(machine, "api", SIGKILL);
    lines.push_back(state(client, machine, "llm.service", "api"));
    return lines;
  });
  EXPECT_THAT(seen, ElementsAre("loaded active api", "/system.slice/llm.service", "no", "loaded failed nobody"));
}

TEST(UnitBus, TellsAUnitThatThereIsNotFromOneThatIsOver) {
  const auto seen = observe_in(machine_with("no"), [](Machine& machine) {
    Client client;
    return Lines{state(client, machine, "no.service", "api"), client.call("GetUnit", "no.service"),
                 client.call("StopUnit", "no.service")};
  });
  EXPECT_THAT(seen, ElementsAre("not-found inactive nobody", "org.freedesktop.systemd1.NoSuchUnit",
                                "org.freedesktop.systemd1.NoSuchUnit"));
}

TEST(UnitBus, StartsAMainProcessAgainUntilTheUnitIsStopped) {
  const auto seen = observe_in(machine_with("always"), [](Machine& machine) {
    Client client;
    const pid_t first = machine.actor("api")->pid;
    end(machine, "api", SIGKILL);
    await_successor(machine, "api", first);
    Lines lines{state(client, machine, "llm.service", "api")};
    const pid_t second = machine.actor("api")->pid;
    client.subscribe();
    lines.push_back(client.call("StopUnit", "llm.service"));
    lines.push_back(client.await_job());
    (void)machine.wait_exit("api", Deadline::after(std::chrono::seconds(5)));
    (void)machine.wait_exit("worker", Deadline::after(std::chrono::seconds(5)));
    lines.push_back(machine.actor("worker")->ended_by);
    usleep(100'000);  // what must not happen has no event
    lines.push_back(machine.actor("api")->pid == second ? "no third" : "a third");
    lines.push_back(state(client, machine, "llm.service", "api"));
    return lines;
  });
  EXPECT_THAT(seen, ElementsAre("loaded active api", "/org/freedesktop/systemd1/job/1", "llm.service done", "TERM",
                                "no third", "loaded failed nobody"));
}

TEST(UnitBus, IsNotThereWithoutUnits) {
  const auto seen = observe_in("title = 't'\n[[actor]]\nname = 'api'\n", [](Machine&) {
    return Lines{access("/run/dbus/system_bus_socket", F_OK) == 0 ? "a bus" : "no bus"};
  });
  EXPECT_THAT(seen, ElementsAre("no bus"));
}

}  // namespace
}  // namespace lab
