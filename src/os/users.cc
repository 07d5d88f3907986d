// SPDX-License-Identifier: Apache-2.0
#include "os/users.h"

#include <limits>

#include "base/text.h"
#include "os/procfs.h"

namespace vacate {

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
