// SPDX-License-Identifier: Apache-2.0
// /proc/devices, the names in /dev and what a number of a device says: the driver's own major is never taken for
// another's, and no name of another driver is a node of ours.
#include <sys/sysmacros.h>

#include "fuzz.h"
#include "gpu/device_nodes.h"
#include "os/proc_parse.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

void check_name(std::string_view name) {
  const auto node = parse_node_name(name);
  (void)ends_in_node_name(name);
  if (!node) return;
  require(ends_in_node_name("/dev/" + std::string(name)), "node: a path of the name ends in it");
  require(node->role != NodeRole::gpu || (node->minor && *node->minor <= 247), "node: a GPU has a minor of a GPU");
}

void check_nodes(const DeviceMajors& majors, std::uint64_t number) {
  DeviceNodes nodes({}, majors);
  const auto role = classify_device_number(majors, number);
  if (major(number) == DeviceMajors::kNvidia) require(role.has_value(), "node: every number of the driver is known");
  if (!role) return;
  const auto index = nodes.index_of(NodeKey{NodeKind::character, number, 0});
  require(index < nodes.nodes().size() && nodes.index_of(NodeKey{NodeKind::character, number, 0}) == index,
          "node: one number, one node");
  require(nodes.nodes()[index].role == role->role && nodes.nodes()[index].rdev == number, "node: as its number says");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto number = input.number<std::uint64_t>();
  const auto text = input.rest();
  const auto majors = parse_device_majors(text);
  for (const auto& entry : majors.entries) {
    require(entry.number <= 4095, "devices: a major has twelve bits");
    require(contains(text, std::to_string(entry.number)), "devices: a major stands in the text");
  }
  require(parse_character_majors(text.substr(0, text.find("Character devices:")), "nvidia-uvm").empty(),
          "devices: block devices are others");
  for (const auto line : split(text, '\n')) check_name(line);
  check_nodes(majors, number);
  check_nodes(majors, makedev(DeviceMajors::kNvidia, number & 0xFFU));
  return 0;
}
