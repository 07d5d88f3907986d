// SPDX-License-Identifier: Apache-2.0
// Reads [[unit]] and [[shm]].
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lab/case/read.h"

namespace lab {
namespace {

using namespace std::string_view_literals;

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
  for (const TomlNode& node : root.tables("shm")) {
    for (const auto counter : instances(node, "[[shm]]", root.complaints())) {
      read_shm(node, counter, result, root.complaints());
    }
  }
}

}  // namespace lab
