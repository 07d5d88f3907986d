// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/text.h"

namespace lab {
namespace {

const std::vector<std::string> kCommands{"run", "check", "list", "shell", "demo"};

/// Where this program is: the rest of the build is beside it.
std::filesystem::path own_folder() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
}

/// `path` from the root: the machine has a root and a working directory of its own.
std::string absolute(const std::string& path) {
  std::error_code failure;
  return path.empty() ? path : std::filesystem::absolute(path, failure).lexically_normal().string();
}

MachinePaths default_paths() {
  const auto folder = own_folder();
  const auto product = folder / "vacate";
  std::error_code failure;
  return {std::filesystem::exists(product, failure) ? product.string() : "", (folder / "vacate-lab-actor").string(), "",
          (folder.parent_path() / "lib" / "nvml").string()};
}

/// Everything that CLI11 writes into while it parses.
struct Values {
  RunOptions run;
  CheckOptions check;
  ListOptions list;
  ShellOptions shell;
  DemoOptions demo;
  std::string vacate;
  std::string sanitized;
  std::string actor;
  std::string nvml;
};

void add_paths(CLI::App& command, Values& values) {
  command.add_option("--vacate", values.vacate, "The product (vacate beside this program)")->type_name("BIN");
  command.add_option("--actor", values.actor, "The actors (vacate-lab-actor beside it)")->type_name("BIN");
  command
      .add_option("--nvml", values.nvml, "The vendor's library, whatever the era\n(that of the case's, in ../lib/nvml)")
      ->type_name("LIB");
}

void add_run(CLI::App& app, Values& values) {
  auto* run = app.add_subcommand("run", "Run cases: one line each, and what differs");
  run->add_option("CASE", values.run.files, "Case files, or folders of them")->required();
  run->add_option("--jobs,-j", values.run.jobs, "Cases at once (one a core)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  run->add_option("--junit", values.run.junit, "Write the results as JUnit XML too")->type_name("FILE");
  run->add_flag("--keep-going,-k", values.run.keep_going, "Do not stop after the first failure");
  run->add_option("--sanitized", values.sanitized, "Test this build with sanitizers (see below)")->type_name("BIN");
  run->add_option("--scan", values.run.settings.steps.scan, "Give the product's commands --scan with this method")
      ->type_name("METHOD")
      ->check(CLI::IsMember({"auto", "procfs", "bpf"}));
  add_paths(*run, values);
  run->footer(
      "With --sanitized a sanitizer's report is a failure, and 'within' counts three\ntimes.\n\n"
      "Exit: 0 all passed, 1 some failed, 77 all were skipped (the kernel lacks\nsomething), 2 usage.\n\n"
      "Examples:\n  vacate-lab run tests/cases --jobs 4 --keep-going\n"
      "  vacate-lab run tests/cases/incident-stubborn-96gib.toml");
}

void add_others(CLI::App& app, Values& values) {
  auto* check = app.add_subcommand("check", "Check the form of cases without running them");
  check->add_option("CASE", values.check.files, "Case files, or folders of them")->required();
  check->footer("Exit: 0 all are sound, 2 some are not.\n\nExample:\n  vacate-lab check tests/cases");
  auto* list = app.add_subcommand("list", "List cases and what the lab cannot run yet");
  list->add_option("DIR", values.list.folder, "Folder of cases (default: tests/cases)");
  list->footer("Example:\n  vacate-lab list tests/cases");
  auto* shell = app.add_subcommand("shell", "Open a shell in the machine of a case");
  shell->add_option("CASE", values.shell.file, "The case; its steps are not run")->required();
  add_paths(*shell, values);
  shell->footer("Example:\n  vacate-lab shell tests/cases/incident-stubborn-96gib.toml");
  auto* demo = app.add_subcommand("demo", "Tell the story of a case to a person");
  demo->add_option("CASE", values.demo.file, "The case")->required();
  add_paths(*demo, values);
  demo->footer("Example:\n  vacate-lab demo tests/cases/incident-stubborn-96gib.toml");
}

/// One line, what is wrong and where to look.
Answer usage_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  const auto used = app.get_subcommands();
  const std::string program = used.empty() ? "vacate-lab" : "vacate-lab " + used.front()->get_name();
  std::string what = error.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (used.empty() && !arguments.empty() && !arguments.front().starts_with('-')) {
    what = fmt::format("there is no command '{}'", vacate::printable(arguments.front()));
    if (const auto close = vacate::closest_match(arguments.front(), kCommands))
      what += fmt::format(", did you mean '{}'?", *close);
  }
  return {"", fmt::format("vacate-lab: {}; try '{} --help'\n", vacate::printable(what), program), 2};
}

MachinePaths chosen_paths(const Values& values) {
  MachinePaths paths = default_paths();
  if (!values.vacate.empty()) paths.vacate = absolute(values.vacate);
  if (!values.sanitized.empty()) paths.vacate = absolute(values.sanitized);
  if (!values.actor.empty()) paths.actor = absolute(values.actor);
  if (!values.nvml.empty()) paths.nvml = absolute(values.nvml);
  return paths;
}

/// What of the build is not there; the product alone may be missing, for a look at the machine.
std::string missing_program(const MachinePaths& paths, const std::string& command) {
  std::error_code failure;
  const auto is_file = [&](const std::string& path) { return std::filesystem::is_regular_file(path, failure); };
  if (paths.vacate.empty() && command != "shell")
    return "there is no product beside this program: build it, or name it with --vacate";
  if (!paths.vacate.empty() && !is_file(paths.vacate))
    return fmt::format("{} is no program: name the product", paths.vacate);
  if (!is_file(paths.actor)) return fmt::format("{} is not there: build it, or name it with --actor", paths.actor);
  if (!paths.nvml.empty() && !is_file(paths.nvml))
    return fmt::format("{} is not there: name the vendor's library with --nvml", paths.nvml);
  if (paths.nvml.empty() && !std::filesystem::is_directory(paths.eras, failure))
    return fmt::format("{} is not there: build lab_nvml, or name a library with --nvml", paths.eras);
  return {};
}

Command chosen_command(const CLI::App& app, Values& values) {
  const std::string name = app.get_subcommands().front()->get_name();
  const MachinePaths paths = chosen_paths(values);
  if (name == "check") return values.check;
  if (name == "list") return values.list;
  if (const auto missing = missing_program(paths, name); !missing.empty()) {
    return Answer{"", fmt::format("vacate-lab: {}; try 'vacate-lab {} --help'\n", missing, name), 2};
  }
  if (name == "shell") {
    values.shell.paths = paths;
    return values.shell;
  }
  if (name == "demo") {
    values.demo.paths = paths;
    return values.demo;
  }
  values.run.settings.paths = paths;
  if (!values.sanitized.empty()) {
    values.run.settings.steps.sanitized = true;
    values.run.settings.steps.time_scale = 3;
  }
  return values.run;
}

}  // namespace

Command parse_command_line(const std::vector<std::string>& arguments) {
  Values values;
  values.run.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  values.list.folder = "tests/cases";
  CLI::App app("Runs cases on simulated GPU machines: real processes, a simulated driver.", "vacate-lab");
  app.require_subcommand(1);
  app.get_formatter()->column_width(26);
  add_run(app, values);
  add_others(app, values);
  app.footer(
      "Examples:\n  vacate-lab run tests/cases --keep-going\n  vacate-lab demo "
      "tests/cases/incident-stubborn-96gib.toml");
  try {  // CLI11 reports by exceptions; they end here
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    const auto used = app.get_subcommands();
    return Answer{used.empty() ? app.help() : used.front()->help("vacate-lab"), "", 0};
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, arguments);
  }
  return chosen_command(app, values);
}

}  // namespace lab
