// SPDX-License-Identifier: Apache-2.0
#include "attribute/programs.h"

#include <algorithm>
#include <array>

namespace vacate {
namespace {

// Trees that belong to root on every distribution. /opt: vendors' packages; /nix/store and /snap: immutable.
constexpr std::array<std::string_view, 9> kSystemTrees = {"/usr/",     "/bin/", "/sbin/",      "/lib/", "/lib64/",
                                                          "/libexec/", "/opt/", "/nix/store/", "/snap/"};
constexpr std::array<std::string_view, 9> kShells = {"sh",  "bash", "dash", "zsh",    "fish",
                                                     "ksh", "tcsh", "csh",  "busybox"};
constexpr std::array<std::string_view, 3> kShellDirectories = {"/bin/", "/usr/bin/", "/usr/local/bin/"};
constexpr std::array<std::string_view, 12> kLogins = {"login", "sshd",   "sshd-session", "sshd-auth",
                                                      "su",    "sudo",   "doas",         "runuser",
                                                      "tmux",  "screen", "dropbear",     "mosh-server"};
// What a desktop starts applications from: to them it is what a shell is to its jobs, and joined all of a user's
// windows would be one group.
constexpr std::array<std::string_view, 10> kDesktopShells = {
    "gnome-shell", "gnome-session-binary", "plasmashell", "kwin_wayland", "kwin_x11", "mutter", "sway", "weston",
    "Hyprland",    "cosmic-comp"};
// Not supervisord and the like: those are scripts, their executable is an interpreter, and they do own what they start.
constexpr std::array<std::string_view, 9> kServiceManagers = {
    "systemd", "init", "s6-svscan", "s6-supervise", "runsv", "runsvdir", "openrc-init", "dinit", "upstart"};
constexpr std::array<std::string_view, 12> kContainerRuntimes = {"containerd", "dockerd", "conmon",    "crio",
                                                                 "crun",       "runc",    "podman",    "kubelet",
                                                                 "runsc",      "incusd",  "lxc-start", "lxc-monitord"};

// Units without ".service" and instance. Schedulers, logins, displays, container runtimes and hubs that let their
// users' servers run on while they are restarted.
constexpr std::array<std::string_view, 55> kServicesOfOthersWork = {"cron",
                                                                    "crond",
                                                                    "cronie",
                                                                    "fcron",
                                                                    "anacron",
                                                                    "atd",
                                                                    "at",
                                                                    "ssh",
                                                                    "sshd",
                                                                    "dropbear",
                                                                    "getty",
                                                                    "serial-getty",
                                                                    "console-getty",
                                                                    "container-getty",
                                                                    "user",
                                                                    "gdm",
                                                                    "gdm3",
                                                                    "sddm",
                                                                    "lightdm",
                                                                    "greetd",
                                                                    "ly",
                                                                    "xrdp",
                                                                    "xrdp-sesman",
                                                                    "display-manager",
                                                                    "docker",
                                                                    "snap.docker.dockerd",
                                                                    "containerd",
                                                                    "cri-docker",
                                                                    "crio",
                                                                    "cri-o",
                                                                    "podman",
                                                                    "kubelet",
                                                                    "k3s",
                                                                    "k3s-agent",
                                                                    "rke2-server",
                                                                    "rke2-agent",
                                                                    "k0scontroller",
                                                                    "k0sworker",
                                                                    "nomad",
                                                                    "lxc",
                                                                    "lxd",
                                                                    "snap.lxd.daemon",
                                                                    "incus",
                                                                    "libvirtd",
                                                                    "virtqemud",
                                                                    "slurmd",
                                                                    "slurmctld",
                                                                    "pbs",
                                                                    "pbs_mom",
                                                                    "lsfd",
                                                                    "condor",
                                                                    "sge_execd",
                                                                    "gridengine-execd",
                                                                    "flux",
                                                                    "jupyterhub"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_shell(std::string_view exe, const std::vector<std::string>& shells) {
  if (std::find(shells.begin(), shells.end(), exe) != shells.end()) return true;
  const auto name = base_name(exe);
  return contains(kShells, name) && contains(kShellDirectories, exe.substr(0, exe.size() - name.size()));
}

}  // namespace

bool is_system_path(std::string_view path) noexcept {
  return std::any_of(kSystemTrees.begin(), kSystemTrees.end(),
                     [&](std::string_view tree) { return path.starts_with(tree); });
}

bool is_service_of_others_work(std::string_view unit) noexcept {
  if (unit.ends_with(".service")) unit.remove_suffix(8);
  return contains(kServicesOfOthersWork, unit.substr(0, unit.find('@')));
}

std::string_view base_name(std::string_view path) noexcept {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

Program program_of(const Process& process, const std::vector<std::string>& shells) {
  if (!process.exe.known()) return Program::ordinary;
  const std::string_view exe = *process.exe;
  if (is_shell(exe, shells)) return Program::shell;
  if (!is_system_path(exe)) return Program::ordinary;
  const auto name = base_name(exe);
  if (contains(kLogins, name) || contains(kDesktopShells, name)) return Program::login;
  if (contains(kServiceManagers, name)) return Program::service_manager;
  if (contains(kContainerRuntimes, name) || name.starts_with("containerd-shim")) return Program::container_runtime;
  return Program::ordinary;
}

bool is_first_of_namespace(const Process& process) noexcept {
  return process.key.pid == 1 || (!process.ns_pids.empty() && process.ns_pids.back() == 1);
}

}  // namespace vacate
