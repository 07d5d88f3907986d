// SPDX-License-Identifier: Apache-2.0
#include "app/load_policy.h"

#include <fmt/format.h>

#include "config/parse_policy.h"
#include "os/trusted_file.h"
#include "os/users.h"

namespace vacate {
namespace {

constexpr const char* kMachinePolicy = "/etc/vacate/policy.toml";

/// Whatever is the matter with it, it is a mistake of configuration and nothing else is to be done before it is mended.
Error mistake(const Error& error) {
  return Error{ErrorCode::malformed, error.code == ErrorCode::denied
                                         ? fmt::format("{}; let it be read by everybody, or run as root", error.message)
                                         : error.message};
}

Result<Policy> with_file(Policy policy, const std::string& path, TrustedOwner owner, const Users& users) {
  const auto text = read_trusted_file(path, owner);
  if (!text) return text.error();
  return add_policy(std::move(policy), {path, *text}, [&](std::string_view name) { return users.find(name); });
}

Result<Policy> with_named(Policy policy, const std::optional<std::string>& file, const Users& users) {
  if (!file) return policy;
  auto loaded = with_file(std::move(policy), *file, TrustedOwner::root_or_caller, users);
  if (!loaded) return mistake(loaded.error().within("--policy"));
  return loaded;
}

}  // namespace

Result<Policy> load_policy(const std::optional<std::string>& file) {
  const Users users = Users::read();
  Policy policy;
  auto of_machine = with_file(policy, kMachinePolicy, TrustedOwner::root, users);
  if (!of_machine && of_machine.error().code != ErrorCode::gone) return mistake(of_machine.error().within("policy"));
  if (of_machine) policy = std::move(*of_machine);
  return with_named(std::move(policy), file, users);
}

Result<Policy> load_named_policy(const std::optional<std::string>& file) {
  return with_named(Policy{}, file, Users::read());
}

}  // namespace vacate
