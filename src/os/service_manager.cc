// SPDX-License-Identifier: Apache-2.0
#include "os/service_manager.h"

#include <fcntl.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): clearenv is no part of cstdlib
#include <time.h>

#include <algorithm>
#include <array>

#include "model/process.h"
#include "os/file_identity.h"
#include "os/frame.h"
#include "os/procfs.h"

namespace vacate {
namespace {

constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";
constexpr const char* kService = "org.freedesktop.systemd1.Service";
constexpr const char* kBooted = "/run/systemd/system";  // sd_booted(3)
constexpr std::size_t kLargestAnswer = 65536;

/// The states of unit_active_state in systemd; a new one would mean something that nobody here knows.
constexpr std::array<std::string_view, 8> kActiveStates = {"active",     "reloading",    "inactive",    "failed",
                                                           "activating", "deactivating", "maintenance", "refreshing"};

bool is_plain_word(std::string_view text) {
  static constexpr std::size_t kLongest = 64;
  return text.size() <= kLongest &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

/// Why there is no answer if none follows.
Unknown reason_for(std::uint8_t greeting) noexcept {
  switch (BusGreeting{greeting}) {
    case BusGreeting::connected:
      return Unknown::timed_out;
    case BusGreeting::no_library:
      return Unknown::not_supported;
    case BusGreeting::denied:
      return Unknown::no_permission;
    case BusGreeting::foreign:
      return Unknown::implausible;
    case BusGreeting::failed:
      break;
  }
  return Unknown::failed;
}

std::uint64_t now_of(clockid_t clock) noexcept {
  timespec now{};
  (void)clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

bool is_there(const char* path) {
  const auto identity = read_identity(AT_FDCWD, path);
  return identity || identity.error().code != ErrorCode::gone;
}

}  // namespace

BusGreeting greet(const Result<SystemBus>& bus) {
  if (!bus && bus.error().code == ErrorCode::unsupported) return BusGreeting::no_library;
  if (!bus) return bus.error().code == ErrorCode::denied ? BusGreeting::denied : BusGreeting::failed;
  const auto listener = bus->listener();
  if (!listener) return BusGreeting::failed;
  if (listener->uid != 0 || listener->pid <= 0) return BusGreeting::foreign;
  const auto root = ProcDirectory::open_root();
  const auto process = root ? root->open(listener->pid) : Result<ProcDirectory>(root.error());
  const auto theirs = process ? process->identity("ns/pid") : Result<FileIdentity>(process.error());
  const auto ours = root ? root->identity("self/ns/pid") : Result<FileIdentity>(root.error());
  // Who may not look, an ordinary user, goes by the number alone.
  const bool differs = theirs && ours && theirs->inode != ours->inode;
  return differs ? BusGreeting::foreign : BusGreeting::connected;
}

Result<UnitProperties> read_unit(SystemBus& bus, const std::string& name) {
  const auto path = bus.call_for_path(kServiceManager, "LoadUnit", name);
  if (!path) return path.error();
  UnitProperties unit;
  struct Text {
    const char* interface;
    const char* property;
    std::string UnitProperties::*member;
  };
  for (const auto& [interface, property, member] :
       {Text{kService, "ControlGroup", &UnitProperties::control_group},
        Text{kService, "Restart", &UnitProperties::restart}, Text{kUnit, "SubState", &UnitProperties::sub_state}}) {
    auto text = bus.read_text({kServiceManager.peer, *path, interface}, property);
    if (!text) return text.error();
    unit.*member = *std::move(text);
  }
  const auto pid = bus.read_number({kServiceManager.peer, *path, kService}, "MainPID");
  if (!pid) return pid.error();
  unit.main_pid = *pid;
  const auto real = bus.read_time({kServiceManager.peer, *path, kUnit}, "InactiveExitTimestamp");
  const auto monotonic = bus.read_time({kServiceManager.peer, *path, kUnit}, "InactiveExitTimestampMonotonic");
  if (real && monotonic)
    unit.activated = earliest_activation({*real, *monotonic}, {now_of(CLOCK_REALTIME), now_of(CLOCK_MONOTONIC)});
  // Last: a unit that was seen to be over was so after everything else was read.
  auto state = bus.read_text({kServiceManager.peer, *path, kUnit}, "ActiveState");
  if (!state) return state.error();
  unit.active_state = *std::move(state);
  return unit;
}

namespace {

/// In the child.
int answer_questions(int channel, const std::vector<UnitQuestion>& questions, const std::string& socket) {
  (void)clearenv();
  auto bus = SystemBus::connect(socket);
  const auto greeting = greet(bus);
  const auto listener = bus ? bus->listener() : Result<SystemBus::Listener>(bus.error());
  FrameWriter first;
  first.number(static_cast<std::uint8_t>(greeting));
  first.number(static_cast<std::uint8_t>(listener && listener->pid == 1));
  if (!send_frame(channel, first.bytes()) || greeting != BusGreeting::connected) return 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto unit = read_unit(*bus, questions[i].name);
    FrameWriter answer;
    answer.number(static_cast<std::uint32_t>(i));
    answer.number(static_cast<std::uint8_t>(unit.has_value()));
    if (unit) {
      answer.text(unit->active_state);
      answer.text(unit->sub_state);
      answer.text(unit->restart);
      answer.text(unit->control_group);
      answer.number(unit->main_pid);
      answer.number(unit->activated);
    }
    if (!send_frame(channel, answer.bytes())) return 1;
  }
  return 0;
}

}  // namespace

std::uint64_t earliest_activation(ClockPair then, ClockPair now) noexcept {
  if (then.real == 0 || then.monotonic == 0 || then.monotonic > now.monotonic) return 0;
  const auto ago = now.monotonic - then.monotonic;
  return ago > now.real ? 0 : std::min(then.real, now.real - ago);
}

std::optional<ServiceUnit> parse_unit(const UnitQuestion& question, const UnitProperties& said, ManagerPids pids) {
  if (said.control_group != question.control_group || said.main_pid > kLargestPid) return std::nullopt;
  const bool known = std::find(kActiveStates.begin(), kActiveStates.end(), said.active_state) != kActiveStates.end();
  if (!known || !is_plain_word(said.sub_state) || !is_plain_word(said.restart)) return std::nullopt;
  ServiceUnit unit;
  unit.name = question.name;
  unit.active_state = said.active_state;
  unit.sub_state = said.sub_state;
  unit.restart = said.restart;
  if (said.activated != 0) unit.activated = static_cast<double>(said.activated) / 1e6;
  if (pids == ManagerPids::ours) unit.main_pid = static_cast<pid_t>(said.main_pid);
  return unit;
}

ServiceManagerQuery::ServiceManagerQuery(std::vector<UnitQuestion> questions, ManagerPids pids, std::string socket)
    : questions_(std::move(questions)), pids_(pids), socket_(std::move(socket)) {
  if (questions_.empty()) return;
  if (!is_there(socket_.c_str())) {
    // A systemd without a bus is one that could not be asked.
    answered_ = is_there(kBooted) ? Reading<bool>(Unknown::not_supported) : Reading<bool>(false);
    return;
  }
  auto child =
      Expendable::start("vacate-units", [this](int channel) { return answer_questions(channel, questions_, socket_); });
  answered_ = child ? Unknown::timed_out : Unknown::failed;
  if (child) child_.emplace(*std::move(child));
}

void ServiceManagerQuery::take(std::string_view frame, ServiceManager& manager) const {
  FrameReader answer(frame);
  const auto index = answer.number<std::uint32_t>();
  const bool read = answer.number<std::uint8_t>() != 0;
  if (answer.failed() || index >= questions_.size()) return;
  if (!read) {
    // One refused unit says nothing of the manager if it told of others.
    if (!manager.answered.known()) manager.answered = Unknown::failed;
    return;
  }
  manager.answered = true;
  UnitProperties said;
  said.active_state = answer.text();
  said.sub_state = answer.text();
  said.restart = answer.text();
  said.control_group = answer.text();
  said.main_pid = answer.number<std::uint32_t>();
  said.activated = answer.number<std::uint64_t>();
  auto unit = answer.complete() ? parse_unit(questions_[index], said, pids_) : std::nullopt;
  if (unit) manager.units.push_back(*std::move(unit));
}

ServiceManager ServiceManagerQuery::finish(Deadline deadline) {
  ServiceManager manager;
  manager.answered = answered_;
  if (!child_) return manager;
  FrameStream stream(kLargestAnswer);
  std::array<char, 4096> piece;
  bool greeted = false;
  for (;;) {
    const auto n = child_->read_some(piece.data(), piece.size(), deadline);
    if (!n) break;  // what came so far counts
    if (*n == 0) {
      if (!greeted) manager.answered = Unknown::failed;  // it died of what it was told
      break;
    }
    stream.feed({piece.data(), *n});
    while (const auto frame = stream.next()) {
      if (greeted) {
        take(*frame, manager);
      } else {
        FrameReader greeting(*frame);
        manager.answered = reason_for(greeting.number<std::uint8_t>());
        // Process 1 of this pid namespace made the socket: it is the manager itself (dbus.socket), a container's own.
        if (greeting.number<std::uint8_t>() != 0) pids_ = ManagerPids::ours;
        greeted = true;
      }
    }
  }
  child_.reset();
  std::sort(manager.units.begin(), manager.units.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return manager;
}

}  // namespace vacate
