// SPDX-License-Identifier: Apache-2.0
// Names of users, from files alone: a name service could ask the network and block, and a name is for display only.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace vacate {

class Users {
 public:
  /// Reads /etc/passwd once. A file that cannot be read names nobody.
  [[nodiscard]] static Users read();
  explicit Users(std::map<uid_t, std::string> names) : names_(std::move(names)) {}

  /// The name of `uid`, or its number.
  [[nodiscard]] std::string name_of(uid_t uid) const;
  /// The uid of a name, for --user.
  [[nodiscard]] std::optional<uid_t> find(std::string_view name) const;

 private:
  std::map<uid_t, std::string> names_;
};

/// The uid that the service manager gave a running service with DynamicUser= under this name; such accounts are in no
/// passwd file. `folder`: where it keeps them.
[[nodiscard]] std::optional<uid_t> find_dynamic_user(std::string_view name,
                                                     const std::string& folder = "/run/systemd/dynamic-uid");

/// passwd(5): the first line of a uid counts; malformed lines are passed over.
[[nodiscard]] std::map<uid_t, std::string> parse_passwd(std::string_view text);

}  // namespace vacate
