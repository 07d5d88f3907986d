// SPDX-License-Identifier: Apache-2.0
#include "os/proc_parse.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"
#include "model/origin.h"
#include "model/process.h"

namespace vacate {
namespace {

/// Takes the next word off `text`; words are parted by blanks and tabs. Empty: no more.
std::string_view take_word(std::string_view& text) noexcept {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return text = {};
  const auto end = text.find_first_of(" \t\n", first);
  const auto word = text.substr(first, end == std::string_view::npos ? end : end - first);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end);
  return word;
}

/// Takes the next line off `text`, without its line end.
std::string_view take_line(std::string_view& text) noexcept {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::optional<std::uint64_t> parse_octal(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 8);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

template <class T>
std::optional<T> parse_within(std::string_view text, std::uint64_t largest = std::numeric_limits<T>::max()) noexcept {
  const auto value = parse_unsigned(text);
  if (!value || *value > largest) return std::nullopt;
  return static_cast<T>(*value);
}

std::optional<pid_t> parse_pid(std::string_view text) noexcept { return parse_within<pid_t>(text, kLargestPid); }

/// "name" of a line "name:\tvalue" and its value; an empty name where there is no colon.
struct Field {
  std::string_view name, value;
};
Field parse_field(std::string_view line) noexcept {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return {};
  return {line.substr(0, colon), trim(line.substr(colon + 1))};
}

}  // namespace

std::optional<ProcStat> parse_stat(std::string_view text) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  std::array<std::string_view, 20> field;  // state is field 3 of proc(5), start time field 22
  auto rest = text.substr(close + 1);
  for (auto& word : field) word = take_word(rest);

  const auto pid = parse_pid(trim(text.substr(0, open)));
  const auto ppid = parse_pid(field[1]);
  // Of a process whose leader is outside this pid namespace group and session are 0; of a reaped one they are -1.
  const auto pgid = parse_signed(field[2]);
  const auto sid = parse_signed(field[3]);
  const auto tty = parse_signed(field[4]);
  const auto flags = parse_within<std::uint32_t>(field[6]);
  const auto threads = parse_signed(field[17]);
  const auto start = parse_unsigned(field[19]);
  if (!pid || !ppid || !pgid || !sid || !tty || !flags || !threads || !start || field[0].size() != 1)
    return std::nullopt;
  if (*pgid > kLargestPid || *sid > kLargestPid) return std::nullopt;
  ProcStat stat;
  stat.pid = *pid;
  stat.comm = std::string(text.substr(open + 1, close - open - 1));
  stat.state = field[0].front();
  stat.ppid = *ppid;
  stat.pgid = *pgid > 0 ? static_cast<pid_t>(*pgid) : 0;
  stat.sid = *sid > 0 ? static_cast<pid_t>(*sid) : 0;
  stat.tty = static_cast<std::uint32_t>(*tty);
  stat.flags = *flags;
  stat.threads = *threads > 0 && *threads <= kLargestPid ? static_cast<unsigned>(*threads) : 0;
  stat.start_ticks = *start;
  return stat;
}

ProcStatus parse_status_fields(std::string_view text) {
  ProcStatus status;
  while (!text.empty()) {
    auto [name, value] = parse_field(take_line(text));
    if (name == "Uid") {
      take_word(value);  // the real one
      status.effective_uid = parse_within<uid_t>(take_word(value));
    } else if (name == "NSpid") {
      status.ns_pids.clear();
      for (auto word = take_word(value); !word.empty(); word = take_word(value)) {
        const auto pid = parse_pid(word);
        if (!pid) {
          status.ns_pids.clear();
          break;
        }
        status.ns_pids.push_back(*pid);
      }
    } else if (name == "CoreDumping") {
      status.core_dumping = value == "1";
    } else if (name == "Seccomp") {
      status.filters_calls = value != "0";
    } else if (name == "VmLck") {
      status.locked_kib = parse_unsigned(take_word(value));
    } else if (name == "VmPin") {
      status.pinned_kib = parse_unsigned(take_word(value));
    } else if (name == "CapEff") {
      status.effective_capabilities = parse_hex(value);
    }
  }
  return status;
}

std::optional<FdInfo> parse_fdinfo(std::string_view text) {
  FdInfo info;
  bool has_flags = false;
  bool in_user_files = false;
  while (!text.empty()) {
    const auto [name, value] = parse_field(take_line(text));
    if (name == "flags" && !has_flags) {
      const auto flags = parse_octal(value);
      if (!flags || *flags > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
      info.flags = static_cast<std::uint32_t>(*flags);
      has_flags = true;
    } else if (name == "scm_fds") {
      info.scm_fds = parse_within<unsigned>(value).value_or(0);
    } else if (name == "exp_name" && info.exporter.empty()) {
      info.exporter = std::string(value);
    } else if (name == "UserFiles") {
      in_user_files = true;
    } else if (in_user_files && parse_unsigned(trim(name))) {
      info.user_files.emplace_back(value);
    } else {
      in_user_files = false;
    }
  }
  if (!has_flags) return std::nullopt;
  return info;
}

std::optional<MapsLine> parse_maps_line(std::string_view line) {
  MapsLine parsed;
  auto rest = line;
  parsed.range = take_word(rest);
  const auto permissions = take_word(rest);
  const auto offset = take_word(rest);
  const auto device = take_word(rest);
  const auto inode = parse_unsigned(take_word(rest));
  const auto colon = device.find(':');
  if (permissions.size() != 4 || offset.empty() || colon == std::string_view::npos || !inode) return std::nullopt;
  const auto major = parse_hex(device.substr(0, colon));
  const auto minor = parse_hex(device.substr(colon + 1));
  if (!major || !minor || *major > 0xFFFFFFFFU || *minor > 0xFFFFFFFFU) return std::nullopt;
  if (parsed.range.find('-') == std::string_view::npos || parsed.range.find('/') != std::string_view::npos)
    return std::nullopt;
  parsed.device = makedev(static_cast<unsigned>(*major), static_cast<unsigned>(*minor));
  parsed.inode = *inode;
  const auto path = rest.find_first_not_of(' ');
  parsed.path = path == std::string_view::npos ? std::string_view{} : rest.substr(path);
  return parsed;
}

std::string parse_cgroup(std::string_view text) {
  // In the order of how much they tell. The ones after pids are only looked at for a container or a job.
  static constexpr std::array<std::string_view, 8> kTelling = {"",        "name=systemd", "memory",  "pids",
                                                               "freezer", "cpuset",       "devices", "cpu"};
  static constexpr std::size_t kUsual = 4;
  std::array<std::string_view, kTelling.size()> paths;
  while (!text.empty()) {
    const auto line = take_line(text);
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos || !parse_unsigned(line.substr(0, first))) continue;
    for (const auto controller : split(line.substr(first + 1, second - first - 1), ',')) {
      for (std::size_t i = 0; i < kTelling.size(); ++i)
        if (controller == kTelling.at(i)) paths.at(i) = line.substr(second + 1);
    }
  }
  // Slurm and others make cgroups in some v1 hierarchies only: systemd's own then shows the daemon that started the
  // job, and taken for the job's service that daemon's restart would look like the end of the job.
  for (const auto path : paths) {
    const auto origin = parse_origin(path);
    if (origin.container || origin.job) return std::string(path);
  }
  for (std::size_t i = 0; i < kUsual; ++i)
    if (!paths.at(i).empty() && paths.at(i) != "/") return std::string(paths.at(i));
  const bool has_any = std::any_of(paths.begin(), paths.begin() + kUsual, [](auto path) { return !path.empty(); });
  return has_any ? "/" : "";
}

std::vector<std::uint32_t> parse_character_majors(std::string_view text, std::string_view name) {
  std::vector<std::uint32_t> majors;
  bool in_characters = false;
  while (!text.empty()) {
    auto line = take_line(text);
    if (line == "Character devices:") {
      in_characters = true;
    } else if (line == "Block devices:") {
      in_characters = false;
    } else if (in_characters) {
      const auto major = parse_within<std::uint32_t>(take_word(line), 4095);
      if (major && trim(line) == name) majors.push_back(*major);
    }
  }
  return majors;
}

std::vector<std::uint64_t> parse_listening_inodes(std::string_view text) {
  static constexpr std::string_view kListen = "0A";
  std::vector<std::uint64_t> inodes;
  while (!text.empty()) {
    auto line = take_line(text);
    std::array<std::string_view, 10> field;  // sl local remote st queues timer retransmits uid timeout inode
    for (auto& word : field) word = take_word(line);
    if (field[3] != kListen) continue;
    if (const auto inode = parse_unsigned(field[9]); inode && *inode != 0) inodes.push_back(*inode);
  }
  return inodes;
}

std::vector<KernelFrame> parse_kernel_stack(std::string_view text) {
  static constexpr std::size_t kMostFrames = 64, kLongestName = 128;
  std::vector<KernelFrame> frames;
  while (!text.empty() && frames.size() < kMostFrames) {
    auto line = take_line(text);
    const auto address = take_word(line);  // "[<0>]"
    const auto symbol = take_word(line);   // "request_wait_answer+0x13e/0x210"
    const auto plus = symbol.find('+');
    if (!address.starts_with("[<") || !address.ends_with(">]") || plus == 0 || plus == std::string_view::npos ||
        plus > kLongestName)
      continue;
    const auto module = take_word(line);  // "[fuse]", "[nvidia 0123abcd]" where the build is told
    KernelFrame frame{std::string(symbol.substr(0, plus)), ""};
    if (module.starts_with('[') && module.size() <= kLongestName)
      frame.module = std::string(module.substr(1, module.find(']') - 1));
    frames.push_back(std::move(frame));
  }
  return frames;
}

namespace {

struct KernelPart {
  std::string_view name;
  StuckIn where;
};

StuckIn part_of(const KernelFrame& frame) noexcept {
  static constexpr std::array<KernelPart, 17> kModules = {{{"nvidia", StuckIn::gpu_driver},
                                                           {"nvidia_uvm", StuckIn::gpu_driver},
                                                           {"nvidia_modeset", StuckIn::gpu_driver},
                                                           {"nvidia_drm", StuckIn::gpu_driver},
                                                           {"nvidia_peermem", StuckIn::gpu_driver},
                                                           {"nvidia_fs", StuckIn::gpu_driver},
                                                           {"gdrdrv", StuckIn::gpu_driver},
                                                           {"fuse", StuckIn::fuse},
                                                           {"virtiofs", StuckIn::fuse},
                                                           {"cuse", StuckIn::fuse},
                                                           {"nfs", StuckIn::nfs},
                                                           {"nfsv2", StuckIn::nfs},
                                                           {"nfsv3", StuckIn::nfs},
                                                           {"nfsv4", StuckIn::nfs},
                                                           {"nfs_acl", StuckIn::nfs},
                                                           {"lockd", StuckIn::nfs},
                                                           {"sunrpc", StuckIn::nfs}}};
  static constexpr std::array<KernelPart, 9> kPrefixes = {{{"request_wait_answer", StuckIn::fuse},
                                                           {"fuse_", StuckIn::fuse},
                                                           {"__fuse_", StuckIn::fuse},
                                                           {"nfs_", StuckIn::nfs},
                                                           {"nfs3_", StuckIn::nfs},
                                                           {"nfs4_", StuckIn::nfs},
                                                           {"_nfs4_", StuckIn::nfs},
                                                           {"rpc_", StuckIn::nfs},
                                                           {"__rpc_", StuckIn::nfs}}};
  if (frame.module.empty()) {
    for (const auto& [prefix, where] : kPrefixes)
      if (frame.function.starts_with(prefix)) return where;
    return StuckIn::kernel;
  }
  for (const auto& [name, where] : kModules)
    if (frame.module == name) return where;
  return StuckIn::other_module;
}

}  // namespace

StuckIn classify_kernel_stack(const std::vector<KernelFrame>& frames) noexcept {
  for (const auto& frame : frames) {
    const auto where = part_of(frame);
    if (where != StuckIn::kernel) return where;
  }
  return frames.empty() ? StuckIn::unknown : StuckIn::kernel;
}

std::optional<uid_t> parse_login_uid(std::string_view text) noexcept {
  static constexpr std::uint64_t kUnset = 4294967295;  // facts.md 3.6
  return parse_within<uid_t>(trim(text), kUnset - 1);
}

std::vector<std::string> parse_words(std::string_view text) {
  const auto last = text.find_last_not_of('\0');
  std::vector<std::string> words;
  if (last == std::string_view::npos) return words;
  for (const auto word : split(text.substr(0, last + 1), '\0')) words.emplace_back(word);
  return words;
}

namespace {

/// The parts of one line of mountinfo, proc_pid_mountinfo(5): the optional fields end at a lone "-".
struct Mount {
  std::string_view point, type, super_options;
};
std::optional<Mount> parse_filesystem(std::string_view line) {
  const auto dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  Mount mount;
  auto head = line.substr(0, dash);
  for (int skip = 0; skip < 4; ++skip) take_word(head);
  mount.point = take_word(head);
  auto tail = line.substr(dash + 3);
  mount.type = take_word(tail);
  take_word(tail);
  mount.super_options = take_word(tail);
  return mount;
}

}  // namespace

ProcMount parse_proc_mount(std::string_view mountinfo) {
  ProcMount how;
  while (!mountinfo.empty()) {
    const auto mount = parse_filesystem(take_line(mountinfo));
    if (!mount || mount->type != "proc" || mount->point != "/proc") continue;
    how = {};
    for (const auto option : split(mount->super_options, ',')) {
      if (option == "hidepid=2" || option == "hidepid=invisible" || option == "hidepid=4" ||
          option == "hidepid=ptraceable")
        how.hides_processes = true;
      if (option == "hidepid=1" || option == "hidepid=noaccess") how.denies_access = true;
    }
  }
  return how;
}

std::string parse_cgroup2_mount(std::string_view mountinfo) {
  std::string point;
  while (!mountinfo.empty()) {
    const auto mount = parse_filesystem(take_line(mountinfo));
    if (mount && mount->type == "cgroup2") point = std::string(mount->point);
  }
  return point;
}

std::optional<std::uint64_t> parse_bracketed_inode(std::string_view link) {
  const auto open = link.find(":[");
  if (open == std::string_view::npos || link.back() != ']') return std::nullopt;
  return parse_unsigned(link.substr(open + 2, link.size() - open - 3));
}

}  // namespace vacate
