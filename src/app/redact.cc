// SPDX-License-Identifier: Apache-2.0
// What is replaced: the host's name and boot, users, uids of people, paths that are not the system's, command lines
// beyond the program, titles, control groups, containers, jobs, serial identifiers of GPUs. What stays is what standing
// and plans rest on: numbers of processes, times, conditions, who is whose parent, pipes, what is open. A new field of
// the model that a person chose the bytes of needs a line here.
#include "app/redact.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "attribute/programs.h"
#include "attribute/protection.h"
#include "base/text.h"

namespace vacate {
namespace {

using Text = std::string_view;

constexpr uid_t kFirstHumanUid = 1000;  // login.defs, UID_MIN

/// The same stand-in for the same original, counted in the order in which they are met.
template <class Key>
class StandIns {
 public:
  std::size_t number_of(const Key& original) { return numbers_.emplace(original, numbers_.size() + 1).first->second; }

 private:
  std::map<Key, std::size_t> numbers_;
};

/// Of a text that vacate worded: what could be a path outside the system's own.
std::string without_paths(Text text) {
  std::string kept;
  for (const auto word : split(text, ' ')) {
    const bool is_private = word.find('/') != Text::npos && !word.starts_with("/dev/") && !word.starts_with("/proc/") &&
                            !word.starts_with("/sys/");
    if (!kept.empty()) kept += ' ';
    kept += is_private ? Text("...") : word;
  }
  return kept;
}

bool is_hexadecimal(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/// Where 64 hexadecimal digits begin that no further digit stands beside.
std::size_t find_id(Text text) {
  static constexpr std::size_t kLength = 64;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_hexadecimal(text[end])) ++end;
    if (end - i == kLength) return i;
    i = end + 1;
  }
  return Text::npos;
}

/// Parts of control group paths that are the same on every machine.
bool is_common_part(Text part) {
  static constexpr auto kCommon = std::to_array<Text>({"",
                                                       "..",
                                                       "system.slice",
                                                       "user.slice",
                                                       "machine.slice",
                                                       "init.scope",
                                                       "app.slice",
                                                       "session.slice",
                                                       "background.slice",
                                                       "kubepods",
                                                       "kubepods.slice",
                                                       "kubepods-burstable.slice",
                                                       "kubepods-besteffort.slice",
                                                       "burstable",
                                                       "besteffort",
                                                       "guaranteed",
                                                       "docker",
                                                       "lxc",
                                                       "lxc.payload",
                                                       "slurm",
                                                       "slurmstepd.scope",
                                                       "system",
                                                       "user",
                                                       "task_special",
                                                       "step_batch",
                                                       "step_extern",
                                                       "step_interactive",
                                                       "container",
                                                       "payload",
                                                       "supervisor",
                                                       "libpod_parent",
                                                       "machine",
                                                       "pbspro",
                                                       "pbspro.slice",
                                                       "jobid",
                                                       "lsf",
                                                       "htcondor"});
  return std::find(kCommon.begin(), kCommon.end(), part) != kCommon.end();
}

bool is_number(Text text) { return parse_unsigned(text).has_value(); }

class Redactor {
 public:
  [[nodiscard]] Snapshot redact(Snapshot s);

 private:
  [[nodiscard]] uid_t uid(uid_t original) {
    return original < kFirstHumanUid ? original : static_cast<uid_t>(kFirstHumanUid + uids_.number_of(original));
  }
  [[nodiscard]] std::string user(const std::string& name, const Reading<uid_t>& redacted_uid);
  [[nodiscard]] std::string path(const std::string& original);
  [[nodiscard]] std::string name(Text original) {
    return fmt::format("name-{}", names_.number_of(std::string(original)));
  }
  [[nodiscard]] std::string container(const std::string& id);
  [[nodiscard]] std::string job(Text number) { return std::to_string(jobs_.number_of(std::string(number))); }
  [[nodiscard]] std::string uid_text(Text number);
  [[nodiscard]] std::string group_part(Text part);
  [[nodiscard]] std::optional<std::string> person_part(Text part);
  [[nodiscard]] std::optional<std::string> named_part(Text part);
  [[nodiscard]] std::string control_group(const std::string& original);
  [[nodiscard]] std::string program(Text shown, const Process& process);
  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string>& argv, const Process& process);
  void redact(Process& process);
  void redact(ServiceManager& services);
  void redact(std::vector<Existence>& list, bool are_jobs);

  StandIns<uid_t> uids_;
  StandIns<std::string> users_, folders_, names_, ids_, jobs_, titles_, gpus_;
};

std::string Redactor::user(const std::string& name, const Reading<uid_t>& redacted_uid) {
  if (name.empty()) return name;
  if (!redacted_uid.known()) return fmt::format("somebody-{}", users_.number_of(name));
  if (*redacted_uid == 0) return "root";
  if (*redacted_uid < kFirstHumanUid) return fmt::format("system-{}", *redacted_uid);
  return fmt::format("user-{}", *redacted_uid - kFirstHumanUid);
}

/// The file's name stays, and the folder where it is the system's: protection and shells are known by both.
std::string Redactor::path(const std::string& original) {
  if (original.empty() || original.front() != '/') return original.empty() ? original : name(original);
  const Text file = base_name(original);
  const std::string folder = original.substr(0, original.size() - file.size());
  const bool is_site = folder.starts_with("/opt/") || folder.starts_with("/usr/local/");
  const bool is_plain = folder == "/usr/local/bin/" || folder == "/usr/local/sbin/";
  if (is_system_path(original) && (!is_site || is_plain)) return original;
  const Text root = !is_site ? "/redacted" : folder.starts_with("/opt/") ? "/opt" : "/usr/local";
  return fmt::format("{}/{}/{}", root, folders_.number_of(folder), file);
}

std::string Redactor::container(const std::string& id) {
  if (find_id(id) != 0 || id.size() != 64) return name(id);
  // In front, as people and sentences name a container by its first twelve digits.
  return fmt::format("{:012x}{:052}", ids_.number_of(id), 0);
}

std::string Redactor::uid_text(Text number) {
  const auto original = parse_unsigned(number);
  return original && *original <= 0xFFFFFFFEU ? std::to_string(uid(static_cast<uid_t>(*original))) : name(number);
}

/// Parts that name a user, a job, a session.
std::optional<std::string> Redactor::person_part(Text part) {
  struct Form {
    Text prefix, suffix;
  };
  static constexpr auto kUsers = std::to_array<Form>({{"user-", ".slice"}, {"user@", ".service"}, {"uid_", ""}});
  const auto middle = [&](const Form& form) -> std::optional<Text> {
    if (part.size() <= form.prefix.size() + form.suffix.size()) return std::nullopt;
    if (!part.starts_with(form.prefix) || !part.ends_with(form.suffix)) return std::nullopt;
    const Text inside = part.substr(form.prefix.size(), part.size() - form.prefix.size() - form.suffix.size());
    return is_number(inside) ? std::optional(inside) : std::nullopt;
  };
  for (const auto& form : kUsers)
    if (const auto number = middle(form)) return fmt::format("{}{}{}", form.prefix, uid_text(*number), form.suffix);
  for (const auto prefix : {Text("job_"), Text("job.")})
    if (const auto number = middle({prefix, ""})) return fmt::format("{}{}", prefix, job(*number));
  for (const auto& form : {Form{"session-", ".scope"}, Form{"step_", ""}, Form{"task_", ""}})
    if (middle(form)) return std::string(part);
  return std::nullopt;
}

/// Parts that hold a name which somebody gave, between what the runtime puts around it.
std::optional<std::string> Redactor::named_part(Text part) {
  static constexpr auto kPrefixes = std::to_array<Text>(
      {"lxc.payload.", "lxc.monitor.", "systemd-nspawn@", "machine-qemu\\x2d", "machine-", "pbspro-"});
  static constexpr auto kSuffixes = std::to_array<Text>(
      {"_slurmstepd.scope", ".service", ".scope", ".slice", ".mount", ".socket", ".timer", ".swap"});
  Text prefix, suffix;
  for (const auto each : kPrefixes)
    if (prefix.empty() && part.starts_with(each)) prefix = each;
  for (const auto each : kSuffixes)
    if (suffix.empty() && part.ends_with(each) && part.size() > prefix.size() + each.size()) suffix = each;
  if (prefix.empty() && suffix.empty()) return std::nullopt;
  std::string middle(part.substr(prefix.size(), part.size() - prefix.size() - suffix.size()));
  for (auto at = middle.find("\\x2d"); prefix == "machine-" && at != std::string::npos; at = middle.find("\\x2d"))
    middle.replace(at, 4, "-");
  // A stand-in of a machine has a dash, which would be escaped.
  std::string given = name(middle);
  if (prefix.starts_with("machine-")) given.replace(given.find('-'), 1, "\\x2d");
  return fmt::format("{}{}{}", prefix, given, suffix);
}

std::string Redactor::group_part(Text part) {
  if (is_common_part(part)) return std::string(part);
  if (const auto at = find_id(part); at != Text::npos) {
    static constexpr auto kAround = std::to_array<Text>({"", "docker-", "libpod-", "libpod-conmon-", "libpod-payload-",
                                                         "cri-containerd-", "crio-", "crio-conmon-", "nerdctl-"});
    const Text before = part.substr(0, at);
    const Text after = part.substr(at + 64);
    const bool is_runtime = std::find(kAround.begin(), kAround.end(), before) != kAround.end();
    const Text colon = before.ends_with(":cri-containerd:") ? "pod.slice:cri-containerd:" : "name-";
    return fmt::format("{}{}{}", is_runtime ? before : colon, container(std::string(part.substr(at, 64))),
                       after == ".scope" || after == ".slice" ? after : "");
  }
  if (const auto person = person_part(part)) return *person;
  // Kubernetes: the uid of a pod, alone or at the end of its slice.
  const auto dash = part.starts_with("kubepods-") ? part.rfind("-pod") : Text::npos;
  if (part.starts_with("pod") || dash != Text::npos)
    return fmt::format("{}pod{}{}", dash == Text::npos ? Text() : part.substr(0, dash + 1),
                       names_.number_of(std::string(part)), part.ends_with(".slice") ? ".slice" : "");
  if (const auto named = named_part(part)) return *named;
  return name(part);
}

std::string Redactor::control_group(const std::string& original) {
  std::string result;
  bool first = true;
  for (const auto part : split(original, '/')) {
    if (!std::exchange(first, false)) result += '/';
    result += group_part(part);
  }
  return result;
}

/// The last part of a command's name where it is that of the executable or of a program that is known everywhere; else
/// it is a title that the process gave itself.
std::string Redactor::program(Text shown, const Process& process) {
  const Text plain = shown.starts_with('-') ? shown.substr(1) : shown;
  const bool is_executable = process.exe.known() && !plain.empty() && base_name(*process.exe).starts_with(plain);
  if (process.kernel_thread || plain.empty() || is_executable || has_protected_name(plain)) return std::string(shown);
  return fmt::format("{}title-{}", shown.starts_with('-') ? "-" : "", titles_.number_of(std::string(shown)));
}

/// The program alone, and what makes Python's trackers known.
std::vector<std::string> Redactor::arguments(const std::vector<std::string>& argv, const Process& process) {
  if (argv.empty()) return argv;
  std::vector<std::string> kept;
  const std::string& first = argv.front();
  const Text file = base_name(first);
  // A leading dash makes a login shell: it must neither come nor go.
  kept.push_back(first.starts_with('-') == file.starts_with('-') ? program(file, process)
                 : first.starts_with('-')                        ? "-title"
                                                                 : "title");
  for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
    if (argv[i] != "-c") continue;
    for (const auto* tracker : {"resource_tracker", "semaphore_tracker"}) {
      const auto phrase = fmt::format("multiprocessing.{} import main", tracker);
      if (argv[i + 1].find(phrase) == std::string::npos) continue;
      kept.insert(kept.end(), {"-c", "from " + phrase});
      return kept;
    }
  }
  return kept;
}

void Redactor::redact(Process& process) {
  process.comm = program(process.comm, process);
  if (process.argv.known()) process.argv = arguments(*process.argv, process);
  if (process.exe.known()) process.exe = path(*process.exe);
  if (process.uid.known()) process.uid = uid(*process.uid);
  process.user = user(process.user, process.uid);
  if (process.login_uid) process.login_uid = uid(*process.login_uid);
  process.login_user =
      user(process.login_user, process.login_uid ? Reading<uid_t>(*process.login_uid) : Unknown::failed);
  process.cgroup = control_group(process.cgroup);
}

void Redactor::redact(ServiceManager& services) {
  for (auto& unit : services.units) unit.name = group_part(unit.name);
  std::sort(services.units.begin(), services.units.end(),
            [](const ServiceUnit& a, const ServiceUnit& b) { return a.name < b.name; });
}

void Redactor::redact(std::vector<Existence>& list, bool are_jobs) {
  for (auto& each : list) {
    each.id = are_jobs ? job(each.id) : container(each.id);
    each.source = without_paths(each.source);
  }
  std::sort(list.begin(), list.end(), [](const Existence& a, const Existence& b) { return a.id < b.id; });
}

Snapshot Redactor::redact(Snapshot s) {
  s.host.boot_id = "00000000-0000-0000-0000-000000000000";
  s.host.hostname = "host";
  s.caller.uid = uid(s.caller.uid);
  for (auto& cgroup : s.caller.cgroups) cgroup = control_group(cgroup);
  std::sort(s.caller.cgroups.begin(), s.caller.cgroups.end());
  for (auto& group : s.frozen) group.path = control_group(group.path);
  std::sort(s.frozen.begin(), s.frozen.end(), [](const FrozenGroup& a, const FrozenGroup& b) {
    return std::tie(a.path, a.freezer) < std::tie(b.path, b.freezer);
  });
  s.driver.detail = without_paths(s.driver.detail);
  for (auto& node : s.nodes)
    if (!node.path.starts_with("/dev/")) node.path = path(node.path);
  for (auto& gpu : s.gpus)
    if (!gpu.uuid.empty()) gpu.uuid = fmt::format("GPU-{:08x}-0000-0000-0000-000000000000", gpus_.number_of(gpu.uuid));
  for (auto& process : s.processes) redact(process);
  for (auto& reference : s.references) reference.detail = without_paths(reference.detail);
  for (auto& hidden : s.hidden_references)
    if (!hidden.path.starts_with("/dev/")) hidden.path = hidden.path.empty() ? "" : "/redacted/" + name(hidden.path);
  redact(s.services);
  redact(s.containers, false);
  redact(s.jobs, true);
  for (auto& daemon : s.mps_daemons) {
    if (daemon.uid.known()) daemon.uid = uid(*daemon.uid);
    daemon.pipe_directory = path(daemon.pipe_directory);
    daemon.detail = without_paths(daemon.detail);
  }
  for (auto& shell : s.shells) shell = path(shell);
  for (auto& spot : s.visibility.blind_spots) spot.detail = without_paths(spot.detail);
  std::sort(s.visibility.blind_spots.begin(), s.visibility.blind_spots.end());
  return s;
}

}  // namespace

Snapshot redacted(const Snapshot& snapshot) { return Redactor{}.redact(snapshot); }

}  // namespace vacate
