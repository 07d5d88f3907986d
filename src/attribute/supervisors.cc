// SPDX-License-Identifier: Apache-2.0
#include "attribute/supervisors.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "attribute/parentage.h"
#include "attribute/programs.h"
#include "base/text.h"

namespace vacate {
namespace {

using Text = std::string_view;

struct Launcher {
  Text kind;
  Text name;  // of an executable, of a script among the first words, or of a module after -m
};
constexpr auto kLaunchers = std::to_array<Launcher>({
    {"torchrun", "torchrun"},
    {"torchrun", "torch.distributed.run"},
    {"torchrun", "torch.distributed.launch"},
    {"accelerate", "accelerate"},
    {"accelerate", "accelerate.commands.launch"},
    {"accelerate", "accelerate.commands.accelerate_cli"},
    {"deepspeed", "deepspeed"},
    {"deepspeed", "deepspeed.launcher.launch"},
    {"deepspeed", "deepspeed.launcher.runner"},
    {"ray", "raylet"},
    {"supervisord", "supervisord"},
    {"mpi", "mpirun"},
    {"mpi", "mpiexec"},
    {"mpi", "mpiexec.hydra"},
    {"mpi", "orterun"},
    {"mpi", "orted"},
    {"mpi", "prte"},
    {"mpi", "prterun"},
    {"mpi", "prted"},
    {"mpi", "hydra_pmi_proxy"},
});
// Interpreter, a few options of its own, then the script or -m and the module.
constexpr std::size_t kFirstWords = 6;

std::optional<Text> launcher_kind(Text name) {
  const auto* at =
      std::find_if(kLaunchers.begin(), kLaunchers.end(), [&](const Launcher& l) { return l.name == name; });
  return at == kLaunchers.end() ? std::nullopt : std::optional(at->kind);
}

bool is_interpreter(Text name) {
  return name.starts_with("python") || name.starts_with("pypy") || name == "sh" || name == "bash";
}

/// The kind of launcher that the process is by its executable or by the program that its command line runs. An argument
/// that merely bears such a name ("vim torchrun") does not count.
std::optional<Text> launcher_kind_of(const Process& process) {
  if (process.exe.known()) {
    if (const auto kind = launcher_kind(base_name(*process.exe))) return kind;
  }
  if (!process.argv.known() || process.argv->empty()) return std::nullopt;
  const auto& argv = *process.argv;
  if (const auto kind = launcher_kind(base_name(argv[0]))) return kind;
  if (!is_interpreter(base_name(argv[0]))) return std::nullopt;
  for (std::size_t i = 1; i < std::min(argv.size(), kFirstWords); ++i) {
    if (argv[i] == "-m" && i + 1 < argv.size()) return launcher_kind(argv[i + 1]);
    if (!argv[i].starts_with('-')) return launcher_kind(base_name(argv[i]));
  }
  return std::nullopt;
}

/// --max-restarts=3, --max_restarts 3: how often torchrun and accelerate start workers again; never by default.
Restarts restarts_by_argv(const Process& launcher) {
  const auto& argv = *launcher.argv;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    Text word = argv[i];
    if (!word.starts_with("--max-restarts") && !word.starts_with("--max_restarts")) continue;
    const auto equals = word.find('=');
    const Text value = equals != Text::npos  ? word.substr(equals + 1)
                       : i + 1 < argv.size() ? static_cast<Text>(argv[i + 1])
                                             : Text();
    const auto times = parse_unsigned(value);
    if (!times) return Restarts::unknown;
    return *times > 0 ? Restarts::yes : Restarts::no;
  }
  return Restarts::no;
}

Restarts restarts_of(Text kind, const Process& launcher) {
  if (kind == "mpi") return Restarts::no;
  const bool says_so = (kind == "torchrun" || kind == "accelerate") && launcher.argv.known();
  return says_so ? restarts_by_argv(launcher) : Restarts::unknown;
}

// No tree of launchers is deeper; without an end a long chain of processes would cost its square.
constexpr std::size_t kHighest = 64;

class Search {
 public:
  Search(const Census& census, const Origins& origins, const Process& process)
      : census_(census), process_(process), origin_(origins.of(process.key.pid)) {
    auto steps = kHighest;
    for (const auto* above = census.living(process.ppid); above != nullptr && steps > 0; --steps) {
      ancestors_.push_back(above);
      above = census.living(above->ppid);
    }
  }

  std::optional<Supervisor> find() const {
    if (auto found = by_launcher()) return found;
    if (auto found = by_unit()) return found;
    if (auto found = by_container()) return found;
    if (auto found = by_job()) return found;
    return by_terminal();
  }

 private:
  std::optional<Supervisor> by_launcher() const {
    for (const auto* above : ancestors_) {
      const auto kind = launcher_kind_of(*above);
      if (!kind) continue;
      const auto words = above->argv.known() && !above->argv->empty() ? base_name(above->argv->front()) : Text();
      return Supervisor{std::string(*kind), std::string(words.empty() ? static_cast<Text>(above->comm) : words),
                        above->key.pid, restarts_of(*kind, *above)};
    }
    return std::nullopt;
  }

  std::optional<Supervisor> by_unit() const {
    if (origin_.user_manager && origin_.unit && origin_.unit->ends_with(".service") && !origin_.container)
      return Supervisor{"user-unit", *origin_.unit, 0, Restarts::unknown};
    if (!origin_.service || is_service_of_others_work(*origin_.service)) return std::nullopt;
    const auto& units = census_.snapshot().services.units;
    const auto unit = std::find_if(units.begin(), units.end(),
                                   [&](const ServiceUnit& each) { return each.name == *origin_.service; });
    if (unit == units.end()) return Supervisor{"unit", *origin_.service, 0, Restarts::unknown};
    if (unit->active_state == "inactive" || unit->active_state == "failed") return std::nullopt;
    const auto* main = census_.living(unit->main_pid);
    if (main == nullptr) return Supervisor{"unit", unit->name, 0, Restarts::unknown};
    const bool is_its_tree = main->key.pid == process_.key.pid || descends_from(census_, process_, main->key.pid);
    if (!is_its_tree && main->key.start_ticks > process_.key.start_ticks) return std::nullopt;
    // What is not below the main process is not what Restart= is about.
    const auto restarts = !is_its_tree || unit->restart.empty() ? Restarts::unknown
                          : unit->restart == "no"               ? Restarts::no
                                                                : Restarts::yes;
    return Supervisor{"unit", unit->name, main->key.pid, restarts};
  }

  std::optional<Supervisor> by_container() const {
    if (!origin_.container) return std::nullopt;
    const auto& containers = census_.snapshot().containers;
    const bool is_gone = std::any_of(containers.begin(), containers.end(), [&](const Existence& entry) {
      return entry.id == *origin_.container && entry.exists.known() && !*entry.exists;
    });
    if (is_gone) return std::nullopt;
    const auto at = std::find_if(ancestors_.begin(), ancestors_.end(), [&](const Process* above) {
      return program_of(*above, census_.snapshot().shells) == Program::container_runtime;
    });
    return Supervisor{"container", *origin_.container, at == ancestors_.end() ? 0 : (*at)->key.pid, Restarts::unknown};
  }

  std::optional<Supervisor> by_job() const {
    if (!origin_.job) return std::nullopt;
    const auto& jobs = census_.snapshot().jobs;
    const bool has_ended = std::any_of(jobs.begin(), jobs.end(), [&](const Existence& entry) {
      return entry.id == origin_.slurm_job && entry.exists.known() && !*entry.exists;
    });
    if (has_ended) return std::nullopt;
    const auto at = std::find_if(ancestors_.begin(), ancestors_.end(), [](const Process* above) {
      return above->exe.known() && base_name(*above->exe) == "slurmstepd";
    });
    return Supervisor{origin_.slurm_job ? "slurm-job" : "batch-job", *origin_.job,
                      at == ancestors_.end() ? 0 : (*at)->key.pid, Restarts::unknown};
  }

  std::optional<Supervisor> by_terminal() const {
    std::optional<Supervisor> shell;
    for (const auto* above : ancestors_) {
      const auto program = program_of(*above, census_.snapshot().shells);
      const auto name = above->exe.known() ? base_name(*above->exe) : Text();
      if (program == Program::login && (name == "tmux" || name == "screen"))
        return Supervisor{std::string(name), std::string(name), above->key.pid, Restarts::no};
      if (!shell && program == Program::shell && above->sid == above->key.pid && above->sid == process_.sid)
        shell = Supervisor{"shell-job", std::string(name), above->key.pid, Restarts::no};
    }
    return shell;
  }

  const Census& census_;
  const Process& process_;
  const Origin& origin_;
  std::vector<const Process*> ancestors_;
};

}  // namespace

std::optional<Supervisor> supervisor_of(const Census& census, const Origins& origins, const Process& process) {
  return Search(census, origins, process).find();
}

}  // namespace vacate
