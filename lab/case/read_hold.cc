// SPDX-License-Identifier: Apache-2.0
// Reads one entry of an actor's `holds`: one client, or references to the clients of another actor.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "lab/case/read.h"

namespace lab {
namespace {

using namespace std::string_view_literals;

constexpr std::array kHows{std::pair{"compute"sv, How::compute},
                           std::pair{"graphics"sv, How::graphics},
                           std::pair{"mps"sv, How::mps},
                           std::pair{"files"sv, How::files},
                           std::pair{"ctl"sv, How::ctl},
                           std::pair{"uvm"sv, How::uvm},
                           std::pair{"inherited"sv, How::inherited},
                           std::pair{"mapped"sv, How::mapped},
                           std::pair{"thread"sv, How::thread},
                           std::pair{"in-flight"sv, How::in_flight},
                           std::pair{"managed"sv, How::managed},
                           std::pair{"path-only"sv, How::path_only},
                           std::pair{"exported"sv, How::exported}};

/// Where `from` may stand, and where it has to.
bool may_have_from(How how) {
  return how == How::inherited || how == How::exported || how == How::mapped || how == How::thread ||
         how == How::in_flight;
}
bool must_have_from(How how) { return how == How::inherited || how == How::exported; }

/// The references are to clients of `from`: there is no client of its own to charge.
bool borrows(const HoldSpec& hold) { return !hold.from.empty() && hold.how != How::exported; }

std::optional<std::int64_t> index_in(TableReader& table, const TomlNode& node) {
  if (node.as<std::string>() == nullptr) return table.integer_in(node, "gpu", {0, INT32_MAX});
  const auto text = table.string_in(node, "gpu");
  if (!text) return std::nullopt;
  const auto number = vacate::parse_unsigned(*text);
  if (number && *number <= INT32_MAX) return static_cast<std::int64_t>(*number);
  table.complaints().add(node.at, fmt::format("'gpu' in {} is '{}', but has to be an index, a list of indices, or "
                                              "\"{{i}}\" in an entry with 'count'",
                                              table.where(), *text));
  return std::nullopt;
}

void read_gpus(TableReader& table, const MachineSpec& machine, HoldSpec& hold) {
  const TomlMember* member = table.find("gpu");
  if (member == nullptr) return;
  std::vector<TomlNode> single;
  const auto* items = member->value.as<TomlNode::Array>();
  if (items == nullptr) {
    single.push_back(member->value);
    items = &single;
  }
  for (const TomlNode& item : *items) {
    const auto index = index_in(table, item);
    if (!index || !check_gpu(*index, machine, item.at, table.complaints())) continue;
    if (std::find(hold.gpus.begin(), hold.gpus.end(), *index) != hold.gpus.end()) {
      table.complaints().add(item.at, fmt::format("GPU {} is in the list twice: a client has one entry a GPU", *index));
      continue;
    }
    hold.gpus.push_back(static_cast<int>(*index));
  }
}

void read_nodes(TableReader& table, const MachineSpec& machine, HoldSpec& hold) {
  if (table.find("nodes") == nullptr) return;
  if (hold.how != How::inherited) {
    table.complaints().add(table.at("nodes"),
                           fmt::format("'nodes' in {} is only for how = \"inherited\": remove it", table.where()));
  }
  const auto nodes = table.texts("nodes");
  if (nodes.empty()) {
    table.complaints().add(table.at("nodes"), "'nodes' is empty: name at least one of \"ctl\", \"uvm\", \"gpuN\"");
  }
  for (const PlacedText& node : nodes) {
    const bool gpu = node.text.starts_with("gpu");
    const auto index = gpu ? vacate::parse_unsigned(std::string_view(node.text).substr(3)) : std::nullopt;
    if (index) {
      check_gpu(static_cast<std::int64_t>(*index & INT32_MAX), machine, node.at, table.complaints());
    } else if (node.text != "ctl" && node.text != "uvm") {
      table.complaints().add(node.at,
                             fmt::format("'nodes' has '{}', but knows only \"ctl\", \"uvm\" and \"gpuN\"", node.text));
      continue;
    }
    hold.nodes.push_back(node.text);
  }
}

Release read_release(TableReader& hold) {
  const TomlMember* member = hold.find("release");
  if (member == nullptr) return {};
  TableReader table(member->value, "'release'", hold.complaints());
  Release release;
  release.after = table.number("after", {-1, kMaxSeconds}, 0);
  release.steps = static_cast<int>(table.integer("steps", {1, 1000}, 1));
  if (release.after < 0 && release.after > -1) {
    table.complaints().add(table.at("after"), "'after' is neither -1 (never) nor a time: make it -1, 0 or more");
  }
  table.finish();
  return release;
}

/// What is contradictory, and would otherwise be ignored in silence.
void check_hold(TableReader& table, const HoldSpec& hold) {
  const auto complain = [&](std::string_view key, std::string text) {
    table.complaints().add(table.at(key), std::move(text));
  };
  const std::string how = table.text("how", "compute");
  if (must_have_from(hold.how) && hold.from.empty()) {
    complain("how", fmt::format("how = \"{}\" needs 'from': name the actor whose clients they are", how));
  }
  if (!may_have_from(hold.how) && !hold.from.empty()) {
    complain("from", fmt::format("'from' has no meaning with how = \"{}\": remove it", how));
  }
  const bool needs_gpu = !borrows(hold) && !must_have_from(hold.how) && hold.how != How::ctl && hold.how != How::uvm;
  if (needs_gpu && table.find("gpu") == nullptr) table.missing("gpu", "say which GPU is held, e.g. gpu = 0");
  if (hold.memory == 0) return;
  if (hold.how == How::files || hold.how == How::uvm || hold.how == How::path_only || borrows(hold)) {
    complain("memory", fmt::format("'memory' has no meaning with how = \"{}\"{}: nothing is charged, remove it", how,
                                   borrows(hold) ? " and 'from'" : ""));
  } else if (!needs_gpu && table.find("gpu") == nullptr) {
    complain("memory", "'memory' needs 'gpu': say on which GPU it is charged");
  }
}

}  // namespace

HoldSpec read_hold(TableReader& table, const MachineSpec& machine) {
  HoldSpec hold;
  hold.at = table.at();
  hold.how = table.word<How>("how", kHows, How::compute);
  hold.memory = static_cast<Mib>(table.integer("memory", {0, kMaxMib}, 0));
  hold.from = table.text("from");
  hold.count = static_cast<int>(table.integer("count", {1, kMaxCount}, 0));
  hold.release = read_release(table);
  read_gpus(table, machine, hold);
  read_nodes(table, machine, hold);
  check_hold(table, hold);
  table.finish();
  return hold;
}

}  // namespace lab
