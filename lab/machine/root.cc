// SPDX-License-Identifier: Apache-2.0
// See root.h.
#include "lab/machine/root.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <vector>

#include <fmt/format.h>

#include "lab/actor/board.h"
#include "lab/actor/dumping.h"
#include "lab/machine/files.h"
#include "lab/machine/plan.h"

namespace lab {
namespace {

using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;

constexpr const char* kNvmlName = "libnvidia-ml.so.1";

/// Folders in which dlopen looks without a cache. The first that exists gets the stand-in.
constexpr std::array kLibraryFolders = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                        "/usr/lib"};

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// A folder that can be mounted over here without hiding what the machine is made of.
Result<std::string> scratch_folder(const MachinePaths& paths) {
  for (const std::string folder : {"/mnt", "/media", "/srv", "/opt"}) {
    const auto below = [&folder](const std::string& path) { return path.starts_with(folder + "/"); };
    if (exists(folder) && !below(paths.vacate) && !below(paths.actor) && !below(paths.nvml) && !below(paths.eras)) {
      return folder;
    }
  }
  return Error{ErrorCode::unsupported, "no folder to build a machine on: need /mnt, /media, /srv or /opt"};
}

Result<std::string> mount_overlay(const MachinePaths& paths) {
  auto scratch = scratch_folder(paths);
  if (!scratch) return scratch;
  if (auto mounted = mount_tmpfs(*scratch, 0755); !mounted) return mounted.error();
  for (const char* part : {"/upper", "/work", "/root"}) {
    if (auto made = make_directory(*scratch + part, 0755); !made) return made.error();
  }
  const std::string root = *scratch + "/root";
  const std::string options = fmt::format("lowerdir=/,upperdir={0}/upper,workdir={0}/work", *scratch);
  if (mount("overlay", root.c_str(), "overlay", 0, options.c_str()) != 0) return system_error("overlay of the root");
  return root;
}

Result<void> own_folders(const std::string& root) {
  struct Folder {
    const char* path;
    mode_t mode;
  };
  for (const auto& [path, mode] :
       {Folder{"/tmp", 01777}, Folder{"/run", 0755}, Folder{"/var", 0755}, Folder{"/etc/vacate", 0755}}) {
    if (auto mounted = mount_tmpfs(root + path, mode); !mounted) return mounted;
  }
  for (const auto& [path, mode] : {Folder{"/run/lab", 0711}, Folder{kCoreFolder, 01777}, Folder{kDriverDir, 0755},
                                   Folder{kIoDir, 0711}, Folder{"/run/lock", 01777}, Folder{"/var/log", 0755},
                                   Folder{"/var/lib", 0755}, Folder{"/var/cache", 0755}, Folder{"/var/tmp", 01777}}) {
    if (auto made = make_directory(root + path, mode); !made) return made;
  }
  if (symlink("/run", (root + "/var/run").c_str()) != 0) return system_error("/var/run");
  return {};
}

Result<void> own_dev(const std::string& root) {
  const std::string dev = root + "/dev";
  if (auto mounted = mount_tmpfs(dev, 0755); !mounted) return mounted;
  for (const char* node : {"/null", "/zero", "/full", "/random", "/urandom", "/tty"}) {
    if (auto bound = bind_file(std::string("/dev") + node, dev + node); !bound) return bound;
  }
  if (auto mounted = mount_tmpfs(dev + "/shm", 01777); !mounted) return mounted;
  if (auto made = make_directory(dev + "/pts", 0755); !made) return made;
  if (mount("devpts", (dev + "/pts").c_str(), "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=0666,mode=0620") != 0) {
    return system_error("devpts");
  }
  struct Link {
    const char* to;
    const char* name;
  };
  for (const auto& [to, name] :
       {Link{"pts/ptmx", "/ptmx"}, Link{"/proc/self/fd", "/fd"}, Link{"/proc/self/fd/0", "/stdin"},
        Link{"/proc/self/fd/1", "/stdout"}, Link{"/proc/self/fd/2", "/stderr"}}) {
    if (symlink(to, (dev + name).c_str()) != 0) return system_error(name);
  }
  return {};
}

Result<void> add_users(const std::string& root) {
  std::string passwd = read_file(root + "/etc/passwd");
  std::string group = read_file(root + "/etc/group");
  for (const User user : {User::alice, User::bob}) {
    const Account who = account_of(user);
    if (("\n" + passwd).find("\n" + who.name + ":") == std::string::npos) {
      passwd += fmt::format("{}:x:{}:{}::{}:/bin/bash\n", who.name, who.uid, who.gid, who.home);
      group += fmt::format("{}:x:{}:\n", who.name, who.gid);
    }
    if (auto made = make_directories(root + who.home); !made) return made;
    (void)!chown((root + who.home).c_str(), who.uid, who.gid);  // fails in a user namespace that has no such user
  }
  if (auto written = write_file(root + "/etc/passwd", passwd); !written) return written;
  if (auto written = write_file(root + "/etc/group", group); !written) return written;
  if (exists(root + "/etc/shells")) return {};
  return write_file(root + "/etc/shells", "/bin/sh\n/bin/bash\n/usr/bin/bash\n/bin/dash\n/usr/bin/dash\n");
}

/// The library that a driver of this configuration comes with; empty: none.
Result<std::string> library_of(const MachinePaths& paths, const DriverConfig& config) {
  if (config.nvml == NvmlMode::missing) return std::string();
  if (!paths.nvml.empty() || paths.eras.empty()) return paths.nvml;
  std::string library = fmt::format("{}/{}/{}", paths.eras, era_name(config.era), kNvmlName);
  if (!exists(library)) return Error{ErrorCode::io, fmt::format("{} is not there: build lab_nvml", library)};
  return library;
}

/// A vendor library of the host must not answer in the place of the stand-in, nor where the case has none.
Result<void> place_library(const std::string& root, const std::string& library) {
  bool placed = library.empty();
  for (const std::string folder : kLibraryFolders) {
    const std::string path = root + folder + "/" + kNvmlName;
    unlink(path.c_str());
    if (placed || !exists(root + folder)) continue;
    if (auto bound = bind_read_only(library, path); !bound) return bound;
    placed = true;
  }
  return {};
}

Result<void> place_programs(const std::string& root, const MachinePaths& paths) {
  if (auto bound = bind_read_only(paths.actor, root + kActorPath); !bound) return bound;
  if (paths.vacate.empty()) return {};
  unlink((root + "/usr/local/bin/vacate").c_str());
  return bind_read_only(paths.vacate, root + "/usr/local/bin/vacate");
}

std::string information(const GpuConfig& gpu, const std::string& address, const std::string& firmware) {
  return fmt::format(
      "Model: \t\t {}\nIRQ:   \t\t 142\nGPU UUID: \t {}\nVideo BIOS: \t 98.02.2e.00.01\nBus Type: \t PCIe\n"
      "DMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\nBus Location: \t {}\nDevice Minor: \t {}\n"
      "GPU Firmware: \t {}\nGPU Excluded:\t No\n",
      gpu.name, gpu.uuid, address, gpu.minor.value_or(0), firmware);
}

/// procfs has the address in lower case with a domain of four digits, NVML in upper case with eight (facts.md 1.3).
std::string proc_address(const GpuConfig& gpu) {
  std::string address = gpu.pci.size() > 4 ? gpu.pci.substr(4) : gpu.pci;
  for (char& c : address) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  return address;
}

}  // namespace

Result<std::string> build_root(const MachinePaths& paths, const DriverConfig& config) {
  const auto library = library_of(paths, config);
  if (!library) return library.error();
  auto root = mount_overlay(paths);
  if (!root) return root;
  if (auto done = own_folders(*root); !done) return done.error();
  if (auto done = own_dev(*root); !done) return done.error();
  if (auto done = add_users(*root); !done) return done.error();
  if (auto done = place_library(*root, *library); !done) return done.error();
  if (auto done = place_programs(*root, paths); !done) return done.error();
  if (mount("sysfs", (*root + "/sys").c_str(), "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return system_error("sysfs");
  }
  return root;
}

Result<void> show_device_nodes(const std::string& root, const DriverConfig& config) {
  std::vector<std::string> nodes = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"};
  for (const GpuConfig& gpu : config.gpus) nodes.push_back(fmt::format("nvidia{}", gpu.minor.value_or(0)));
  for (const std::string& node : nodes) {
    if (auto bound = bind_file(fmt::format("{}{}/{}", root, kDriverDir, node), root + "/dev/" + node); !bound)
      return bound;
  }
  return {};
}

Result<void> show_proc_driver(const std::string& proc, const DriverConfig& config) {
  if (auto mounted = mount_tmpfs(proc + "/driver", 0555); !mounted) return mounted;
  const std::string base = proc + "/driver/nvidia";
  const std::string version = fmt::format(
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (vacate-lab)\nGCC version:  gcc "
      "version 12.2.0\n",
      config.driver_version);
  if (auto written = write_file(base + "/version", version, 0444); !written) return written;
  if (auto made = make_directories(base + "/gpus"); !made) return made;
  for (const GpuConfig& gpu : config.gpus) {
    const std::string address = proc_address(gpu);
    const std::string path = fmt::format("{}/gpus/{}/information", base, address);
    if (auto written = write_file(path, information(gpu, address, config.driver_version), 0444); !written)
      return written;
  }
  return {};
}

}  // namespace lab
