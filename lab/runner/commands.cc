// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/text.h"
#include "lab/case/parse.h"

namespace lab {

int say_failure(const vacate::Error& error) {
  for (const auto line : vacate::split(error.message, '\n')) {
    fmt::print(stderr, "vacate-lab: {}\n", vacate::printable(line));
  }
  if (error.code == vacate::ErrorCode::unsupported) return kSkipStatus;
  return error.code == vacate::ErrorCode::malformed ? 2 : 1;
}

vacate::Result<Case> runnable_case(const std::string& path) {
  auto scenario = read_case(path);
  if (!scenario) return scenario;
  if (const auto reason = unsupported(*scenario)) {
    return vacate::Error{vacate::ErrorCode::bug, fmt::format("{}: the lab cannot do this yet: {}", path, *reason)};
  }
  return scenario;
}

int check_command(const CheckOptions& options) {
  const auto files = case_files(options.files);
  if (files.empty()) {
    fmt::print(stderr, "vacate-lab: no case in {}: name files that end in .toml\n", fmt::join(options.files, ", "));
    return 2;
  }
  std::size_t wrong = 0;
  for (const std::string& file : files) {
    const auto scenario = read_case(file);
    if (scenario) continue;
    ++wrong;
    fmt::print(stderr, "{}\n", scenario.error().message);  // FILE:LINE:COLUMN first, as editors want it
  }
  if (wrong > 0) return 2;
  fmt::print("{} case{} sound\n", files.size(), files.size() == 1 ? " is" : "s are");
  return 0;
}

int list_command(const ListOptions& options) {
  std::error_code failure;
  if (!std::filesystem::is_directory(options.folder, failure)) {
    return say_failure(
        {vacate::ErrorCode::malformed, fmt::format("{} is no folder: name one with cases", options.folder)});
  }
  const auto files = case_files({options.folder});
  std::size_t width = 0;
  for (const std::string& file : files) width = std::max(width, std::filesystem::path(file).stem().string().size());
  for (const std::string& file : files) {
    const auto scenario = read_case(file);
    const std::string name = std::filesystem::path(file).stem().string();
    if (!scenario) {
      fmt::print("{:{}}  (not sound: {})\n", name, width, vacate::split(scenario.error().message, '\n').front());
      continue;
    }
    const auto reason = unsupported(*scenario);
    fmt::print("{:{}}  {}{}\n", name, width, vacate::printable(scenario->title),
               reason ? fmt::format(" (not yet: {})", *reason) : "");
  }
  return 0;
}

int shell_command(const ShellOptions& options) {
  const auto scenario = runnable_case(options.file);
  if (!scenario) return say_failure(scenario.error());
  const auto status = run_in_machine(*scenario, options.paths, [&](Machine& machine) {
    if (const auto started = machine.start_actors(); !started) return say_failure(started.error());
    fmt::print("{}\n", vacate::printable(scenario->title));
    for (const ActorSpec& actor : scenario->actors) {
      const auto known = machine.actor(actor.name);
      if (known && known->pid != 0) fmt::print("  {:>6}  {}\n", known->pid, actor.name);
    }
    fmt::print("This is a machine of its own: nothing done here reaches the host. Leave it with 'exit'.\n");
    std::fflush(stdout);
    const auto ended = machine.shell();
    return ended ? *ended : say_failure(ended.error());
  });
  return status ? *status : say_failure(status.error());
}

}  // namespace lab
