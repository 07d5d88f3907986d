// SPDX-License-Identifier: Apache-2.0
#include "app/find_unit.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "os/private_file.h"
#include "os/unit_files.h"

namespace vacate {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20U;
constexpr std::size_t kMostAliases = 64;

std::string name_in(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

/// Where a unit's own file is, and what it is called in the end.
struct Fragment {
  std::string path;
  ServiceName name;
  bool is_masked = false;
};

/// The name that a link's target stands for: a template's target keeps the instance that was asked for.
ServiceName name_of_target(const ServiceName& asked, const std::string& target) {
  const auto name = parse_service_name(name_in(target));
  if (!name) return asked;
  if (!name->is_template()) return *name;
  ServiceName instance = *name;
  instance.instance = asked.instance;
  return instance;
}

Result<Fragment> find_fragment(const ServiceName& name) {
  std::vector<std::string> files{name.full()};
  if (const auto whole = name.template_name(); whole && !name.is_template()) files.push_back(*whole);
  for (const auto& file : files) {
    for (const auto& folder : unit_folders()) {
      const std::string path = fmt::format("{}/{}", folder, file);
      const auto state = look_at_unit_file(path);
      if (state.kind == UnitFileKind::masked) return Fragment{path, name, true};
      if (state.kind == UnitFileKind::file) return Fragment{state.target, name_of_target(name, state.target), false};
    }
  }
  return Error{ErrorCode::gone, fmt::format("no unit is called {}; a file is named with a slash in it, as in ./{}",
                                            printable(name.full(), 64), printable(name.full(), 64))};
}

/// Every name of the unit, its own first: links in the folders of units that lead to it.
std::vector<ServiceName> names_of(const Fragment& fragment, const ServiceName& asked) {
  std::vector<ServiceName> names{fragment.name};
  const auto add = [&](const ServiceName& name) {
    const auto same = [&](const ServiceName& other) { return other.full() == name.full(); };
    if (names.size() < kMostAliases && std::none_of(names.begin(), names.end(), same)) names.push_back(name);
  };
  add(asked);
  for (const auto& folder : unit_folders())
    for (const auto& entry : list_unit_folder(folder))
      if (entry.link_name == fragment.name.full())
        if (const auto alias = parse_service_name(entry.name); alias && entry.name.ends_with(".service")) add(*alias);
  return names;
}

/// Drop-ins of the folders, by file name; of two of one name the earlier folder's. Masked ones take the name and give
/// nothing.
void add_dropins(const std::vector<std::string>& folders, FoundUnit& unit) {
  std::map<std::string, std::string> paths;
  for (const auto& folder : folders)
    for (const auto& entry : list_unit_folder(folder))
      if (entry.name.ends_with(".conf")) paths.emplace(entry.name, folder + "/" + entry.name);
  for (const auto& [name, path] : paths) {
    if (look_at_unit_file(path).kind == UnitFileKind::masked) continue;
    auto text = read_regular_file(path, kLargestFile);
    if (text)
      unit.sources.push_back({path, *std::move(text)});
    else
      unit.unread.push_back(text.error().message);
  }
}

}  // namespace

Result<FoundUnit> find_unit(const ServiceName& name) {
  const auto fragment = find_fragment(name);
  if (!fragment) return fragment.error();
  FoundUnit unit;
  unit.name = fragment->name.full();
  if (fragment->is_masked) {
    unit.masked_by = fragment->path;
    return unit;
  }
  auto text = read_regular_file(fragment->path, kLargestFile);
  if (!text) return text.error();
  unit.sources.push_back({fragment->path, *std::move(text)});
  std::vector<std::string> folders;
  for (const auto& each : names_of(*fragment, name))
    for (const auto& folder : unit_folders())
      for (const auto& below : dropin_folders(each)) folders.push_back(fmt::format("{}/{}", folder, below));
  for (const auto& folder : unit_folders()) folders.push_back(folder + "/service.d");
  add_dropins(folders, unit);
  return unit;
}

Result<FoundUnit> read_unit_at(const std::string& path) {
  auto text = read_regular_file(path, kLargestFile);
  if (!text) return text.error();
  FoundUnit unit;
  unit.name = name_in(path);
  unit.sources.push_back({path, *std::move(text)});
  const auto name = parse_service_name(unit.name);
  if (!name || !unit.name.ends_with(".service")) return unit;
  std::vector<std::string> folders;
  const std::string folder = path.substr(0, path.size() - unit.name.size());
  for (const auto& below : dropin_folders(*name)) folders.push_back(folder + below);
  add_dropins(folders, unit);
  return unit;
}

}  // namespace vacate
