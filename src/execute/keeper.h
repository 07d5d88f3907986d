// SPDX-License-Identifier: Apache-2.0
// Runs a command below a keeper: a small process of vacate's own between vacate and the command, and the child
// subreaper of everything that the command starts. It tells vacate what becomes of the command, passes signals on, and
// ends what is left; if vacate itself is ended, however, it does that alone. If the keeper is ended, vacate, a
// subreaper too, inherits everybody and ends them. Killing either of the two leaves nothing.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "execute/action_log.h"
#include "execute/end_descendants.h"
#include "os/control_group.h"
#include "os/inherited_state.h"

namespace vacate {

struct CommandToRun {
  std::vector<std::string> argv;    ///< the first is looked for in PATH
  InheritedState inherited;         ///< what it is to be given back
  std::vector<int> handed_on = {};  ///< descriptors of vacate's own that it gets; the keeper has them too
  std::chrono::milliseconds grace{10000};
  std::chrono::milliseconds timeout{60000};  ///< for ending what is left
  FindSpared find_spared = {};               ///< asked in the keeper, or in vacate in its place
};

/// What the keeper says of the command.
struct KeeperEvent {
  enum class Kind : unsigned char {
    started,      ///< number: 1 if it is in the control group
    not_started,  ///< number: errno of execve(2)
    stopped,      ///< number: the signal
    ended,        ///< number: the wait status of waitpid(2)
    all_ended,    ///< `end` says of whom
    keeper_gone,  ///< somebody ended the keeper
  };
  Kind kind = Kind::keeper_gone;
  int number = 0;
  pid_t pid = 0;               ///< of the command
  bool somebody_left = false;  ///< ended: it has left processes behind
  EndOfFamily end = {};
};

class Keeper {
 public:
  /// Starts both. `group` outlives the keeper; nullptr: none. The calling process becomes a child subreaper and has to
  /// have no child that it would mind being waited for. Errors: no process could be made.
  [[nodiscard]] static Result<Keeper> start(const CommandToRun& command, const ControlGroup* group);
  Keeper(Keeper&&) noexcept = default;
  Keeper& operator=(Keeper&&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// For poll(2): readable when there is an event.
  [[nodiscard]] int descriptor() const noexcept { return channel_.get(); }
  /// The next event; nothing if there is none yet.
  [[nodiscard]] std::optional<KeeperEvent> next_event();

  /// Sends `number` to the command. own_group: vacate's whole process group has it already, so only if the command is
  /// not in that.
  enum class Reached { nobody, own_group };
  void pass_on(int number, Reached reached) const noexcept;
  /// Continues the command if it is stopped.
  void resume() const noexcept;
  /// Ends everybody who is left; all_ended follows.
  void end_everybody() const noexcept;
  /// KILL now to whoever is left.
  void hurry() const noexcept;
  /// For poll(2): readable when the keeper may have been stopped; -1: that cannot be told.
  [[nodiscard]] int changes() const noexcept { return changes_.get(); }
  /// Lets it run on if somebody has stopped it: it ignores what can be ignored, and without it nothing is heard of the
  /// command any more.
  void keep_running() const noexcept;
  /// Waits for the end of the keeper, which has said all_ended or was ended itself.
  void dismiss() noexcept;

 private:
  Keeper(pid_t pid, UniqueFd pidfd, UniqueFd channel, UniqueFd changes) noexcept
      : pid_(pid), pidfd_(std::move(pidfd)), channel_(std::move(channel)), changes_(std::move(changes)) {}
  pid_t pid_;
  UniqueFd pidfd_;
  UniqueFd channel_;
  UniqueFd changes_;
};

/// What the keeper was ended over, done by the caller in its place: everybody is its child by now.
[[nodiscard]] EndOfFamily end_in_place_of_keeper(const CommandToRun& command, const ControlGroup* group, ActionLog& log,
                                                 int hurry);

}  // namespace vacate
