// SPDX-License-Identifier: Apache-2.0
// What a case file says, as plain values: lab.md section 2 with every default resolved, every `{i}`
// expanded (one ActorSpec a process) and every reference checked. Whoever has a Case needs no further check of names,
// indices or ranges. It must not know how a machine is built, and nothing here touches the system.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lab/driver/protocol.h"

namespace lab {

using Seconds = double;     ///< times of the format
using Mib = std::uint64_t;  ///< memory of the format

/// Where something stands in its file; both count from 1.
struct Position {
  int line = 0;
  int column = 0;
  bool operator==(const Position&) const = default;
};

enum class User { root, alice, bob };

/// One GPU: [machine] with the [[gpu]] overrides of its index applied.
struct GpuSpec {
  int index = 0;
  int minor = 0;  ///< N of /dev/nvidiaN
  std::string name;
  Mib memory = 97887;   ///< total
  Mib reserved = 0;     ///< part of `used` in memory v1, apart in v2
  Mib baseline = 4;     ///< used while nobody holds the GPU
  Mib residue = 0;      ///< held by no process from the start
  int utilization = 0;  ///< per cent, what the driver reports
  GpuState state = GpuState::ok;
  QueryState memory_query = QueryState::ok;
  QueryState process_query = QueryState::ok;
  Recovery recovery = Recovery::none;
};

struct MachineSpec {
  std::vector<GpuSpec> gpus;  ///< by index; may be empty
  std::string driver = "580.95.05";
  bool hidepid = false;  ///< /proc mounted with hidepid=2
};

enum class PidMode { caller, global };
/// What the driver says about the memory of one process.
enum class MemoryFigures { ok, na, zero };

struct DriverSpec {
  NvmlMode nvml = NvmlMode::ok;
  Era era = Era::e580;
  PidMode pids = PidMode::caller;
  MemoryFigures process_memory = MemoryFigures::ok;
  std::vector<std::uint32_t> garbage_pids;
};

enum class How {
  compute,
  graphics,
  mps,
  files,
  ctl,
  uvm,
  inherited,
  mapped,
  thread,
  in_flight,
  path_only,
  managed,
  exported
};

/// When a client's memory falls after its last reference.
struct Release {
  Seconds after = 0;  ///< -1: never
  int steps = 1;      ///< equal parts, the last one at `after`
  [[nodiscard]] bool never() const noexcept { return after < 0; }
  bool operator==(const Release&) const = default;
};

/// One entry of `holds`: one client, or references to the clients of `from`.
struct HoldSpec {
  std::vector<int> gpus;  ///< indices; may be empty with `from`, ctl and uvm
  Mib memory = 0;         ///< on each of `gpus`
  How how = How::compute;
  std::string from;                ///< actor name; empty: none
  std::vector<std::string> nodes;  ///< inherited: the subset kept, "ctl" "uvm" "gpuN"; empty: all
  int count = 0;                   ///< descriptors; 0: what a CUDA process opens
  Release release;
  Position at;
};

enum class StartTime { begin, later };
enum class OnTerm { exit, ignore, slow, fork, let_go };
enum class OnParentExit { stay, exit };
enum class OnKill { exit, stuck, exiting };
enum class ActorState { running, stopped, traced, frozen, zombie, zombie_leader, spinning, dumping };
enum class FreezerVersion { v2, v1 };

inline constexpr std::string_view kShell = "shell";  ///< ActorSpec::parent: the machine's session leader
inline constexpr std::string_view kInit = "init";    ///< ActorSpec::parent: pid 1

/// One process. `Case::actors` holds parents before their children, otherwise the order of the file.
struct ActorSpec {
  std::string name;  ///< unique
  StartTime start = StartTime::begin;
  std::string parent{kShell};     ///< another actor's name, kShell or kInit
  std::vector<std::string> argv;  ///< never empty: without `argv` it is {name}
  std::string title;              ///< empty: argv stays
  std::string exe;                ///< absolute; empty: the actor program itself
  std::map<std::string, std::string> env;
  User user = User::root;
  bool session = false;  ///< as written; what "shell" and "init" imply is up to the machine
  bool group = false;
  bool detached = false;
  bool subreaper = false;
  bool pipe = false;   ///< resolved: the file's word, or the default of lab.md
  std::string cgroup;  ///< absolute; empty: the parent's
  std::string pidns;   ///< empty: the machine's own; a child is in its parent's unless it names another
  int listen = 0;      ///< TCP port on loopback; 0: none
  OnTerm on_term = OnTerm::exit;
  Seconds slow = 5;
  OnParentExit on_parent_exit = OnParentExit::stay;
  OnKill on_kill = OnKill::exit;
  Seconds stuck = 0;  ///< 0: for ever
  ActorState state = ActorState::running;
  FreezerVersion freezer = FreezerVersion::v2;  ///< of a frozen one
  std::vector<std::string> respawn;             ///< names of children
  std::vector<HoldSpec> holds;
  Position at;
};

struct UnitSpec {
  std::string name;
  std::string main;  ///< actor name
  bool restart_always = false;
  Position at;
};

/// An MPS control daemon that answers.
struct MpsSpec {
  std::string control;               ///< actor that is the daemon: it answers while that lives
  std::string server;                ///< actor
  std::vector<std::string> clients;  ///< actors that it lists while they have an "mps" context
  bool silent = false;               ///< takes questions and answers none
  bool refuses = false;              ///< lists clients and ends none
  bool clients_exit = true;          ///< what a client does whose context was ended
  Position at;
};

struct ShmSpec {
  std::string name;  ///< file below /dev/shm; ignored with `sysv`
  Mib size = 1;
  User user = User::root;
  Seconds age = 0;
  std::vector<std::string> mapped_by, opened_by, locked_by;  ///< actor names, globs resolved
  bool sysv = false;
  Position at;
};

/// A JSON value as a case writes it; never null, which TOML has not.
struct JsonLiteral {
  std::string text;  ///< serialised JSON
  bool operator==(const JsonLiteral&) const = default;
};

namespace expect {
/// Any value: compares equal, numbers by value.
struct Equal {
  JsonLiteral value;
};
/// "*": there, and not null.
struct Present {};
/// "96610MiB": that many bytes.
struct MibOf {
  Mib mib = 0;
};
struct Between {
  std::optional<double> min, max;
};
/// A text that holds `text`, or an array with such a text; `text` may hold {pid:NAME}.
struct Contains {
  std::string text;
};
struct Length {
  std::uint64_t length = 0;
};
}  // namespace expect

/// One entry of `json`. `pointer` and texts may hold {pid:NAME}.
struct JsonExpectation {
  std::string pointer;
  std::variant<expect::Equal, expect::Present, expect::MibOf, expect::Between, expect::Contains, expect::Length> wanted;
  Position at;
};

/// What has to be true when a command has returned. An empty or absent member is not checked. Lists of names hold globs
/// as written, because copies and restarted processes get their names only at run time.
struct Expectations {
  Seconds within = 60;  ///< from the command's start
  Seconds at_least = 0;
  std::vector<int> exit;  ///< acceptable codes
  std::vector<std::string> gone, alive;
  std::map<int, Mib> used;                                    ///< by GPU index
  std::vector<std::pair<std::string, std::string>> ended_by;  ///< glob, "TERM"... or "exit"
  std::vector<std::string> shm_gone, shm_kept;
  std::vector<JsonExpectation> json;
  std::vector<std::string> has, lacks;
  std::string same_bytes_as;                                   ///< name of an earlier step
  std::vector<std::pair<std::string, std::string>> json_same;  ///< pointer, name of an earlier step
};

namespace verb {
struct Signal {
  struct Target {
    std::string name;    ///< glob
    bool group = false;  ///< "group:NAME": its process group
  };
  std::vector<Target> to;
  int number = 0;
  std::string word;  ///< "KILL"
};
struct Exits {
  std::vector<std::string> names;
};
struct Sleep {
  Seconds seconds = 0;
};
struct Start {
  std::vector<std::string> names;
};
struct PidReuse {
  std::string of, by;
};
struct Run {
  std::vector<std::string> argv;  ///< may hold {pid:NAME}
  User user = User::root;
  bool tty = false;
  std::string input;
  std::string in_pidns;
  std::string child_of{kShell};
  std::string save;
  std::string background;  ///< not empty: do not wait, and `expect` is empty
  Expectations expect;
};
struct Finish {
  std::string background;
  Expectations expect;
};
}  // namespace verb

struct Step {
  std::variant<verb::Signal, verb::Exits, verb::Sleep, verb::Start, verb::PidReuse, verb::Run, verb::Finish> verb;
  std::string name;  ///< for same_bytes_as and json_same of later steps; may be empty
  Position at;       ///< of the verb
};

struct Case {
  std::string path;  ///< as given
  std::string name;  ///< file name without .toml
  std::string title;
  std::vector<std::string> report;
  std::string wrong;
  MachineSpec machine;
  DriverSpec driver;
  std::vector<ActorSpec> actors;
  std::vector<UnitSpec> units;
  std::vector<MpsSpec> mps;
  std::vector<ShmSpec> shms;
  std::vector<Step> steps;

  /// The actor of exactly that name, or nullptr.
  [[nodiscard]] const ActorSpec* actor(std::string_view wanted) const noexcept;
};

/// "root", "alice", "bob".
[[nodiscard]] std::string_view word_of(User user) noexcept;
/// "TERM" for 15, without SIG; empty for a number that no case can name.
[[nodiscard]] std::string_view signal_word(int number) noexcept;
/// 15 for "TERM"; nothing for other words.
[[nodiscard]] std::optional<int> signal_number(std::string_view word) noexcept;
/// Whether `exe` is a shell (sh, bash, dash, zsh, ... in any folder).
[[nodiscard]] bool is_shell(std::string_view exe) noexcept;
/// Whether a glob of a case (`*`, `?`, `[...]`) matches the whole of `name`.
[[nodiscard]] bool glob_matches(std::string_view glob, std::string_view name);

}  // namespace lab
