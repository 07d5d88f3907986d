// SPDX-License-Identifier: Apache-2.0
// Reads [[actor]], checks how actors refer to each other, and puts parents before their children.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lab/case/read.h"

namespace lab {
namespace {

using namespace std::string_view_literals;

constexpr std::array kStarts{std::pair{"begin"sv, StartTime::begin}, std::pair{"later"sv, StartTime::later}};
constexpr std::array kOnTerms{std::pair{"exit"sv, OnTerm::exit}, std::pair{"ignore"sv, OnTerm::ignore},
                              std::pair{"slow"sv, OnTerm::slow}, std::pair{"fork"sv, OnTerm::fork},
                              std::pair{"let-go"sv, OnTerm::let_go}};
constexpr std::array kOnParentExits{std::pair{"stay"sv, OnParentExit::stay}, std::pair{"exit"sv, OnParentExit::exit}};
constexpr std::array kOnKills{std::pair{"exit"sv, OnKill::exit}, std::pair{"stuck"sv, OnKill::stuck},
                              std::pair{"exiting"sv, OnKill::exiting}};
constexpr std::array kStates{
    std::pair{"running"sv, ActorState::running},   std::pair{"stopped"sv, ActorState::stopped},
    std::pair{"traced"sv, ActorState::traced},     std::pair{"frozen"sv, ActorState::frozen},
    std::pair{"zombie"sv, ActorState::zombie},     std::pair{"zombie-leader"sv, ActorState::zombie_leader},
    std::pair{"spinning"sv, ActorState::spinning}, std::pair{"dumping"sv, ActorState::dumping}};
constexpr std::array kFreezers{std::pair{"v2"sv, FreezerVersion::v2}, std::pair{"v1"sv, FreezerVersion::v1}};

/// What of an actor can be judged only when all are known. Same order as Case::actors.
struct Pending {
  Position name;
  Position parent;
  bool pipe_given = false;
  std::vector<PlacedText> respawn;
};

std::string read_name(TableReader& table) {
  constexpr std::string_view kForbidden = "*?[]{}:+/\\ \t\n\r";
  if (table.find("name") == nullptr) {
    table.missing("name", "give it one, steps need it");
    return {};
  }
  const std::string name = table.text("name");
  if (name.empty()) {
    table.complaints().add(table.at("name"), fmt::format("'name' in {} is empty: give it one", table.where()));
  } else if (name == kShell || name == kInit) {
    table.complaints().add(table.at("name"),
                           fmt::format("'{}' is a process of the machine: choose another name", name));
  } else if (name.find_first_of(kForbidden) != std::string::npos) {
    table.complaints().add(table.at("name"),
                           fmt::format("the name '{}' holds a character with a meaning in steps (blank * ? [ ] {{ }} : "
                                       "+ / \\): choose another, or add 'count' for {{i}}",
                                       name));
  }
  return name;
}

std::vector<std::string> read_argv(TableReader& table, const std::string& name) {
  if (table.find("argv") == nullptr) return {name};
  auto argv = plain(table.texts("argv"));
  if (table.is_empty_array("argv")) {
    table.complaints().add(table.at("argv"), "'argv' is empty: give at least the program's name");
  }
  if (argv.empty()) argv.push_back(name);
  return argv;
}

std::string read_path(TableReader& table, std::string_view key) {
  std::string path = table.text(key);
  if (path.empty() || (path.front() == '/' && path.size() > 1 && (path + "/").find("/../") == std::string::npos)) {
    return path;
  }
  table.complaints().add(table.at(key), fmt::format("'{}' in {} is '{}', but has to be an absolute path without '..'",
                                                    key, table.where(), path));
  return {};
}

std::map<std::string, std::string> read_env(TableReader& actor) {
  std::map<std::string, std::string> result;
  const TomlMember* member = actor.find("env");
  if (member == nullptr) return result;
  const auto* entries = member->value.as<TomlNode::Table>();
  if (entries == nullptr) {
    actor.wrong_type(member->value, "env", "a table of strings");
    return result;
  }
  for (const TomlMember& entry : *entries) {
    if (entry.key.empty() || entry.key.find('=') != std::string::npos) {
      actor.complaints().add(
          entry.at, fmt::format("'{}' cannot name an environment variable: it is empty or holds '='", entry.key));
    }
    if (auto value = actor.string_in(entry.value, entry.key)) result[actor.expand(entry.key)] = std::move(*value);
  }
  return result;
}

void read_behaviour(TableReader& table, ActorSpec& actor) {
  actor.on_term = table.word<OnTerm>("on_term", kOnTerms, OnTerm::exit);
  actor.slow = table.number("slow", {0, kMaxSeconds}, actor.slow);
  actor.on_parent_exit = table.word<OnParentExit>("on_parent_exit", kOnParentExits, OnParentExit::stay);
  actor.on_kill = table.word<OnKill>("on_kill", kOnKills, OnKill::exit);
  actor.stuck = table.number("stuck", {0, kMaxSeconds}, actor.stuck);
  actor.state = table.word<ActorState>("state", kStates, ActorState::running);
  actor.freezer = table.word<FreezerVersion>("freezer", kFreezers, FreezerVersion::v2);
  if (table.find("freezer") != nullptr && actor.state != ActorState::frozen)
    table.complaints().add(table.at("freezer"), "'freezer' is for state \"frozen\": set that, or leave it out");
}

void read_holds(TableReader& table, ActorSpec& actor, const MachineSpec& machine, std::optional<int> counter) {
  for (const TomlNode& node : table.tables("holds")) {
    TableReader hold(node, "'holds'", table.complaints(), counter);
    actor.holds.push_back(read_hold(hold, machine));
  }
}

void read_actor(const TomlNode& node, std::optional<int> counter, Case& result, std::vector<Pending>& pendings,
                Complaints& complaints) {
  TableReader table(node, "[[actor]]", complaints, counter);
  ActorSpec actor;
  Pending pending;
  actor.at = table.at();
  (void)table.find("count");  // instances() has read it
  actor.name = read_name(table);
  actor.start = table.word<StartTime>("start", kStarts, StartTime::begin);
  actor.parent = table.text("parent", std::string(kShell));
  actor.argv = read_argv(table, actor.name);
  actor.title = table.text("title");
  actor.exe = read_path(table, "exe");
  actor.env = read_env(table);
  actor.user = table.word<User>("user", kUserWords, User::root);
  actor.session = table.boolean("session", false);
  actor.group = table.boolean("group", false);
  actor.detached = table.boolean("detached", false);
  actor.subreaper = table.boolean("subreaper", false);
  actor.pipe = table.boolean("pipe", false);
  actor.cgroup = read_path(table, "cgroup");
  actor.pidns = table.text("pidns");
  actor.listen = static_cast<int>(table.integer("listen", {0, 65535}, 0));
  read_behaviour(table, actor);
  pending.respawn = table.texts("respawn");
  read_holds(table, actor, result.machine, counter);
  pending.name = table.at("name");
  pending.parent = table.at("parent");
  pending.pipe_given = table.find("pipe") != nullptr;
  table.finish();
  if (!actor.name.empty() && result.actor(actor.name) != nullptr) {
    complaints.add(pending.name, fmt::format("a second actor is called '{}': names are unique", actor.name));
    return;
  }
  result.actors.push_back(std::move(actor));
  pendings.push_back(std::move(pending));
}

void check_parent(const ActorSpec& actor, Position at, const Case& result, Complaints& complaints) {
  if (actor.parent == kShell || actor.parent == kInit) return;
  if (!check_actor({actor.parent, at}, result, complaints)) return;
  const ActorSpec* parent = result.actor(actor.parent);
  if (parent->start == StartTime::later && actor.start == StartTime::begin) {
    complaints.add(at, fmt::format("'{}' starts at the begin, its parent '{}' later: start it later too", actor.name,
                                   actor.parent));
  }
  const ActorSpec* above = parent;
  for (std::size_t n = 0; above != nullptr && n <= result.actors.size(); ++n) above = result.actor(above->parent);
  if (above != nullptr) {
    complaints.add(
        at, fmt::format("'{}' is its own ancestor: give one of them the parent \"shell\" or \"init\"", actor.name));
  }
}

void check_from(const ActorSpec& actor, const Case& result, Complaints& complaints) {
  for (const HoldSpec& hold : actor.holds) {
    if (hold.from.empty() || !check_actor({hold.from, hold.at}, result, complaints)) continue;
    if (hold.from == actor.name) {
      complaints.add(hold.at, fmt::format("'{}' is its own 'from': name another actor", actor.name));
    } else if (result.actor(hold.from)->start == StartTime::later && actor.start == StartTime::begin) {
      complaints.add(hold.at,
                     fmt::format("'{}' starts at the begin, '{}' whose clients it has later: start it later too",
                                 actor.name, hold.from));
    }
  }
}

void resolve_respawn(ActorSpec& actor, const Pending& pending, const Case& result, Complaints& complaints) {
  actor.respawn = resolve_globs(pending.respawn, result, complaints);
  for (const std::string& name : actor.respawn) {
    if (result.actor(name)->parent == actor.name) continue;
    complaints.add(pending.respawn.front().at,
                   fmt::format("'{}' starts '{}' again, but is not its parent: a process can "
                               "start only its own children again",
                               actor.name, name));
  }
}

/// A real multiprocessing child holds such a pipe; what a shell or pid 1 starts does not (design.md, Standing).
bool default_pipe(const ActorSpec& actor, const Case& result) {
  const ActorSpec* parent = result.actor(actor.parent);
  return parent != nullptr && !is_shell(parent->exe) && !actor.detached;
}

/// A forked child is in its parent's pid namespace; only unshare, which `pidns` stands for, changes that.
void inherit_pidns(std::vector<ActorSpec>& actors) {
  for (ActorSpec& actor : actors) {
    if (!actor.pidns.empty()) continue;
    const auto parent =
        std::find_if(actors.begin(), actors.end(), [&](const auto& a) { return a.name == actor.parent; });
    if (parent != actors.end()) actor.pidns = parent->pidns;
  }
}

/// Parents first, and the owners of clients before those who have them where that is possible; else the file's order.
std::vector<ActorSpec> in_starting_order(std::vector<ActorSpec> pending) {
  std::vector<ActorSpec> placed;
  const auto waits_for = [&](const std::string& name) {
    return std::any_of(pending.begin(), pending.end(), [&](const ActorSpec& a) { return a.name == name; });
  };
  const auto owners_first = [&](const ActorSpec& a) {
    return !waits_for(a.parent) &&
           std::none_of(a.holds.begin(), a.holds.end(), [&](const HoldSpec& h) { return waits_for(h.from); });
  };
  const auto parents_first = [&](const ActorSpec& a) { return !waits_for(a.parent); };
  while (!pending.empty()) {
    auto next = std::find_if(pending.begin(), pending.end(), owners_first);
    if (next == pending.end()) next = std::find_if(pending.begin(), pending.end(), parents_first);
    placed.push_back(std::move(*next));
    pending.erase(next);
  }
  return placed;
}

}  // namespace

void read_actors(TableReader& root, Case& result) {
  Complaints& complaints = root.complaints();
  std::vector<Pending> pendings;
  for (const TomlNode& node : root.tables("actor")) {
    for (const auto counter : instances(node, "[[actor]]", complaints)) {
      read_actor(node, counter, result, pendings, complaints);
    }
  }
  for (std::size_t n = 0; n < result.actors.size(); ++n) {
    ActorSpec& actor = result.actors[n];
    check_parent(actor, pendings[n].parent, result, complaints);
    check_from(actor, result, complaints);
    resolve_respawn(actor, pendings[n], result, complaints);
    if (!pendings[n].pipe_given) actor.pipe = default_pipe(actor, result);
  }
  if (!complaints.empty()) return;  // an order may not exist, and nobody will see it
  result.actors = in_starting_order(std::move(result.actors));
  inherit_pidns(result.actors);
}

}  // namespace lab
