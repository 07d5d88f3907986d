// SPDX-License-Identifier: Apache-2.0
#include "os/mounts.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace vacate {
namespace {

/// mountinfo writes blanks and the like as three octal digits.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return static_cast<unsigned>(text[i + at] - '0'); };
    const bool is_escape = text[i] == '\\' && i + 3 < text.size() && digit(1) < 4 && digit(2) < 8 && digit(3) < 8;
    if (!is_escape) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>(digit(1) * 64 + digit(2) * 8 + digit(3));
    i += 3;
  }
  return plain;
}

std::optional<std::uint64_t> device_of(std::string_view numbers) {
  const auto parts = split(numbers, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto major_number = parse_unsigned(parts[0]);
  const auto minor_number = parse_unsigned(parts[1]);
  if (!major_number || !minor_number || *major_number > 0xFFFU || *minor_number > 0xFFFFFU) return std::nullopt;
  return makedev(static_cast<unsigned>(*major_number), static_cast<unsigned>(*minor_number));
}

std::optional<MountLine> parse_mount(std::string_view line) {
  // "36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw"
  static constexpr std::size_t kFewest = 5;
  const auto dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto words = split(line.substr(0, dash), ' ');
  if (words.size() < kFewest || !words[4].starts_with('/')) return std::nullopt;
  const auto id = parse_unsigned(words[0]);
  const auto parent = parse_unsigned(words[1]);
  const auto device = device_of(words[2]);
  const auto rest = line.substr(dash + 3);
  if (!id || !parent || !device) return std::nullopt;
  return MountLine{
      *id, *parent, *device, unescaped(words[3]), unescaped(words[4]), std::string(rest.substr(0, rest.find(' ')))};
}

/// Is `path` at or below `point`?
bool lies_under(std::string_view path, std::string_view point) {
  if (point == "/") return true;
  return path.starts_with(point) && (path.size() == point.size() || path[point.size()] == '/');
}

}  // namespace

std::vector<MountLine> parse_mounts(std::string_view mountinfo) {
  std::vector<MountLine> mounts;
  for (const auto line : split(mountinfo, '\n'))
    if (auto mount = parse_mount(line)) mounts.push_back(*std::move(mount));
  return mounts;
}

bool is_on_top(const MountLine& mount, const std::vector<MountLine>& mounts) {
  std::set<std::uint64_t> chain = {mount.id};
  for (std::uint64_t at = mount.parent; chain.insert(at).second;) {
    const auto above = std::find_if(mounts.begin(), mounts.end(), [&](const MountLine& each) { return each.id == at; });
    if (above != mounts.end()) at = above->parent;
  }
  return std::none_of(mounts.begin(), mounts.end(), [&](const MountLine& each) {
    return !chain.contains(each.id) && lies_under(mount.point, each.point);
  });
}

}  // namespace vacate
