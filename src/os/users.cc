// SPDX-License-Identifier: Apache-2.0
#include "os/users.h"

#include <unistd.h>

#include <array>
#include <limits>

#include "base/text.h"
#include "os/procfs.h"

namespace vacate {
namespace {

/// systemd's links, of a name to its number and of the number to its name (measured on 252).
std::string read_dynamic_link(const std::string& folder, std::string_view of) {
  std::array<char, 256> target{};
  const std::string path = folder + "/direct:" + std::string(of);
  const ssize_t n = readlink(path.c_str(), target.data(), target.size());
  return n <= 0 || static_cast<std::size_t>(n) == target.size()
             ? std::string()
             : std::string(target.data(), static_cast<std::size_t>(n));
}

}  // namespace

std::optional<uid_t> find_dynamic_user(std::string_view name, const std::string& folder) {
  constexpr uid_t kFirst = 61184, kLast = 65519;  // the numbers that systemd gives away; no other is meant
  if (name.empty() || name.find('/') != std::string_view::npos || parse_unsigned(name)) return std::nullopt;
  const std::string number = read_dynamic_link(folder, name);
  const auto uid = parse_unsigned(number);
  if (!uid || *uid < kFirst || *uid > kLast || read_dynamic_link(folder, number) != name) return std::nullopt;
  return static_cast<uid_t>(*uid);
}

std::map<uid_t, std::string> parse_passwd(std::string_view text) {
  std::map<uid_t, std::string> names;
  for (const auto line : split(text, '\n')) {
    const auto field = split(line, ':');
    if (field.size() < 4 || field[0].empty() || field[0].front() == '#') continue;
    const auto uid = parse_unsigned(field[2]);
    if (uid && *uid < std::numeric_limits<uid_t>::max()) names.emplace(static_cast<uid_t>(*uid), std::string(field[0]));
  }
  return names;
}

Users Users::read() {
  const auto text = read_file("/etc/passwd");
  return Users(text ? parse_passwd(*text) : std::map<uid_t, std::string>{});
}

std::string Users::name_of(uid_t uid) const {
  const auto found = names_.find(uid);
  return found == names_.end() ? std::to_string(uid) : found->second;
}

std::optional<uid_t> Users::find(std::string_view name) const {
  for (const auto& [uid, known] : names_)
    if (known == name) return uid;
  return std::nullopt;
}

}  // namespace vacate
