// SPDX-License-Identifier: Apache-2.0
#include "app/unit.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/find_unit.h"
#include "app/select.h"
#include "attribute/programs.h"
#include "base/text.h"
#include "os/private_file.h"
#include "os/unit_files.h"
#include "unit/dropin.h"
#include "unit/lint.h"

namespace vacate {
namespace {

constexpr std::size_t kLargestEnvironment = std::size_t{1} << 20U;
constexpr std::chrono::seconds kDriverDeadline{5};
constexpr std::chrono::seconds kReloadDeadline{60};  // a manager with thousands of units takes some

Result<FoundUnit> find_subject(const std::string& subject) {
  if (subject.find('/') != std::string::npos) return read_unit_at(subject);
  const auto name = parse_service_name(subject);
  if (!name) return name.error();
  auto found = find_unit(*name);
  if (!found && found.error().code == ErrorCode::gone) return Error{ErrorCode::malformed, found.error().message};
  return found;
}

void read_environment(UnitToLint& unit, UnitLint& lint) {
  for (const auto& path : environment_files_of(unit.settings)) {
    const bool is_pattern = path.find_first_of("%*?[$") != std::string::npos;
    auto text = is_pattern ? Result<std::string>(Error{ErrorCode::unsupported,
                                                       fmt::format("cannot read '{}': it is no plain path", path)})
                           : read_regular_file(path, kLargestEnvironment);
    if (text) {
      unit.environment_files.push_back({path, *std::move(text)});
    } else {
      unit.unread_environment.push_back(path);
      lint.unread.push_back(text.error().message);
    }
  }
}

/// What the unit says by itself: an earlier drop-in of ours is no reason to keep what it set.
std::vector<UnitSource> without_ours(const std::vector<UnitSource>& sources) {
  std::vector<UnitSource> others;
  std::copy_if(sources.begin(), sources.end(), std::back_inserter(others),
               [](const UnitSource& source) { return !source.text.starts_with(kDropinMark); });
  return others;
}

/// The words of --gpu as they are to be written, and what is to be said of that.
Result<void> resolve(const std::vector<std::string>& words, DriverSession& driver, DropinRequest& request) {
  const bool is_all = std::find(words.begin(), words.end(), "all") != words.end();
  if (is_all) {
    request.gpus = {"all"};
    return {};
  }
  const auto sample = driver.sample(Deadline::after(kDriverDeadline));
  request.gpus_remark = fmt::format("GPUs {}, ", fmt::join(words, ","));
  if (sample.gpus.empty()) {
    request.gpus = words;
    request.gpus_remark += "as they were given: the driver did not answer, and an index may change at a boot";
    return {};
  }
  const auto indices = resolve_gpus(words, sample.gpus);
  if (!indices) return indices.error();
  for (const auto& gpu : sample.gpus)
    if (std::find(indices->begin(), indices->end(), gpu.index) != indices->end())
      request.gpus.push_back(gpu.uuid.empty() ? std::to_string(gpu.index) : gpu.uuid);
  request.gpus_remark += "by UUID: an index may change at a boot";
  return {};
}

Result<void> install(const std::string& unit, UnitDropin& dropin) {
  if (auto written = install_dropin(kOwnUnitFolder, unit, dropin.text, kDropinMark); !written) {
    auto error = written.error();
    if (error.code == ErrorCode::denied) error.message += "; nothing was installed: --install needs root";
    return error;
  }
  dropin.installed = true;
  const auto reloaded = reload_service_manager(Deadline::after(kReloadDeadline));
  dropin.reloaded = reloaded.has_value();
  if (!reloaded)
    dropin.notes.push_back(fmt::format("the service manager has not read it yet ({}): systemctl daemon-reload",
                                       printable(reloaded.error().message, 200)));
  return {};
}

}  // namespace

Result<UnitLint> lint_unit_of(const std::string& subject) {
  auto found = find_subject(subject);
  if (!found) return found.error();
  UnitLint lint;
  lint.unit = found->name;
  lint.masked_by = found->masked_by;
  lint.unread = std::move(found->unread);
  for (const auto& source : found->sources) lint.files.push_back(source.path);
  UnitToLint unit;
  if (const auto name = parse_service_name(found->name)) unit.prefix = name->prefix;
  unit.settings = UnitSettings::parse(found->sources);
  unit.work = is_service_of_others_work(found->name) ? UnitWork::of_others : UnitWork::its_own;
  read_environment(unit, lint);
  lint.findings = lint_unit(unit);
  return lint;
}

Result<UnitDropin> make_dropin(const DropinAsked& asked, DriverSession& driver) {
  const auto name = parse_service_name(asked.unit);
  if (!name) return name.error();
  DropinRequest request;
  request.name = *name;
  request.wait = asked.wait;
  UnitDropin dropin;
  const auto found = find_unit(*name);
  if (!found && found.error().code != ErrorCode::gone) return found.error();
  if (!found)
    dropin.notes.push_back(
        fmt::format("there is no {} here yet: its own timeouts and KillMode could not be looked at", name->full()));
  else if (!found->masked_by.empty())
    dropin.notes.push_back(fmt::format("{} is masked by {}: it cannot be started", name->full(), found->masked_by));
  else if (found->name != name->full())
    return Error{ErrorCode::malformed,
                 fmt::format("{} is another name of {}: name that one", name->full(), printable(found->name, 64))};
  const auto program = trusted_own_program();
  if (!program) return program.error();
  request.program = *program;
  if (auto resolved = resolve(asked.gpus, driver, request); !resolved) return resolved.error();
  auto text =
      render_dropin(request, UnitSettings::parse(found ? without_ours(found->sources) : std::vector<UnitSource>()));
  if (!text) return text.error();
  dropin.unit = name->full();
  dropin.path = fmt::format("{}/{}.d/vacate.conf", kOwnUnitFolder, name->full());
  dropin.text = *std::move(text);
  if (asked.install)
    if (auto installed = install(name->full(), dropin); !installed) return installed.error();
  return dropin;
}

}  // namespace vacate
