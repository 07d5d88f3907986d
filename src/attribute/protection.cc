// SPDX-License-Identifier: Apache-2.0
#include "attribute/protection.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "attribute/programs.h"
#include "attribute/protected_programs.h"

namespace vacate {
namespace {

Protection built_in(std::string_view rule) { return {std::string(rule), std::string(text_of_rule(rule)), false}; }

// Never, with no override (design.md, rule 3).
std::optional<Protection> absolute_protection(const Process& process, const Caller& caller) {
  const auto pid = process.key.pid;
  if (pid == caller.self.pid) return Protection{"own-chain", "it is vacate itself", true};
  if (std::find(caller.ancestors.begin(), caller.ancestors.end(), pid) != caller.ancestors.end())
    return Protection{pid == 1 ? "pid1" : "own-chain", pid == 1 ? "it is pid 1" : "it started vacate", true};
  if (pid == caller.session_leader) return Protection{"own-chain", "it leads vacate's session", true};
  if (pid == 1) return Protection{"pid1", "it is pid 1", true};
  if (process.kernel_thread) return Protection{"kernel-thread", "it is a thread of the kernel", true};
  return std::nullopt;
}

bool is_login_shell(const Process& process, const std::vector<std::string>& shells) {
  if (process.sid != process.key.pid || program_of(process, shells) != Program::shell) return false;
  const bool by_argv = process.argv.known() && !process.argv->empty() && process.argv->front().starts_with('-');
  return by_argv || process.tty != 0;
}

// A script is run by an interpreter, so its own name is the first argument that is a file's.
std::string_view script_name(const Process& process) noexcept {
  if (!process.exe.known() || !process.argv.known() || process.argv->size() < 2) return {};
  const auto interpreter = base_name(*process.exe);
  if (!interpreter.starts_with("python") || !is_system_path(*process.exe)) return {};
  return base_name((*process.argv)[1]);
}

// Where the executable cannot be read, a name is all there is. It cannot prove who somebody is, but it is enough to
// leave him alone: nobody becomes killable by being unreadable.
std::optional<Protection> protection_by_name(const Process& process) {
  const auto* program = protected_comm(process.comm);
  if (program == nullptr && process.argv.known() && !process.argv->empty())
    program = protected_name(base_name(process.argv->front()));
  if (program == nullptr || !has_account(program->account, process)) return std::nullopt;
  auto protection = built_in(program->rule);
  protection.detail =
      fmt::format("its executable cannot be read, and it is called {}: {}", program->name, protection.detail);
  return protection;
}

std::optional<Protection> protection_by_path(const Process& process) {
  if (!is_system_path(*process.exe)) return std::nullopt;
  const auto* program = protected_name(base_name(*process.exe));
  if (program != nullptr && has_account(program->account, process)) return built_in(program->rule);
  // The unit vouches for a daemon of another name (a wrapper, a new release), its user and place for the unit.
  const auto rule = rule_of_cgroup(process.cgroup);
  if (rule && has_account(Account::system, process)) return built_in(*rule);
  return std::nullopt;
}

}  // namespace

std::optional<Protection> protection_of(const Process& process, const Snapshot& snapshot) {
  if (auto absolute = absolute_protection(process, snapshot.caller)) return absolute;
  if (is_first_of_namespace(process)) return Protection{"pid1", "it is pid 1 of its pid namespace", false};
  if (!process.exe.known()) return protection_by_name(process);
  if (auto by_path = protection_by_path(process)) return by_path;
  if (is_login_shell(process, snapshot.shells)) return built_in("login");
  return std::nullopt;
}

std::optional<Protection> protection_by_role(const Process& process, const RoleFacts& facts) {
  if (facts.role == HolderRole::importer && facts.serves) return built_in("importer");
  if (facts.role != HolderRole::files) return std::nullopt;
  if (is_query(process)) return built_in("query");
  if (facts.computes && facts.standing != Standing::leftover) return built_in("suspended");
  return std::nullopt;
}

bool is_query(const Process& process) noexcept {
  if (!process.exe.known()) return is_query_name(process.comm);
  return (is_system_path(*process.exe) && is_query_name(base_name(*process.exe))) ||
         is_query_name(script_name(process));
}

Protection mps_client_protection() { return built_in("mps-client"); }

bool has_protected_name(std::string_view name) noexcept { return protected_name(name) != nullptr; }

std::optional<std::string> claim_of(const Process& process) {
  std::array<std::string_view, 3> names;
  if (process.exe.known()) names[0] = base_name(*process.exe);
  if (process.argv.known() && !process.argv->empty()) names[1] = base_name(process.argv->front());
  names[2] = process.comm;
  for (const auto name : names) {
    if (const auto* program = protected_comm(name))
      return fmt::format(
          "it claims to be {} ({}), but its executable or user is not that one's: that rule does not protect it", name,
          program->rule);
  }
  return std::nullopt;
}

}  // namespace vacate
