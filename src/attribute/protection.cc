// SPDX-License-Identifier: Apache-2.0
#include "attribute/protection.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "attribute/programs.h"

namespace vacate {
namespace {

// Whose process it has to be. `system`: root or an account that the distribution made for a daemon (nvidia-persistenced
// has one).
enum class Account { anybody, system, root };
enum class Match { whole, prefix };

struct ProtectedProgram {
  std::string_view rule;
  std::string_view name;  // last part of the executable's path, which must lie in a tree of the system
  Account account = Account::anybody;
  Match match = Match::whole;
};

constexpr uid_t kFirstHumanUid = 1000;  // login.defs, UID_MIN

// One line a program, so that a review sees what is spared. Paths: is_system_path().
constexpr auto kPrograms = std::to_array<ProtectedProgram>({
    {"display-server", "Xorg"},
    {"display-server", "Xorg.bin"},
    {"display-server", "X"},
    {"display-server", "Xwayland"},
    {"display-server", "gdm", Account::root},
    {"display-server", "gdm3", Account::root},
    {"display-server", "gdm-session-worker", Account::root},
    {"display-server", "gdm-x-session"},
    {"display-server", "gdm-wayland-session"},
    {"display-server", "sddm", Account::system},
    {"display-server", "lightdm", Account::root},
    {"display-server", "greetd", Account::root},
    {"compositor", "gnome-shell"},
    {"compositor", "kwin_wayland"},
    {"compositor", "kwin_x11"},
    {"compositor", "plasmashell"},
    {"compositor", "mutter"},
    {"compositor", "sway"},
    {"compositor", "weston"},
    {"compositor", "Hyprland"},
    {"compositor", "cosmic-comp"},
    {"nvidia-daemon", "nvidia-persistenced", Account::system},
    {"nvidia-daemon", "nv-hostengine", Account::system},
    {"nvidia-daemon", "dcgm-exporter"},
    {"nvidia-daemon", "nv-fabricmanager", Account::system},
    {"nvidia-daemon", "nvidia-imex", Account::system},
    {"nvidia-daemon", "nvidia-powerd", Account::system},
    {"nvidia-daemon", "nvidia-modprobe"},
    {"nvidia-daemon", "nvsm", Account::system, Match::prefix},
    {"nvidia-daemon", "gpud", Account::system},
    {"nvidia-daemon", "supergfxd", Account::root},
    {"nvidia-daemon", "asusd", Account::root},
    {"nvidia-daemon", "system76-power", Account::root},
    {"mps", "nvidia-cuda-mps-control"},
    {"mps", "nvidia-cuda-mps-server"},
    {"device-plugin", "nvidia-device-plugin"},
    {"device-plugin", "gpu-feature-discovery"},
    {"device-plugin", "nvidia-operator-validator"},
    {"device-plugin", "nvidia-mig-manager"},
    {"device-plugin", "nvidia-container-", Account::anybody, Match::prefix},
    {"device-plugin", "k8s-driver-manager"},
    {"device-plugin", "nvidia-dra-", Account::anybody, Match::prefix},
    {"container-runtime", "dockerd"},
    {"container-runtime", "containerd"},
    {"container-runtime", "containerd-shim", Account::anybody, Match::prefix},
    {"container-runtime", "conmon"},
    {"container-runtime", "crio"},
    {"container-runtime", "crun"},
    {"container-runtime", "runc"},
    {"container-runtime", "podman"},
    {"container-runtime", "kubelet"},
    {"container-runtime", "incusd"},
    {"container-runtime", "lxc-start"},
    {"scheduler", "slurmd", Account::root},
    {"scheduler", "slurmstepd", Account::root},
    {"scheduler", "pbs_mom", Account::root},
    {"scheduler", "sge_execd", Account::system},
    {"scheduler", "orted"},
    {"scheduler", "prted"},
    {"scheduler", "raylet"},
    {"scheduler", "gcs_server"},
    {"login", "sshd"},
    {"login", "sshd-session"},
    {"login", "login", Account::root},
    {"login", "tmux"},
    {"login", "screen"},
    {"login", "systemd"},
    {"login", "dbus-daemon"},
    {"login", "dbus-broker"},
    {"virtual-machine", "qemu-", Account::anybody, Match::prefix},
    {"virtual-machine", "libvirtd", Account::root},
    {"virtual-machine", "virtqemud", Account::root},
    {"virtual-machine", "cloud-hypervisor"},
    {"virtual-machine", "firecracker"},
    {"virtual-machine", "runsc"},
});

struct RuleText {
  std::string_view rule;
  std::string_view detail;
};
constexpr auto kRuleTexts = std::to_array<RuleText>({
    {"display-server", "ending it ends a user's session; log out or stop the display manager"},
    {"compositor", "ending it ends a user's session; log out instead"},
    {"nvidia-daemon", "it manages or watches the driver and pins no memory; stop its service instead"},
    {"mps", "other clients depend on it; use nvidia-cuda-mps-control"},
    {"device-plugin", "the node would lose its GPUs; drain the node instead"},
    {"container-runtime", "containers would end or be orphaned; stop the container instead"},
    {"scheduler", "it runs jobs of others; use the scheduler's own commands"},
    {"login", "a user would be locked out"},
    {"virtual-machine", "a whole machine runs in it; stop that instead"},
});

bool has_name(const ProtectedProgram& program, std::string_view name) noexcept {
  return program.match == Match::prefix ? name.starts_with(program.name) : name == program.name;
}

bool has_account(Account account, const Process& process) noexcept {
  if (account == Account::anybody || !process.uid.known()) return true;
  return account == Account::root ? *process.uid == 0 : *process.uid < kFirstHumanUid;
}

Protection protection(std::string_view rule) {
  const auto* text =
      std::find_if(kRuleTexts.begin(), kRuleTexts.end(), [&](const RuleText& t) { return t.rule == rule; });
  return {std::string(rule), text == kRuleTexts.end() ? std::string() : std::string(text->detail), false};
}

// Never, with no override (design.md, rule 3).
std::optional<Protection> absolute_protection(const Process& process, const Caller& caller) {
  const auto pid = process.key.pid;
  if (pid == caller.self.pid) return Protection{"own-chain", "it is vacate itself", true};
  if (std::find(caller.ancestors.begin(), caller.ancestors.end(), pid) != caller.ancestors.end())
    return Protection{pid == 1 ? "pid1" : "own-chain", pid == 1 ? "it is pid 1" : "it started vacate", true};
  if (pid == caller.session_leader) return Protection{"own-chain", "it leads vacate's session", true};
  if (pid == 1) return Protection{"pid1", "it is pid 1", true};
  if (process.kernel_thread) return Protection{"kernel-thread", "it is a thread of the kernel", true};
  return std::nullopt;
}

bool is_login_shell(const Process& process, const std::vector<std::string>& shells) {
  if (process.sid != process.key.pid || program_of(process, shells) != Program::shell) return false;
  const bool by_argv = process.argv.known() && !process.argv->empty() && process.argv->front().starts_with('-');
  return by_argv || process.tty != 0;
}

}  // namespace

std::optional<Protection> protection_of(const Process& process, const Snapshot& snapshot) {
  if (auto absolute = absolute_protection(process, snapshot.caller)) return absolute;
  if (is_first_of_namespace(process)) return Protection{"pid1", "it is pid 1 of its pid namespace", false};
  if (!process.exe.known()) return std::nullopt;
  if (is_system_path(*process.exe)) {
    for (const auto& program : kPrograms) {
      if (has_name(program, base_name(*process.exe)) && has_account(program.account, process))
        return protection(program.rule);
    }
  }
  if (is_login_shell(process, snapshot.shells)) return protection("login");
  return std::nullopt;
}

Protection mps_client_protection() {
  return {"mps-client",
          "ending it leaves the MPS server and its other clients undefined; end it by nvidia-cuda-mps-control", false};
}

std::optional<std::string> claim_of(const Process& process) {
  std::array<std::string_view, 3> names;
  if (process.exe.known()) names[0] = base_name(*process.exe);
  if (process.argv.known() && !process.argv->empty()) names[1] = base_name(process.argv->front());
  names[2] = process.comm;
  for (const auto name : names) {
    for (const auto& program : kPrograms) {
      if (!name.empty() && has_name(program, name))
        return fmt::format("it claims to be {} ({}), but its executable or user is not that one's: it is not protected",
                           name, program.rule);
    }
  }
  return std::nullopt;
}

bool has_protected_name(std::string_view name) noexcept {
  return std::any_of(kPrograms.begin(), kPrograms.end(),
                     [&](const ProtectedProgram& program) { return has_name(program, name); });
}

}  // namespace vacate
