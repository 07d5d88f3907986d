// SPDX-License-Identifier: Apache-2.0
// For tests: a small machine, looked at from the inside with ordinary tools. The body of a machine lives in another
// process, so what it saw comes back as texts.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "lab/case/parse.h"
#include "lab/driver/driver.h"
#include "lab/machine/files.h"
#include "lab/machine/machine.h"
#include "lab/machine/root.h"

namespace lab {

using Lines = std::vector<std::string>;
/// What a body saw, one text an observation.
using Observe = std::function<Lines(Machine&)>;

inline std::string actor_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "vacate-lab-actor";
}

/// The folder with the libraries of all eras.
inline std::string eras_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../lib/nvml";
}

/// Runs `observe` in a machine with these actors started; the body lives in another process, so what it saw comes back
/// in a file and is judged here.
inline Lines observe_in(const std::string& text, const Observe& observe, const std::string& eras = "") {
  const auto scenario = parse_case(text, "test.toml");
  if (!scenario) return {scenario.error().message};
  const vacate::UniqueFd seen(memfd_create("seen", MFD_CLOEXEC));
  const auto body = [&](Machine& machine) {
    const auto started = machine.start_actors();
    const Lines lines = started ? observe(machine) : Lines{"start: " + started.error().message};
    for (const std::string& line : lines) {
      const std::string record = line + '\0';
      if (write(seen.get(), record.data(), record.size()) < 0) return 1;
    }
    return 0;
  };
  const auto status = run_in_machine(*scenario, {"", actor_program(), "", eras}, body);
  if (!status) return {"machine: " + status.error().message};
  const std::string all = read_file(fmt::format("/proc/self/fd/{}", seen.get()));
  Lines lines;
  for (const std::string_view line : vacate::split(all, '\0')) lines.emplace_back(line);
  lines.pop_back();
  return lines;
}

/// Output of a shell command in the machine, without the line end; {name} stands for an actor's pid.
inline std::string ask(Machine& machine, std::string command, std::string user = "root") {
  for (std::size_t at = 0; (at = command.find('{', at)) != std::string::npos; ++at) {
    const std::size_t end = command.find('}', at);
    const auto actor = machine.actor(command.substr(at + 1, end - at - 1));
    if (actor) command.replace(at, end - at + 1, std::to_string(actor->pid));
  }
  CommandSpec spec;
  spec.argv = {"bash", "-c", std::move(command)};
  spec.user = std::move(user);
  const auto result = machine.run(spec, vacate::Deadline::after(std::chrono::seconds(20)));
  if (!result) return result.error().message;
  const std::string said = result->out + result->err;
  return std::string(vacate::trim(said));
}

inline std::string pid_of(Machine& machine, std::string_view name) {
  const auto actor = machine.actor(name);
  return actor ? std::to_string(actor->pid) : actor.error().message;
}

inline std::string used(Machine& machine) {
  const auto figures = machine.used_mib();
  return figures ? fmt::format("{}", fmt::join(*figures, " ")) : figures.error().message;
}

inline void end(Machine& machine, std::string_view name, int sig) {
  (void)machine.send_signal(name, sig);
  (void)machine.wait_exit(name, vacate::Deadline::after(std::chrono::seconds(5)));
}

/// ppid, process group and session.
inline std::string relations(Machine& machine, const std::string& name) {
  return ask(machine, fmt::format("ps -o ppid=,pgid=,sid= -p {{{}}} | xargs", name));
}

/// Descriptors of `name`, each as what it leads to, pipes without their numbers.
inline std::string descriptors(Machine& machine, const std::string& name) {
  return ask(
      machine,
      fmt::format("for f in /proc/{{{}}}/fd/*; do readlink $f; done | sed 's/\\[.*//' | LC_ALL=C sort | xargs", name));
}

class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    if (access(actor_program().c_str(), X_OK) != 0) GTEST_SKIP() << "needs vacate-lab-actor beside the test";
  }
};

}  // namespace lab
