// SPDX-License-Identifier: Apache-2.0
// What the system's service manager (systemd) says of units, asked over the system bus in an expendable child. Reads
// only. Unknown is never gone: a unit about which there is any doubt is left out of the answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "model/snapshot.h"
#include "os/expendable.h"
#include "os/system_bus.h"

namespace vacate {

/// A unit and the control group in which processes of it were seen: what the manager says of a unit that it keeps
/// somewhere else is about another unit of the same name, as that of a container's own manager.
struct UnitQuestion {
  std::string name;           ///< "llm.service"
  std::string control_group;  ///< "/system.slice/llm.service"
  auto operator<=>(const UnitQuestion&) const = default;
};

/// Are the manager's numbers of processes those of the caller's namespace? They are where its bus turns out to be that
/// of process 1 of this namespace, whatever was thought before: a container with a manager of its own.
enum class ManagerPids { ours, foreign };

/// One unit as the properties of org.freedesktop.systemd1.Unit and .Service say it: hostile.
struct UnitProperties {
  std::string active_state, sub_state, restart, control_group;
  std::uint32_t main_pid = 0;
  std::uint64_t activated = 0;  ///< microseconds since the epoch, 0: unknown; see earliest_activation()
};

/// The manager itself on the bus.
inline const BusObject kServiceManager{"org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                       "org.freedesktop.systemd1.Manager"};

/// The bus has to be that of this very system: its socket made by root, in a pid namespace that is ours. In a container
/// that was given the host's socket the answers would be about other units of the same names.
enum class BusGreeting : std::uint8_t { connected, no_library, denied, foreign, failed };
[[nodiscard]] BusGreeting greet(const Result<SystemBus>& bus);

/// As `systemctl show` does it: LoadUnit gives a path for a unit that is not loaded, too, so that one that is inactive
/// can be told from one that there is not. Blocks: for an expendable child.
[[nodiscard]] Result<UnitProperties> read_unit(SystemBus& bus, const std::string& name);

/// When a unit left inactive, in microseconds since the epoch, out of what two clocks said then (`real`, `monotonic`)
/// and say now. A stepped clock falsifies the one, a suspended machine the other: the earlier of the two counts, which
/// makes fewer processes older than the activation. 0: not known.
struct ClockPair {
  std::uint64_t real = 0;
  std::uint64_t monotonic = 0;
};
[[nodiscard]] std::uint64_t earliest_activation(ClockPair then, ClockPair now) noexcept;

/// The unit of `question`, if `said` is about it and makes sense. Unknown words of states, a main process with a number
/// that no process can have, or another control group: nothing. Foreign numbers are left out (main_pid 0).
[[nodiscard]] std::optional<ServiceUnit> parse_unit(const UnitQuestion& question, const UnitProperties& said,
                                                    ManagerPids pids);

/// The questions, being asked beside whatever the caller does.
class ServiceManagerQuery {
 public:
  /// Starts; `questions` each once. Asks nobody if there are none. `socket`: where the bus listens.
  explicit ServiceManagerQuery(std::vector<UnitQuestion> questions, ManagerPids pids,
                               std::string socket = kSystemBusSocket);

  /// The answers that came by `deadline`; the child is abandoned then.
  [[nodiscard]] ServiceManager finish(Deadline deadline);

 private:
  void take(std::string_view frame, ServiceManager& manager) const;

  std::vector<UnitQuestion> questions_;
  ManagerPids pids_;
  std::string socket_;
  Reading<bool> answered_;  ///< what was known at the start
  std::optional<Expendable> child_;
};

}  // namespace vacate
