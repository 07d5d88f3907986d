// SPDX-License-Identifier: Apache-2.0
#include "model/origin.h"

#include <algorithm>

#include "base/text.h"

namespace vacate {
namespace {

bool is_container_id(std::string_view text) {
  static constexpr std::size_t kLength = 64;
  return text.size() == kLength &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// The container id in one part of the path: alone (cgroupfs driver) or as "docker-ID.scope", "libpod-ID.scope",
/// "cri-containerd-ID.scope".
std::optional<std::string> container_in(std::string_view part) {
  if (part.ends_with(".scope")) part.remove_suffix(6);
  const auto dash = part.rfind('-');
  if (dash != std::string_view::npos) part.remove_prefix(dash + 1);
  return is_container_id(part) ? std::optional<std::string>(part) : std::nullopt;
}

std::optional<std::string> between(std::string_view part, std::string_view prefix, std::string_view suffix) {
  if (part.size() <= prefix.size() + suffix.size() || !part.starts_with(prefix) || !part.ends_with(suffix))
    return std::nullopt;
  return std::string(part.substr(prefix.size(), part.size() - prefix.size() - suffix.size()));
}

}  // namespace

Origin parse_origin(std::string_view cgroup) {
  Origin origin;
  for (const auto part : split(cgroup, '/')) {
    if (part.ends_with(".service") || part.ends_with(".scope")) origin.unit = std::string(part);
    if (const auto id = container_in(part)) origin.container = id;
    if (const auto job = between(part, "job_", ""); job && parse_unsigned(*job)) origin.slurm_job = job;
    if (const auto session = between(part, "session-", ".scope")) origin.session = session;
  }
  return origin;
}

}  // namespace vacate
