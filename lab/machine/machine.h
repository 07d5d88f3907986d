// SPDX-License-Identifier: Apache-2.0
// One simulated GPU machine: namespaces, device nodes, cgroups and the processes of a case, and what the steps of a
// case do in it. Nothing that happens inside can reach the host. It judges nothing: expectations are the runner's
// business.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"

namespace lab {

struct Case;

/// Files of the build that the machine shows under the names that an installed system gives them.
struct MachinePaths {
  std::string vacate;  ///< the product, shown as /usr/local/bin/vacate; empty: none (demo of the machine alone)
  std::string actor;   ///< vacate-lab-actor
  std::string nvml;  ///< the vendor library's stand-in, shown as libnvidia-ml.so.1 whatever the era; empty: see `eras`
  std::string eras = {};  ///< folder of the libraries of all eras, ERA/libnvidia-ml.so.1; empty too: none is shown
};

/// What is known about one actor at the moment of asking.
struct ActorStatus {
  std::string name;
  pid_t pid = 0;        ///< in the machine; 0: not started
  bool exited = false;  ///< its last thread has ended (its pidfd is readable), reaped or not
  std::string
      ended_by;  ///< "TERM", "KILL", ..: the signal it ended by, handled or not; "exit": by itself; "" while it lives
  std::map<int, unsigned>
      signals;  ///< signals that processes sent it so far, with how often; pending ones count. Never KILL, STOP
  unsigned signal_count = 0;  ///< the sum of the above: compare two of them to know whether any came in between
};

/// A command of a `run` step. Its strings are final: {pid:NAME} has been replaced by the caller.
struct CommandSpec {
  std::vector<std::string> argv;
  std::string user = "root";  ///< root, alice or bob
  bool tty = false;           ///< on a pseudo-terminal, its process group in the foreground; stderr is then part of out
  std::string stdin_text;     ///< what it reads; then end of file
  std::string in_pidns;       ///< the child pid namespace that it runs in; empty: that of who starts it
  std::string child_of =
      "shell";  ///< the actor that starts it; other than "shell": stays in that actor's group and session
};

struct CommandResult {
  int exit_code = -1;  ///< exit status, or 128 + signal as a shell says it
  int signal = 0;      ///< the signal that ended it, 0 if none
  std::string out;
  std::string err;
  double seconds = 0;      ///< from its start to its end
  bool timed_out = false;  ///< the deadline came first: it and its process group were killed
};

/// The machine from the inside. Lives in pid 1 of the machine; not to be used after the body has returned.
/// Names are those of the case; "shell" names the machine's own shell.
class Machine {
 public:
  /// Starts all actors with start = "begin", parents first, and returns when each holds what it should and is in its
  /// state.
  [[nodiscard]] vacate::Result<void> start_actors();

  /// Starts these actors of the case, which have start = "later" and whose parents live, and returns when each holds
  /// what it should. `of`: an actor whose number in the machine the only one of `names` is to get in its own pid
  /// namespace; where both are in the same one, `of` has to have ended. busy: something else keeps that number.
  [[nodiscard]] vacate::Result<void> start_later(const std::vector<std::string>& names, std::string_view of = {});

  /// Names that `pattern` (a name or glob) stands for, in the order of the case, copies (NAME+1) after them. malformed:
  /// none.
  [[nodiscard]] vacate::Result<std::vector<std::string>> expand(std::string_view pattern) const;
  /// malformed: no such name.
  [[nodiscard]] vacate::Result<ActorStatus> actor(std::string_view name) const;
  /// `target`: a name, glob or "group:NAME" (its process group); `sig` a number. Returns when the signal has been
  /// recorded or has ended its target, so that a later count tells only of later ones. gone: it ended before.
  [[nodiscard]] vacate::Result<void> send_signal(std::string_view target, int sig);
  /// Until the last thread of `name` has ended. timed_out: the deadline came first.
  [[nodiscard]] vacate::Result<void> wait_exit(std::string_view name, vacate::Deadline deadline) const;

  /// Starts a command and returns its id for finish_command (`background` steps).
  [[nodiscard]] vacate::Result<int> start_command(const CommandSpec& spec);
  /// Collects its output until it ends. At the deadline it is killed and timed_out is set.
  [[nodiscard]] vacate::Result<CommandResult> finish_command(int id, vacate::Deadline deadline);
  /// Both of the above.
  [[nodiscard]] vacate::Result<CommandResult> run(const CommandSpec& spec, vacate::Deadline deadline);

  /// The driver's figure for each GPU, by index, in MiB.
  [[nodiscard]] vacate::Result<std::vector<std::uint64_t>> used_mib() const;

  /// An interactive command (default: bash) in the machine on the caller's standard input and output; its exit code.
  [[nodiscard]] vacate::Result<int> shell(std::vector<std::string> argv = {"/bin/bash", "-i"});

  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

 private:
  friend class Conductor;
  struct Impl;
  explicit Machine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The first thing in the case that the machine cannot do yet, as "actor 'a': state \"frozen\"".
[[nodiscard]] std::optional<std::string> unsupported(const Case& scenario);

/// Builds the machine, runs `body` in its pid 1 and takes everything down again; returns what `body` returned (0..255).
/// What `body` prints goes to the caller's standard output; its memory is that of another process. If the calling
/// thread dies, the machine dies. Several may run at once, each from a process of its own. unsupported: the kernel or
/// the permissions lack what the case needs (exit 77, message says what); io, bug: it broke.
[[nodiscard]] vacate::Result<int> run_in_machine(const Case& scenario, const MachinePaths& paths,
                                                 const std::function<int(Machine&)>& body);

}  // namespace lab
