// SPDX-License-Identifier: Apache-2.0
// /proc/PID/maps, a line and a whole file that comes in pieces: cut anywhere, it gives the same nodes with the same
// counts.
#include <algorithm>

#include "fuzz.h"
#include "os/proc_parse.h"
#include "probe/mappings.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

MapsMatcher::Identified identify(const MapsLine& line) {
  require(line.inode != 0, "maps: anonymous memory is of no file");
  if (line.inode % 3 == 0) return {std::nullopt, true};
  return {NodeKey{line.inode % 3 == 1 ? NodeKind::character : NodeKind::file, line.device, line.inode},
          line.inode % 2 == 0};
}

std::map<NodeKey, unsigned> nodes_in(std::string_view text, std::size_t piece) {
  MapsMatcher matcher(identify);
  matcher.start();
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) matcher.feed(text.substr(0, piece));
  return matcher.found();
}

void check_line(std::string_view line) {
  const auto parsed = parse_maps_line(line);
  if (!parsed) return;
  require(is_inside(parsed->range, line) && is_inside(parsed->path, line), "maps: views of the line");
  require(contains(parsed->range, "-") && !contains(parsed->range, "/"), "maps: the range is one name in map_files");
  require(parsed->range != "." && parsed->range != "..", "maps: the range leads nowhere else");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  for (const auto line : split(text, '\n')) check_line(line);
  const auto whole = nodes_in(text, text.size() + 1);
  unsigned mapped = 0;
  for (const auto& [node, count] : whole) mapped += count;
  require(mapped <= static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), "maps: a mapping is a line");
  require(nodes_in(text, 1) == whole && nodes_in(text, 7) == whole, "maps: pieces give what the whole gives");
  return 0;
}
