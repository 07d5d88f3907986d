// SPDX-License-Identifier: Apache-2.0
// One machine with a holder of every kind, asked four times: by vacate, fuser, lsof -K and lsfd. Whom any of the others
// names, vacate names; whom only vacate names is on the list below with the reason, and so is whom vacate leaves out.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/unique_fd.h"
#include "lab/case/parse.h"
#include "lab/machine/files.h"
#include "lab/machine/machine.h"

namespace lab {
namespace {

using nlohmann::json;
using vacate::Deadline;

constexpr const char* kMachine = R"(
title = "a holder of every kind"
machine = { gpus = 2 }
[[actor]]
name = "compute"
holds = [{ gpu = [0, 1], memory = 100 }]
[[actor]]
name = "inheritor"
parent = "compute"
holds = [{ how = "inherited", from = "compute" }]
[[actor]]
name = "uvm-inheritor"
parent = "compute"
holds = [{ how = "inherited", from = "compute", nodes = ["uvm"] }]
[[actor]]
name = "mapper"
parent = "compute"
holds = [{ how = "mapped", from = "compute" }]
[[actor]]
name = "graphics"
holds = [{ gpu = 0, memory = 10, how = "graphics" }]
[[actor]]
name = "monitor"
holds = [{ gpu = 1, how = "files" }]
[[actor]]
name = "ctl"
holds = [{ how = "ctl" }]
[[actor]]
name = "uvm"
holds = [{ how = "uvm" }]
[[actor]]
name = "users"
user = "alice"
holds = [{ gpu = 0, memory = 10 }]
[[actor]]
name = "container"
pidns = "box"
holds = [{ gpu = 1, memory = 10 }]
[[actor]]
name = "path-only"
holds = [{ gpu = 0, how = "path-only" }]
[[actor]]
name = "bystander"
)";

/// Ways that the machine's actors have not got. Each says its name and number in /tmp when it holds what it should.
constexpr const char* kPrelude = R"(
import ctypes, mmap, os, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def ready():
    with open('/tmp/.' + sys.argv[1], 'w') as f: f.write(str(os.getpid()))
    os.rename('/tmp/.' + sys.argv[1], '/tmp/ready-' + sys.argv[1])
    while True: time.sleep(60)
)";
struct Script {
  const char* name;
  const char* text;
};
constexpr Script kScripts[] = {{"thread-table", R"(
def t():
    libc.unshare(0x400)
    os.open('/dev/nvidia0', os.O_RDWR)
    ready()
threading.Thread(target=t).start()
)"},
                               {"zombie-leader", R"(
os.open('/dev/nvidia1', os.O_RDWR)
def t():
    while open('/proc/self/stat').read().rsplit(')')[-1].split()[0] != 'Z': time.sleep(0.01)
    ready()
threading.Thread(target=t).start()
libc.syscall(60 if os.uname().machine == 'x86_64' else 93, 0)  # exit(2) of this thread alone
)"},
                               {"closed-mapping", R"(
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
fd = os.open('/dev/nvidia0', os.O_RDWR)
assert libc.mmap(None, 4096, 1, 1, fd, 0) not in (None, 2**64 - 1)
os.close(fd)
ready()
)"},
                               {"other-node", R"(
assert libc.unshare(0x20000) == 0 and libc.mount(None, b'/', None, 0x44000, None) == 0
open('/tmp/node', 'w').close()
assert libc.mount(b'/dev/nvidia1', b'/tmp/node', None, 0x1000, None) == 0
os.open('/tmp/node', os.O_RDWR)
assert libc.umount2(b'/tmp/node', 2) == 0
ready()
)"},
                               {"in-flight", R"(
a, b = socket.socketpair()
fd = os.open('/dev/nvidia0', os.O_RDWR)
socket.send_fds(a, [b'x'], [fd])
os.close(fd)
ready()
)"},
                               {"ring", R"(
params = ctypes.create_string_buffer(120)
ring = libc.syscall(425, 2, params)
assert ring >= 0
fd = os.open('/dev/nvidia1', os.O_RDWR)
assert libc.syscall(427, ring, 2, struct.pack('i', fd), 1) == 0
os.close(fd)
ready()
)"}};

constexpr const char* kActors[] = {"compute", "inheritor", "uvm-inheritor", "mapper",    "graphics",  "monitor",
                                   "ctl",     "uvm",       "users",         "container", "path-only", "bystander"};

/// By tool, whom it does not name and why it cannot. Whoever is not here is named by every tool.
const std::map<std::string, std::map<std::string, std::string>> kMissed = {
    {"fuser",
     {{"thread-table", "it reads the table of the main thread only"},
      {"zombie-leader", "the main thread has ended and has no table any more"}}},
    {"lsof", {}},
    {"lsfd", {}},
};
/// Whom other tools name and vacate does not, and why.
const std::map<std::string, std::string> kNoHolders = {{"path-only", "an O_PATH descriptor never reached the driver"}};
/// Whom nobody can name: vacate says that there is something, and whose, and leaves it at that.
const std::map<std::string, std::string> kHints = {{"in-flight", "descriptors-in-flight"}, {"ring", "io-uring-files"}};

constexpr const char* kLsfd =
    "want=\" $(stat -c %i@%Hd:%Ld /dev/nvidia* | xargs) \"; lsfd -l -n -r -o PID,INODE,DEV | "
    "awk -v want=\"$want\" 'index(want, \" \" $2 \"@\" $3 \" \") { print $1 }'";

std::string run(Machine& machine, const std::string& command) {
  CommandSpec spec;
  spec.argv = {"bash", "-c", command};
  const auto result = machine.run(spec, Deadline::after(std::chrono::seconds(60)));
  return result ? result->out : "error: " + result.error().message;
}

/// Starts the scripts. Returns their pids by name.
std::map<std::string, std::string> start_scripts(Machine& machine) {
  std::map<std::string, std::string> pids;
  for (const auto& script : kScripts) {
    CommandSpec spec;
    spec.argv = {"/usr/bin/python3", "-S", "-E", "-c", std::string(kPrelude) + script.text, script.name};
    if (!machine.start_command(spec)) continue;
    pids[script.name] = run(machine, fmt::format("for i in {{1..200}}; do test -e /tmp/ready-{0} && break; sleep 0.05; "
                                                 "done; cat /tmp/ready-{0}",
                                                 script.name));
  }
  return pids;
}

json observe(Machine& machine) {
  json seen;
  for (const auto& [name, pid] : start_scripts(machine)) seen["pids"][name] = pid;
  for (const char* name : kActors) {
    const auto actor = machine.actor(name);
    seen["pids"][name] = actor ? std::to_string(actor->pid) : actor.error().message;
  }
  seen["vacate"] = run(machine, "vacate status --json");
  seen["fuser"] = run(machine, "fuser /dev/nvidia* 2>/dev/null");
  seen["lsof"] = run(machine, "lsof -w -K -F p /dev/nvidia* 2>/dev/null | sed -n 's/^p//p'");
  seen["lsfd"] = run(machine, kLsfd);
  return seen;
}

/// Runs observe() in the machine and brings back what it saw.
json observe_in_machine() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto scenario = parse_case(kMachine, "agreement.toml");
  if (!scenario) return {{"problem", scenario.error().message}};
  const vacate::UniqueFd file(memfd_create("seen", MFD_CLOEXEC));
  const auto body = [&](Machine& machine) {
    const auto started = machine.start_actors();
    const auto seen = started ? observe(machine) : json{{"problem", started.error().message}};
    const std::string text = seen.dump(-1, ' ', true, json::error_handler_t::replace);
    return write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  };
  const auto ended = run_in_machine(
      *scenario, {folder / "vacate", folder / "vacate-lab-actor", "", folder.parent_path() / "lib" / "nvml"}, body);
  if (!ended) return {{"problem", ended.error().message}};
  auto seen = json::parse(read_file(fmt::format("/proc/self/fd/{}", file.get())), nullptr, false);
  return seen.is_object() ? seen : json{{"problem", "the machine said nothing"}};
}

using Names = std::set<std::string>;

/// Names of the pids in `text`; whoever is nobody of the case keeps its number.
Names names_of(const json& pids, const std::string& text) {
  std::map<std::string, std::string> by_pid;
  for (const auto& [name, pid] : pids.items()) by_pid[pid.get<std::string>()] = name;
  Names names;
  std::istringstream words(text);
  for (std::string word; words >> word;) names.insert(by_pid.contains(word) ? by_pid[word] : "process " + word);
  return names;
}

Names without(Names names, const Names& others) {
  for (const auto& other : others) names.erase(other);
  return names;
}

Names keys_of(const std::map<std::string, std::string>& map) {
  Names names;
  for (const auto& [name, reason] : map) names.insert(name);
  return names;
}

bool is_installed(const std::string& tool) {
  for (const char* folder : {"/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/"})
    if (access((folder + tool).c_str(), X_OK) == 0) return true;
  return false;
}

TEST(Agreement, WhomAnyToolNamesVacateNamesAndTheRestIsExplained) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for a machine of the lab";
  for (const char* tool : {"fuser", "lsof", "lsfd", "python3"})
    if (!is_installed(tool)) GTEST_SKIP() << "needs " << tool << " (Debian packages psmisc, lsof, util-linux, python3)";
  const auto seen = observe_in_machine();
  ASSERT_FALSE(seen.contains("problem")) << seen["problem"];
  const auto status = json::parse(seen["vacate"].get<std::string>(), nullptr, false);
  ASSERT_TRUE(status.is_object()) << seen["vacate"];

  std::string held;
  for (const auto& holder : status["holders"]) held += std::to_string(holder["pid"].get<int>()) + " ";
  const Names ours = names_of(seen["pids"], held);
  Names all = keys_of(kHints);
  for (const char* name : kActors) all.insert(name);
  for (const auto& script : kScripts) all.insert(script.name);
  EXPECT_EQ(ours, without(without(all, keys_of(kHints)), {"path-only", "bystander"}));
  for (const auto& [tool, missed] : kMissed) {
    SCOPED_TRACE(tool);
    const Names theirs = names_of(seen["pids"], seen[tool]);
    EXPECT_EQ(without(theirs, ours), keys_of(kNoHolders));
    EXPECT_EQ(without(ours, theirs), keys_of(missed));
  }
  for (const auto& [name, code] : kHints) {
    const std::string pid = seen["pids"][name];
    const auto& spots = status["visibility"]["blind_spots"];
    EXPECT_TRUE(std::any_of(spots.begin(), spots.end(), [&, wanted = code](const json& spot) {
      return spot["code"] == wanted && spot["detail"].get<std::string>().starts_with("process " + pid + " ");
    })) << name;
  }
}

}  // namespace
}  // namespace lab
