// SPDX-License-Identifier: Apache-2.0
#include "attribute/protected_programs.h"

#include <algorithm>
#include <array>

namespace vacate {
namespace {

constexpr uid_t kFirstHumanUid = 1000;  // login.defs, UID_MIN
constexpr uid_t kNobody = 65534;

// One line a program, so that a review sees what is spared.
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
    {"display-server", "sddm-helper"},
    {"display-server", "lightdm", Account::root},
    {"display-server", "lxdm", Account::root},
    {"display-server", "xdm", Account::root},
    {"display-server", "greetd", Account::root},
    {"compositor", "gnome-shell"},
    {"compositor", "gnome-session-binary"},
    {"compositor", "kwin_wayland"},
    {"compositor", "kwin_x11"},
    {"compositor", "plasmashell"},
    {"compositor", "ksmserver"},
    {"compositor", "mutter"},
    {"compositor", "cinnamon"},
    {"compositor", "xfwm4"},
    {"compositor", "sway"},
    {"compositor", "weston"},
    {"compositor", "wayfire"},
    {"compositor", "labwc"},
    {"compositor", "river"},
    {"compositor", "niri"},
    {"compositor", "Hyprland"},
    {"compositor", "cosmic-comp"},
    {"browser", "firefox"},
    {"browser", "firefox-bin"},
    {"browser", "firefox-esr"},
    {"browser", "chrome"},
    {"browser", "chromium"},
    {"browser", "chromium-browser"},
    {"browser", "brave"},
    {"browser", "msedge"},
    {"browser", "opera"},
    {"browser", "vivaldi-bin"},
    {"browser", "WebKitGPUProcess"},
    {"browser", "WebKitWebProcess"},
    {"browser", "QtWebEngineProcess"},
    {"nvidia-daemon", "nvidia-persistenced", Account::system},
    {"nvidia-daemon", "nv-hostengine", Account::system},
    {"nvidia-daemon", "dcgm-exporter"},
    {"nvidia-daemon", "nv-fabricmanager", Account::system},
    {"nvidia-daemon", "nvidia-imex", Account::system},
    {"nvidia-daemon", "nvidia-powerd", Account::system},
    {"nvidia-daemon", "nvidia-gridd", Account::system},
    {"nvidia-daemon", "nvidia-vgpu-mgr", Account::system},
    {"nvidia-daemon", "nvidia-modprobe"},
    {"nvidia-daemon", "nvsm", Account::system, NameMatch::prefix},
    {"nvidia-daemon", "gpud", Account::system},
    {"nvidia-daemon", "supergfxd", Account::root},
    {"nvidia-daemon", "asusd", Account::root},
    {"nvidia-daemon", "system76-power", Account::root},
    {"monitor", "gpuagent", Account::system},
    {"monitor", "rdcd", Account::system},
    {"monitor", "node_exporter", Account::system},
    {"monitor", "prometheus-node-exporter", Account::system},
    {"monitor", "nvidia_gpu_exporter", Account::system},
    {"monitor", "nvidia_gpu_prometheus_exporter", Account::system},
    {"monitor", "telegraf", Account::system},
    {"monitor", "collectd", Account::system},
    {"monitor", "netdata", Account::system},
    {"monitor", "nvidia_smi.plugin", Account::system},
    {"monitor", "zabbix_agent", Account::system, NameMatch::prefix},
    {"mps", "nvidia-cuda-mps-control"},
    {"mps", "nvidia-cuda-mps-server"},
    {"device-plugin", "nvidia-device-plugin"},
    {"device-plugin", "gpu-feature-discovery"},
    {"device-plugin", "nvidia-operator-validator"},
    {"device-plugin", "nvidia-mig-manager"},
    {"device-plugin", "mig-manager"},
    {"device-plugin", "nvidia-container-", Account::anybody, NameMatch::prefix},
    {"device-plugin", "k8s-driver-manager"},
    {"device-plugin", "driver-manager", Account::root},
    {"device-plugin", "nvidia-dra-", Account::anybody, NameMatch::prefix},
    {"device-plugin", "gpu-kubelet-plugin"},
    {"container-runtime", "dockerd"},
    {"container-runtime", "containerd"},
    {"container-runtime", "containerd-shim", Account::anybody, NameMatch::prefix},
    {"container-runtime", "conmon"},
    {"container-runtime", "conmonrs"},
    {"container-runtime", "crio"},
    {"container-runtime", "crun"},
    {"container-runtime", "runc"},
    {"container-runtime", "podman"},
    {"container-runtime", "kubelet"},
    {"container-runtime", "incusd"},
    {"container-runtime", "lxd"},
    {"container-runtime", "lxc-start"},
    {"container-runtime", "lxc-monitord"},
    {"scheduler", "slurmd", Account::root},
    {"scheduler", "slurmstepd", Account::root},
    {"scheduler", "pbs_mom", Account::root},
    {"scheduler", "sge_execd", Account::system},
    {"scheduler", "sge_shepherd", Account::system},
    {"scheduler", "condor_startd", Account::system},
    {"scheduler", "condor_starter", Account::system},
    {"scheduler", "orted"},
    {"scheduler", "prted"},
    {"scheduler", "hydra_pmi_proxy"},
    {"scheduler", "raylet"},
    {"scheduler", "gcs_server"},
    {"login", "sshd"},
    {"login", "sshd-session"},
    {"login", "sshd-auth"},
    {"login", "dropbear"},
    {"login", "mosh-server"},
    {"login", "login", Account::root},
    {"login", "tmux"},
    {"login", "screen"},
    {"login", "systemd"},
    {"login", "systemd-logind", Account::root},
    {"login", "dbus-daemon"},
    {"login", "dbus-broker"},
    {"login", "dbus-broker-launch"},
    {"virtual-machine", "qemu-", Account::anybody, NameMatch::prefix},
    {"virtual-machine", "libvirtd", Account::root},
    {"virtual-machine", "virtqemud", Account::root},
    {"virtual-machine", "cloud-hypervisor"},
    {"virtual-machine", "firecracker"},
    {"virtual-machine", "kata-", Account::anybody, NameMatch::prefix},
    {"virtual-machine", "runsc"},
    {"virtual-machine", "runsc-sandbox"},
});

// Units whose every process is the daemon's own. Not slurmd.service or docker.service: jobs run in those.
struct DaemonUnit {
  std::string_view name;
  std::string_view rule;
};
constexpr auto kUnits = std::to_array<DaemonUnit>({
    {"nvidia-persistenced.service", "nvidia-daemon"},
    {"nvidia-dcgm.service", "nvidia-daemon"},
    {"dcgm.service", "nvidia-daemon"},
    {"nvidia-dcgm-exporter.service", "nvidia-daemon"},
    {"dcgm-exporter.service", "nvidia-daemon"},
    {"nvidia-fabricmanager.service", "nvidia-daemon"},
    {"nvidia-imex.service", "nvidia-daemon"},
    {"nvidia-powerd.service", "nvidia-daemon"},
    {"nvidia-gridd.service", "nvidia-daemon"},
    {"nvsm.service", "nvidia-daemon"},
    {"gpud.service", "nvidia-daemon"},
    {"nvidia-mps.service", "mps"},
    {"rdc.service", "monitor"},
    {"node_exporter.service", "monitor"},
    {"prometheus-node-exporter.service", "monitor"},
    {"nvidia_gpu_exporter.service", "monitor"},
    {"display-manager.service", "display-server"},
});

constexpr auto kQueries =
    std::to_array<std::string_view>({"nvidia-smi", "nvtop", "nvitop", "gpustat", "nvidia-debugdump", "dcgmi"});

struct RuleText {
  std::string_view rule;
  std::string_view detail;
};
constexpr auto kRuleTexts = std::to_array<RuleText>({
    {"display-server", "ending it ends a user's session; log out or stop the display manager"},
    {"compositor", "ending it ends a user's session; log out instead"},
    {"browser", "a user is looking at it; close the browser instead"},
    {"nvidia-daemon", "it manages or watches the driver and pins no memory; stop its service instead"},
    {"monitor", "it watches the machine and pins no memory; stop its service instead"},
    {"mps", "other clients depend on it; use nvidia-cuda-mps-control"},
    {"mps-client",
     "ending it leaves the MPS server and its other clients undefined; end it by nvidia-cuda-mps-control"},
    {"device-plugin", "the node would lose its GPUs; drain the node instead"},
    {"container-runtime", "containers would end or be orphaned; stop the container instead"},
    {"scheduler", "it runs jobs of others; use the scheduler's own commands"},
    {"login", "a user would be locked out"},
    {"virtual-machine", "a whole machine runs in it; stop that instead"},
    {"importer", "it may serve memory of others to others; restart it when nobody depends on it"},
    {"suspended",
     "it has a GPU open as a computing process and no context: it may be starting, or suspended by a "
     "checkpoint; resume it or let its owner end it"},
    {"query", "it only asks the driver and ends by itself; wait for it"},
});

}  // namespace

const ProtectedProgram* protected_name(std::string_view name) noexcept {
  if (name.empty()) return nullptr;
  const auto* at = std::find_if(kPrograms.begin(), kPrograms.end(), [&](const ProtectedProgram& program) {
    return program.match == NameMatch::prefix ? name.starts_with(program.name) : name == program.name;
  });
  return at == kPrograms.end() ? nullptr : at;
}

const ProtectedProgram* protected_comm(std::string_view comm) noexcept {
  static constexpr std::size_t kCut = 15;
  if (const auto* whole = protected_name(comm)) return whole;
  if (comm.size() != kCut) return nullptr;
  const auto* at = std::find_if(kPrograms.begin(), kPrograms.end(),
                                [&](const ProtectedProgram& program) { return program.name.starts_with(comm); });
  return at == kPrograms.end() ? nullptr : at;
}

bool has_account(Account account, const Process& process) noexcept {
  if (account == Account::anybody || !process.uid.known()) return true;
  if (account == Account::root) return *process.uid == 0;
  return *process.uid < kFirstHumanUid || *process.uid == kNobody;
}

std::optional<std::string_view> rule_of_cgroup(std::string_view cgroup) noexcept {
  static constexpr std::string_view kSystemSlice = "/system.slice/";
  if (!cgroup.starts_with(kSystemSlice)) return std::nullopt;
  cgroup.remove_prefix(kSystemSlice.size());
  const auto name = cgroup.substr(0, cgroup.find('/'));
  const auto* at =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const DaemonUnit& unit) { return unit.name == name; });
  return at == kUnits.end() ? std::nullopt : std::optional(at->rule);
}

bool is_query_name(std::string_view name) noexcept {
  return std::find(kQueries.begin(), kQueries.end(), name) != kQueries.end();
}

std::string_view text_of_rule(std::string_view rule) noexcept {
  const auto* at =
      std::find_if(kRuleTexts.begin(), kRuleTexts.end(), [&](const RuleText& t) { return t.rule == rule; });
  return at == kRuleTexts.end() ? std::string_view() : at->detail;
}

}  // namespace vacate
