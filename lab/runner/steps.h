// SPDX-License-Identifier: Apache-2.0
// Executes the steps of a case in a running machine and says what differs from what they expect. It prints nothing:
// reports and narration are made from what it returns.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/case/case.h"
#include "lab/machine/machine.h"
#include "lab/runner/expect.h"

namespace lab {

/// For whom commands run.
enum class Audience {
  check,   ///< as the case has them, everything is compared
  people,  ///< without --json, and what needs JSON is not compared
};

struct StepsOptions {
  Audience audience = Audience::check;
  double time_scale = 1;   ///< `within` counts so many times: an instrumented binary is slower
  bool sanitized = false;  ///< a sanitizer's report in the output is a difference
  std::string scan = {};   ///< commands of root that look at processes get --scan with this; empty: none
};

/// What came of one step.
struct StepOutcome {
  std::vector<std::string> argv;         ///< as typed; empty for steps without a command
  std::optional<CommandResult> command;  ///< where one has ended in this step
  std::vector<std::string> differences;  ///< empty: as expected
};

/// `argv` with --scan `method` behind its command, if that is one of vacate's that looks at processes.
[[nodiscard]] std::vector<std::string> with_scan(std::vector<std::string> argv, const std::string& method);

class StepRunner {
 public:
  StepRunner(Machine& machine, const Case& scenario, StepsOptions options)
      : machine_(machine), case_(scenario), options_(options) {}

  [[nodiscard]] StepOutcome execute(const Step& step);

 private:
  /// A command that has been started, and what was true then.
  struct Running {
    int id = 0;
    vacate::Deadline::Clock::time_point begin;
    std::vector<ActorStatus> before;
    std::vector<std::string> argv;
    std::string save;
  };

  StepOutcome execute(const verb::Signal& signal);
  StepOutcome execute(const verb::Exits& exits);
  StepOutcome execute(const verb::Sleep& sleep);
  StepOutcome execute(const verb::Start& start);
  StepOutcome execute(const verb::PidReuse& reuse);
  StepOutcome execute(const verb::Run& run);
  StepOutcome execute(const verb::Finish& finish);

  vacate::Result<Running> start(const verb::Run& run);
  /// Waits for it, observes, compares; `name` is what later steps call its output.
  StepOutcome collect(Running running, const Expectations& expect);
  /// Everything that can have changed, read at once.
  vacate::Result<Observation> observe(const Running& running, CommandResult result);
  [[nodiscard]] vacate::Result<Expectations> final_expectations(Expectations expect) const;
  [[nodiscard]] PidOf pid_lookup() const;
  [[nodiscard]] vacate::Result<std::vector<ActorStatus>> statuses() const;

  Machine& machine_;
  const Case& case_;
  StepsOptions options_;
  std::string step_name_;                       ///< of the step at work
  std::map<std::string, std::string> earlier_;  ///< standard output by step name
  std::map<std::string, Running> background_;
};

}  // namespace lab
