// SPDX-License-Identifier: Apache-2.0
// Reads [[unit]], [[mps]] and [[shm]].
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lab/case/read.h"

namespace lab {
namespace {

using namespace std::string_view_literals;

enum class Answers { yes, never, refused };
constexpr std::array kAnswers{std::pair{"yes"sv, Answers::yes}, std::pair{"never"sv, Answers::never},
                              std::pair{"refused"sv, Answers::refused}};
constexpr std::array kAfterwards{std::pair{"exit"sv, true}, std::pair{"stay"sv, false}};
constexpr std::array kRestarts{std::pair{"no"sv, false}, std::pair{"always"sv, true}};

std::string read_file_name(TableReader& table, std::string_view what_for) {
  if (table.find("name") == nullptr) {
    table.missing("name", what_for);
    return {};
  }
  std::string name = table.text("name");
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    table.complaints().add(table.at("name"),
                           fmt::format("'name' in {} is '{}', but has to be one file name", table.where(), name));
  }
  return name;
}

void read_unit(const TomlNode& node, Case& result, Complaints& complaints) {
  TableReader table(node, "[[unit]]", complaints);
  UnitSpec unit;
  unit.at = table.at();
  unit.name = read_file_name(table, "units are called by it, e.g. \"llm.service\"");
  if (!unit.name.empty() && !unit.name.ends_with(".service")) {
    complaints.add(table.at("name"), fmt::format("the unit '{}' is no service: let it end in .service", unit.name));
  }
  if (table.find("main") == nullptr) {
    table.missing("main", "name the actor that is its main process");
  } else {
    unit.main = table.text("main");
    check_actor({unit.main, table.at("main")}, result, complaints);
  }
  unit.restart_always = table.word<bool>("restart", kRestarts, false);
  table.finish();
  const bool twice =
      std::any_of(result.units.begin(), result.units.end(), [&](const UnitSpec& u) { return u.name == unit.name; });
  if (twice) complaints.add(table.at("name"), fmt::format("a second unit is called '{}': names are unique", unit.name));
  result.units.push_back(std::move(unit));
}

/// An actor that a table has to name.
std::string read_part(TableReader& table, std::string_view key, const Case& result, Complaints& complaints) {
  if (table.find(key) == nullptr) {
    table.missing(std::string(key), "name the actor that plays this part");
    return {};
  }
  std::string name = table.text(key);
  check_actor({name, table.at(key)}, result, complaints);
  return name;
}

bool is_client(const ActorSpec& actor) {
  return std::any_of(actor.holds.begin(), actor.holds.end(), [](const HoldSpec& hold) { return hold.how == How::mps; });
}

void read_mps(const TomlNode& node, Case& result, Complaints& complaints) {
  TableReader table(node, "[[mps]]", complaints);
  MpsSpec mps;
  mps.at = table.at();
  mps.control = read_part(table, "control", result, complaints);
  mps.server = read_part(table, "server", result, complaints);
  mps.clients = resolve_globs(table.texts("clients"), result, complaints);
  if (table.find("clients") == nullptr) {
    for (const ActorSpec& actor : result.actors)
      if (is_client(actor)) mps.clients.push_back(actor.name);
  }
  for (const std::string& name : mps.clients) {
    if (is_client(*result.actor(name))) continue;
    complaints.add(table.at("clients"), fmt::format("'{}' is no MPS client: give it a hold with how = \"mps\"", name));
  }
  const auto answers = table.word<Answers>("answers", kAnswers, Answers::yes);
  mps.silent = answers == Answers::never;
  mps.refuses = answers == Answers::refused;
  mps.clients_exit = table.word<bool>("afterwards", kAfterwards, true);
  table.finish();
  result.mps.push_back(std::move(mps));
}

void read_shm(const TomlNode& node, std::optional<int> counter, Case& result, Complaints& complaints) {
  TableReader table(node, "[[shm]]", complaints, counter);
  ShmSpec shm;
  shm.at = table.at();
  (void)table.find("count");  // instances() has read it
  shm.sysv = table.boolean("sysv", false);
  shm.name = shm.sysv ? table.text("name") : read_file_name(table, "say which file of /dev/shm it is");
  shm.size = static_cast<Mib>(table.integer("size", {0, kMaxMib}, 1));
  shm.user = table.word<User>("user", kUserWords, User::root);
  shm.age = table.number("age", {0, kMaxAge}, 0);
  shm.mapped_by = resolve_globs(table.texts("mapped_by"), result, complaints);
  shm.opened_by = resolve_globs(table.texts("opened_by"), result, complaints);
  shm.locked_by = resolve_globs(table.texts("locked_by"), result, complaints);
  table.finish();
  const bool twice = !shm.sysv && std::any_of(result.shms.begin(), result.shms.end(),
                                              [&](const ShmSpec& s) { return !s.sysv && s.name == shm.name; });
  if (twice) complaints.add(table.at("name"), fmt::format("a second file is called '{}': names are unique", shm.name));
  result.shms.push_back(std::move(shm));
}

}  // namespace

void read_services(TableReader& root, Case& result) {
  for (const TomlNode& node : root.tables("unit")) read_unit(node, result, root.complaints());
  for (const TomlNode& node : root.tables("mps")) read_mps(node, result, root.complaints());
  for (const TomlNode& node : root.tables("shm")) {
    for (const auto counter : instances(node, "[[shm]]", root.complaints())) {
      read_shm(node, counter, result, root.complaints());
    }
  }
}

}  // namespace lab
