// SPDX-License-Identifier: Apache-2.0
#include "model/origin.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.h"

namespace vacate {
namespace {

using Text = std::string_view;

bool is_container_id(Text text) {
  static constexpr std::size_t kLength = 64;
  return text.size() == kLength &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// What stands between `prefix` and `suffix`, if both are there and something is.
std::optional<Text> between(Text part, Text prefix, Text suffix) {
  if (part.size() <= prefix.size() + suffix.size() || !part.starts_with(prefix) || !part.ends_with(suffix))
    return std::nullopt;
  return part.substr(prefix.size(), part.size() - prefix.size() - suffix.size());
}

/// systemd's \xNN undone; what is no such escape stays.
std::string unescaped(Text text) {
  static constexpr std::size_t kEscape = 4;
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto value =
        text.substr(i, 2) == "\\x" && i + kEscape <= text.size() ? parse_hex(text.substr(i + 2, 2)) : std::nullopt;
    if (value) i += kEscape - 1;
    result += value ? static_cast<char>(*value) : text[i];
  }
  return result;
}

/// The runtime that spells its containers so: "docker-ID.scope", "PODSLICE:cri-containerd:ID".
std::string_view runtime_of(Text prefix) {
  static constexpr auto kRuntimes = std::to_array<std::pair<Text, Text>>({{"docker", "docker"},
                                                                          {"cri-containerd", "containerd"},
                                                                          {"crio", "cri-o"},
                                                                          {"libpod", "podman"},
                                                                          {"libpod-payload", "podman"},
                                                                          {"nerdctl", "nerdctl"}});
  const auto* at = std::find_if(kRuntimes.begin(), kRuntimes.end(), [&](const auto& r) { return r.first == prefix; });
  return at == kRuntimes.end() ? Text() : at->second;
}

struct Container {
  std::string id;
  std::string_view runtime;
};

/// A container named by its 64 digits. `before` is the part above.
std::optional<Container> container_by_id(Text part, Text before) {
  if (part.ends_with(".scope")) part.remove_suffix(6);
  if (is_container_id(part)) return Container{std::string(part), before == "docker" ? "docker" : ""};
  const auto at = part.find_last_of("-:");
  if (at == Text::npos || !is_container_id(part.substr(at + 1))) return std::nullopt;
  auto prefix = part.substr(0, at);
  if (part[at] == ':') prefix.remove_prefix(prefix.rfind(':') == Text::npos ? 0 : prefix.rfind(':') + 1);
  if (prefix.ends_with("conmon")) return std::nullopt;  // looks after the container and is no part of it
  return Container{std::string(part.substr(at + 1)), runtime_of(prefix)};
}

/// One named by a person: nspawn's machines and LXC's. `after` is the part below.
std::optional<Container> container_by_name(Text part, Text before, Text after) {
  if (const auto name = between(part, "lxc.payload.", "")) return Container{std::string(*name), "lxc"};
  if ((before == "lxc" || before == "lxc.payload") && !part.empty()) return Container{std::string(part), "lxc"};
  if (const auto name = between(part, "systemd-nspawn@", ".service"); name && after == "payload")
    return Container{std::string(*name), "nspawn"};
  // libvirt registers its virtual machines in the same way; those are none.
  if (const auto name = between(part, "machine-", ".scope"); name && after != "supervisor") {
    auto plain = unescaped(*name);
    if (!plain.starts_with("qemu-")) return Container{std::move(plain), "nspawn"};
  }
  return std::nullopt;
}

/// "kubepods-burstable-pod6a1f_....slice", "pod6a1f-...", "machine-libpod_pod_ID.slice".
std::optional<std::string> pod_in(Text part, Text whole) {
  if (const auto colon = part.find(':'); colon != Text::npos) part = part.substr(0, colon);
  if (part.ends_with(".slice")) part.remove_suffix(6);
  if (const auto at = part.find("libpod_pod_"); at != Text::npos) {
    const auto id = part.substr(at + Text("libpod_pod_").size());
    return is_container_id(id) ? std::optional<std::string>(id) : std::nullopt;
  }
  if (whole.find("kubepods") == Text::npos) return std::nullopt;
  const auto at = part.starts_with("pod") ? 0 : part.rfind("-pod");
  if (at == Text::npos) return std::nullopt;
  std::string uid(part.substr(at + (at == 0 ? 3 : 4)));
  std::replace(uid.begin(), uid.end(), '_', '-');
  return uid.empty() ? std::nullopt : std::optional(std::move(uid));
}

bool is_slurm_root(Text part) {
  return part == "slurmstepd.scope" || part.ends_with("_slurmstepd.scope") || part == "slurm" ||
         part.starts_with("slurm_");
}

std::optional<std::string> number_after(Text part, Text prefix) {
  const auto number = between(part, prefix, "");
  return number && parse_unsigned(*number) ? std::optional<std::string>(*number) : std::nullopt;
}

std::optional<std::string> pbs_job(Text part, Text before) {
  if (before == "pbspro" || before == "jobid") return std::string(part);
  if (before != "pbspro.slice") return std::nullopt;
  if (part.ends_with(".slice")) part.remove_suffix(6);
  if (part.starts_with("pbspro-")) part.remove_prefix(7);
  return unescaped(part);
}

class Reader {
 public:
  explicit Reader(Text cgroup) : whole_(cgroup) {
    for (const auto part : split(cgroup, '/')) {
      if (!part.empty()) parts_.push_back(part);
    }
  }

  Origin read() && {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Text part = parts_[i];
      const Text before = i > 0 ? parts_[i - 1] : Text();
      const Text after = i + 1 < parts_.size() ? parts_[i + 1] : Text();
      if (part == "..") {
        origin_.is_outside = true;
        continue;
      }
      // The unit first: a container's own scope is still a unit of this host.
      if (!origin_.container) note_unit(part);
      note_job(part, before);
      note_container(part, before, after);
      if (auto pod = pod_in(part, whole_); pod && !origin_.pod) origin_.pod = std::move(pod);
    }
    settle_service();
    return std::move(origin_);
  }

 private:
  void note_unit(Text part) {
    if (const auto uid = between(part, "user@", ".service")) {
      if (const auto number = parse_unsigned(*uid); number && *number <= 0xfffffffeU)
        origin_.user_manager = static_cast<uid_t>(*number);
    }
    if (between(part, "", ".service") || between(part, "", ".scope")) origin_.unit = std::string(part);
    if (const auto session = between(part, "session-", ".scope")) origin_.session = std::string(*session);
  }

  void note_container(Text part, Text before, Text after) {
    auto found = container_by_id(part, before);
    if (!found) found = container_by_name(part, before, after);
    if (!found) return;
    if (origin_.container) {
      origin_.inner_container = std::move(found->id);
      return;
    }
    origin_.container = std::move(found->id);
    origin_.runtime = found->runtime;
  }

  void note_job(Text part, Text before) {
    if (is_slurm_root(part)) below_ = "slurm";
    if (part == "pbspro.slice" || part == "pbspro" || part == "pbs_jobs.service") below_ = "pbs";
    if (part == "lsf") below_ = "lsf";
    if (part.starts_with("htcondor") || part == "condor.service") below_ = "htcondor";
    if (origin_.job || below_.empty()) return;
    auto job = job_in(part, before);
    if (!job || job->empty()) return;
    if (below_ == "slurm" && !origin_.container) origin_.slurm_job = job;
    origin_.job = std::move(job);
    origin_.job_system = below_;
  }

  [[nodiscard]] std::optional<std::string> job_in(Text part, Text before) const {
    if (below_ == "slurm") return number_after(part, "job_");
    if (below_ == "pbs") return pbs_job(part, before);
    if (below_ == "lsf") {
      const auto rest = between(part, "job.", "");
      return rest ? std::optional<std::string>(rest->substr(0, rest->find('.'))) : std::nullopt;
    }
    const auto slot = part.rfind("slot");
    return before.empty() || slot == Text::npos ? std::nullopt : std::optional<std::string>(part.substr(slot));
  }

  void settle_service() {
    if (!origin_.unit || !origin_.unit->ends_with(".service") || origin_.user_manager || origin_.container ||
        origin_.job || origin_.is_outside)
      return;
    // "system.slice/containerd.service/kubepods..." whose container is no known one, and a monitor's scope.
    const bool is_of_runtime = whole_.find("kubepods") != Text::npos || whole_.find("lxc.monitor") != Text::npos;
    const bool is_of_scheduler = !below_.empty();
    if (!is_of_runtime && !is_of_scheduler) origin_.service = origin_.unit;
  }

  Text whole_;
  std::vector<Text> parts_;
  Text below_;  ///< the batch system whose part of the tree this is
  Origin origin_;
};

}  // namespace

Origin parse_origin(std::string_view cgroup) { return Reader(cgroup).read(); }

bool is_in_cgroup(std::string_view path, std::string_view above) {
  const auto parts_of = [](std::string_view text) {
    auto parts = split(text, '/');
    std::erase(parts, std::string_view());
    return parts;
  };
  const auto whole = parts_of(path);
  const auto wanted = parts_of(above);
  return whole.size() >= wanted.size() && std::equal(wanted.begin(), wanted.end(), whole.begin());
}

std::optional<std::string> control_group_of_unit(std::string_view path, std::string_view unit) {
  const std::string name = "/" + std::string(unit);
  for (auto at = path.rfind(name); at != std::string_view::npos; at = at > 0 ? path.rfind(name, at - 1) : at) {
    const auto end = at + 1 + unit.size();
    if (end == path.size() || path[end] == '/') return std::string(path.substr(0, end));
    if (at == 0) break;
  }
  return std::nullopt;
}

}  // namespace vacate
