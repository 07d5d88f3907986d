// SPDX-License-Identifier: Apache-2.0
#include "os/unit_stop.h"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): clearenv is no part of cstdlib

#include <array>

#include <fmt/format.h>

#include "os/procfs.h"
#include "os/service_manager.h"
#include "os/unit_members.h"

namespace vacate {
namespace {

/// What a frame of the child is about; the last one carries an answer.
enum class News : std::uint8_t { asked, accepted, answer };

bool tell(int channel, News news) {
  FrameWriter frame;
  frame.number(static_cast<std::uint8_t>(news));
  return send_frame(channel, frame.bytes());
}

UnitStopAnswer because_of(const Error& error) {
  // The library has no number of its own for the manager's word.
  const bool unknown = error.code == ErrorCode::gone || error.message.find("NoSuchUnit") != std::string::npos;
  const auto end = error.code == ErrorCode::denied ? UnitStopEnd::denied
                   : unknown                       ? UnitStopEnd::changed
                                                   : UnitStopEnd::unreachable;
  return {end, error.message};
}

std::optional<UnitStopAnswer> find_fault_of_bus(const Result<SystemBus>& bus) {
  switch (greet(bus)) {
    case BusGreeting::connected:
      return std::nullopt;
    case BusGreeting::denied:
      return UnitStopAnswer{UnitStopEnd::denied, "the system bus does not let us in"};
    case BusGreeting::no_library:
      return UnitStopAnswer{UnitStopEnd::unreachable, bus.error().message};
    case BusGreeting::foreign:
      return UnitStopAnswer{UnitStopEnd::unreachable, "the system bus is not that of this system"};
    case BusGreeting::failed:
      break;
  }
  return UnitStopAnswer{UnitStopEnd::unreachable, bus ? "the system bus" : bus.error().message};
}

/// Is the process with the number of the planned main process still that process?
bool is_same_main(const ProcessKey& main) {
  const auto root = ProcDirectory::open_root();
  const auto process = root ? root->open(main.pid) : Result<ProcDirectory>(root.error());
  const auto stat = process ? process->stat() : Result<ProcStat>(process.error());
  return stat && stat->start_ticks == main.start_ticks;
}

/// Why the unit is not stopped although it can be asked about.
std::optional<UnitStopAnswer> find_fault_of_unit(SystemBus& bus, const UnitTarget& unit) {
  const auto said = read_unit(bus, unit.name);
  if (!said) return because_of(said.error());
  if (said->control_group != unit.control_group)
    return UnitStopAnswer{UnitStopEnd::changed, fmt::format("its control group is '{}' now, not {}",
                                                            said->control_group, unit.control_group)};
  if (said->active_state == "inactive" || said->active_state == "failed")
    return UnitStopAnswer{UnitStopEnd::changed, fmt::format("it is {} by now", said->active_state)};
  if (said->main_pid != static_cast<std::uint32_t>(unit.main.pid) || !is_same_main(unit.main))
    return UnitStopAnswer{
        UnitStopEnd::changed,
        fmt::format("its main process is another one than {}: the service was started anew", to_string(unit.main))};
  return std::nullopt;
}

/// Waits for the end of the manager's job. Signals that came before the answer to StopUnit are queued, so none is
/// missed.
UnitStopAnswer await_job(SystemBus& bus, const std::string& job) {
  for (;;) {
    const auto removed = bus.await_signal(kServiceManager.interface.c_str(), "JobRemoved", "uoss");
    if (!removed) return {UnitStopEnd::unreachable, removed.error().message};
    if ((*removed)[1] != job) continue;
    const auto& result = (*removed)[3];
    if (result == "done") return {UnitStopEnd::stopped, ""};
    return {UnitStopEnd::not_stopped, fmt::format("the service manager's stop ended as '{}'", result)};
  }
}

std::optional<UnitStopAnswer> find_fault_of_members(const UnitTarget& unit, const std::vector<ProcessKey>& members) {
  const auto root = ProcDirectory::open_root();
  if (!root) return UnitStopAnswer{UnitStopEnd::changed, "who is in it cannot be listed: " + root.error().message};
  auto newcomer = find_newcomer(*root, unit.control_group, members);
  if (!newcomer) return std::nullopt;
  return UnitStopAnswer{UnitStopEnd::changed, *std::move(newcomer)};
}

UnitStopAnswer stop(int channel, const UnitTarget& unit, const std::vector<ProcessKey>& members,
                    const std::string& socket) {
  auto bus = SystemBus::connect(socket);
  if (auto fault = find_fault_of_bus(bus)) return *std::move(fault);
  const auto match = bus->add_match(fmt::format("type='signal',sender='{}',interface='{}',member='JobRemoved'",
                                                kServiceManager.peer, kServiceManager.interface));
  if (!match) return because_of(match.error());
  if (auto fault = find_fault_of_unit(*bus, unit)) return *std::move(fault);
  if (auto fault = find_fault_of_members(unit, members)) return *std::move(fault);
  if (!tell(channel, News::asked)) return {UnitStopEnd::unreachable, "interrupted"};
  const auto job = bus->call_for_path(kServiceManager, "StopUnit", unit.name, "replace");
  if (!job) return because_of(job.error());
  if (!tell(channel, News::accepted)) return {UnitStopEnd::unreachable, "interrupted"};
  return await_job(*bus, *job);
}

}  // namespace

Result<UnitStop> UnitStop::start(const UnitTarget& unit, const std::vector<ProcessKey>& members,
                                 const std::string& socket) {
  auto child = Expendable::start("vacate-unit", [unit, members, socket](int channel) {
    (void)clearenv();
    const auto answer = stop(channel, unit, members, socket);
    FrameWriter frame;
    frame.number(static_cast<std::uint8_t>(News::answer));
    frame.number(static_cast<std::uint8_t>(answer.end));
    frame.text(answer.detail);
    return send_frame(channel, frame.bytes()) ? 0 : 1;
  });
  if (!child) return child.error();
  return UnitStop(*std::move(child));
}

std::optional<UnitStopAnswer> UnitStop::advance() {
  static constexpr std::size_t kLongestDetail = 1024;
  std::array<char, 4096> piece;
  for (;;) {
    const auto n = child_.read_some(piece.data(), piece.size(), Deadline::at({}));
    if (!n && n.error().code == ErrorCode::timed_out) return std::nullopt;
    if (!n || *n == 0) return UnitStopAnswer{UnitStopEnd::unreachable, "the conversation with it broke off"};
    stream_.feed({piece.data(), *n});
    while (const auto frame = stream_.next()) {
      FrameReader reader(*frame);
      const auto news = News{reader.number<std::uint8_t>()};
      asked_ = asked_ || news != News::answer;
      accepted_ = accepted_ || news == News::accepted;
      if (news == News::asked || news == News::accepted) continue;
      const auto end = reader.number<std::uint8_t>();
      const auto detail = reader.text();
      if (!reader.complete() || end > static_cast<std::uint8_t>(UnitStopEnd::changed))
        return UnitStopAnswer{UnitStopEnd::unreachable, "it gave no sensible answer"};
      return UnitStopAnswer{UnitStopEnd{end}, std::string(detail.substr(0, kLongestDetail))};
    }
  }
}

}  // namespace vacate
