// SPDX-License-Identifier: Apache-2.0
// The command line as plain values: what was asked, not yet checked against the machine.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/run.h"
#include "model/policy.h"
#include "model/shm.h"
#include "model/wait.h"

namespace vacate {

enum class OutputFormat { text, json };

/// Words of selectors that only a scan or the user database can resolve.
struct SelectorWords {
  std::vector<std::string> gpus;   ///< of --gpu; none: all
  std::vector<std::string> users;  ///< of --user: names or numbers
  /// As Selection has them; nobody has to resolve these.
  std::vector<std::string> units = {}, containers = {}, jobs = {}, cgroups = {};
  bool operator==(const SelectorWords&) const = default;
};

struct StatusOptions {
  OutputFormat format = OutputFormat::text;
  SelectorWords words;
  std::vector<ProcessSelector> pids;
  bool watch = false;                      ///< redraw until interrupted
  std::optional<std::string> replay = {};  ///< the recording to read instead of the machine
  std::optional<std::string> policy_file = {};
  ScanMethod scan = ScanMethod::automatic;
};

enum class Mode { ask, yes, dry_run };

struct FreeOptions {
  OutputFormat format = OutputFormat::text;
  SelectorWords words;
  FreeRequest request;  ///< complete but for GPUs and users
  Mode mode = Mode::ask;
  bool quiet = false;
  bool usual_timeout = true;               ///< no --timeout was given
  std::optional<std::string> replay = {};  ///< the recording to read instead of the machine; only with Mode::dry_run
  std::optional<std::string> policy_file = {};
  ScanMethod scan = ScanMethod::automatic;
  std::optional<std::string> plan_file = {};  ///< a reviewed plan: nothing beyond it is done
};

struct WaitOptions {
  OutputFormat format = OutputFormat::text;
  SelectorWords words;
  WaitRequest request;  ///< complete but for GPUs and users
  bool quiet = false;
  bool reap = false;
  bool lock = false;
  std::optional<std::string> policy_file = {};
  ScanMethod scan = ScanMethod::automatic;
};

/// What is asked about, and in place of which machine.
struct WhyOptions {
  OutputFormat format = OutputFormat::text;
  SelectorWords words;
  std::vector<ProcessSelector> pids;
  std::optional<std::string> replay;
  std::optional<std::string> policy_file = {};
  ScanMethod scan = ScanMethod::automatic;
};

struct DoctorOptions {
  OutputFormat format = OutputFormat::text;
  ScanMethod scan = ScanMethod::automatic;
};

struct RecordOptions {
  std::optional<std::string> file;  ///< none: standard output
  bool redact = false;              ///< what one would not post in public is replaced
  ScanMethod scan = ScanMethod::automatic;
};

struct ShmOptions {
  OutputFormat format = OutputFormat::text;
  bool clean = false;  ///< else list
  ShmRequest request;
  Mode mode = Mode::ask;
};

struct RunOptions {
  OutputFormat format = OutputFormat::text;
  RunRequest request;
  bool quiet = false;
  std::optional<std::string> policy_file = {};
  ScanMethod scan = ScanMethod::automatic;
};

struct UnitLintOptions {
  OutputFormat format = OutputFormat::text;
  std::string subject;  ///< a name, or a path
};

struct UnitDropinOptions {
  OutputFormat format = OutputFormat::text;
  std::string unit;
  std::vector<std::string> gpus;  ///< as they were written
  std::chrono::milliseconds wait{300'000};
  bool install = false;
};

/// Of the record of what was done.
struct LogOptions {
  OutputFormat format = OutputFormat::text;
  std::optional<std::chrono::milliseconds> since;
  std::vector<ProcessSelector> pids;
  std::string plan;  ///< the beginning of its id
};

/// Something to be printed on standard output, and that is all.
struct ShowText {
  std::string text;
};

using Options = std::variant<StatusOptions, FreeOptions, WaitOptions, WhyOptions, DoctorOptions, RecordOptions,
                             ShmOptions, RunOptions, LogOptions, UnitLintOptions, UnitDropinOptions, ShowText>;

/// One line that says what is wrong, without the program's name, and the command that explains how to do it right.
struct UsageError {
  std::string message;
  std::string try_command;
};

}  // namespace vacate
