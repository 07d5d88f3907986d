// SPDX-License-Identifier: Apache-2.0
// Reads [[step]]: exactly one verb each, and only keys that go with it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lab/case/read.h"

namespace lab {
namespace {

constexpr std::array<std::string_view, 7> kVerbs{"signal", "exits", "sleep", "start", "pid_reuse", "run", "finish"};
constexpr std::array<std::string_view, 7> kRunKeys{"user",     "tty",  "stdin",     "in_pidns",
                                                   "child_of", "save", "background"};

class StepsReader {
 public:
  StepsReader(Case& result, Complaints& complaints) : result_(result), complaints_(complaints) {}

  void read(const TomlNode& node);
  /// Complains about what no step has finished.
  void finish();

 private:
  /// The one verb of the table; empty and a complaint otherwise.
  std::string verb_of(TableReader& table);
  void refuse_keys(TableReader& table, std::string_view verb);
  verb::Signal read_signal(TableReader& step);
  verb::PidReuse read_pid_reuse(TableReader& step);
  verb::Start read_start(TableReader& step);
  verb::Run read_run(TableReader& step);
  verb::Finish read_finish(TableReader& step);
  void check_starts_later(const PlacedText& name);
  void read_place(TableReader& step, verb::Run& run);
  std::string read_step_name(TableReader& step);
  std::vector<PlacedText> globs(TableReader& table, std::string_view key);

  Case& result_;
  Complaints& complaints_;
  std::vector<std::string> names_;         ///< of the steps so far
  std::vector<std::string> started_;       ///< actors that start later, and have
  std::vector<PlacedText> in_background_;  ///< commands not finished so far
};

std::string StepsReader::verb_of(TableReader& table) {
  std::vector<const TomlMember*> found;
  for (const std::string_view verb : kVerbs) {
    if (const TomlMember* member = table.find(verb)) found.push_back(member);
  }
  if (found.size() == 1) return found.front()->key;
  if (found.empty()) {
    const std::vector<std::string> all(kVerbs.begin(), kVerbs.end());
    complaints_.add(table.at(), fmt::format("this [[step]] has no verb: give it {}", join_words(all)));
    return {};
  }
  std::sort(found.begin(), found.end(), [](const TomlMember* a, const TomlMember* b) {
    return std::pair(a->at.line, a->at.column) < std::pair(b->at.line, b->at.column);
  });
  complaints_.add(found[1]->at, fmt::format("this [[step]] has the verbs '{}' and '{}': make it two steps",
                                            found[0]->key, found[1]->key));
  return {};
}

void StepsReader::refuse_keys(TableReader& table, std::string_view verb) {
  const bool runs = verb == "run";
  const bool expects = runs || verb == "finish";
  const auto refuse = [&](std::string_view key, std::string_view whose) {
    const TomlMember* member = table.find(key);
    if (member == nullptr) return;
    complaints_.add(member->at, fmt::format("'{}' has no meaning beside '{}': only {} take it", key, verb, whose));
  };
  for (const std::string_view key : kRunKeys) {
    if (!runs) refuse(key, "steps with 'run'");
  }
  for (const std::string_view key : expectation_keys()) {
    if (!expects) refuse(key, "steps with 'run' or 'finish'");
  }
  if (!expects) refuse("name", "steps with 'run' or 'finish'");
}

std::vector<PlacedText> StepsReader::globs(TableReader& table, std::string_view key) {
  auto names = table.one_or_more(key);
  check_globs(names, result_, complaints_);
  if (table.is_empty_array(key)) complaints_.add(table.at(key), fmt::format("'{}' names nobody: name an actor", key));
  return names;
}

verb::Signal StepsReader::read_signal(TableReader& step) {
  constexpr std::string_view kGroup = "group:";
  verb::Signal signal;
  TableReader table(step.find("signal")->value, "'signal'", complaints_);
  const auto to = table.one_or_more("to");
  if (table.find("to") == nullptr || table.is_empty_array("to")) {
    complaints_.add(table.at("to"), "'signal' has nobody in 'to': name who gets it");
  }
  for (const PlacedText& target : to) {
    const bool group = target.text.starts_with(kGroup);
    const std::string name = group ? target.text.substr(kGroup.size()) : target.text;
    check_globs({{name, target.at}}, result_, complaints_);
    signal.to.push_back({name, group});
  }
  signal.word = table.text("with");
  const auto number = signal_number(signal.word);
  if (!number) {
    complaints_.add(table.at("with"), fmt::format("'with' in 'signal' is '{}', but has to be a signal without SIG, "
                                                  "e.g. \"TERM\" or \"KILL\"",
                                                  signal.word));
  }
  signal.number = number.value_or(0);
  table.finish();
  return signal;
}

void StepsReader::check_starts_later(const PlacedText& name) {
  if (!check_actor(name, result_, complaints_)) return;
  if (result_.actor(name.text)->start != StartTime::later) {
    complaints_.add(name.at, fmt::format("'{}' has started at the begin: give it start = \"later\"", name.text));
  } else if (std::find(started_.begin(), started_.end(), name.text) != started_.end()) {
    complaints_.add(name.at, fmt::format("'{}' has been started by an earlier step: start another", name.text));
  }
  started_.push_back(name.text);
}

verb::PidReuse StepsReader::read_pid_reuse(TableReader& step) {
  verb::PidReuse reuse;
  TableReader table(step.find("pid_reuse")->value, "'pid_reuse'", complaints_);
  for (const std::string_view key : {"of", "by"}) {
    if (table.find(key) == nullptr) table.missing(key, "write { of = \"NAME\", by = \"NAME\" }");
  }
  reuse.of = table.text("of");
  reuse.by = table.text("by");
  if (!reuse.of.empty()) check_actor({reuse.of, table.at("of")}, result_, complaints_);
  if (!reuse.by.empty()) check_starts_later({reuse.by, table.at("by")});
  table.finish();
  return reuse;
}

verb::Start StepsReader::read_start(TableReader& step) {
  verb::Start start;
  for (const PlacedText& glob : globs(step, "start")) {
    for (const std::string& name : resolve_globs({glob}, result_, complaints_)) {
      check_starts_later({name, glob.at});
      start.names.push_back(name);
    }
  }
  return start;
}

void StepsReader::read_place(TableReader& step, verb::Run& run) {
  run.user = step.word<User>("user", kUserWords, User::root);
  run.in_pidns = step.text("in_pidns");
  run.child_of = step.text("child_of", std::string(kShell));
  if (run.child_of.empty()) run.child_of = kShell;
  if (run.child_of != kShell) check_actor({run.child_of, step.at("child_of")}, result_, complaints_);
  const bool known =
      run.in_pidns.empty() || std::any_of(result_.actors.begin(), result_.actors.end(),
                                          [&](const ActorSpec& actor) { return actor.pidns == run.in_pidns; });
  if (!known) {
    complaints_.add(step.at("in_pidns"), fmt::format("no actor makes the pid namespace '{}': give one pidns = \"{}\"",
                                                     run.in_pidns, run.in_pidns));
  }
  run.save = step.text("save");
  if (!run.save.empty() && run.save.front() != '/') {
    complaints_.add(step.at("save"), fmt::format("'save' is '{}', but has to be an absolute path", run.save));
  }
}

verb::Run StepsReader::read_run(TableReader& step) {
  verb::Run run;
  const auto argv = step.texts("run");
  for (const PlacedText& word : argv) check_pid_marks(word, result_, complaints_);
  run.argv = plain(argv);
  if (step.is_empty_array("run")) complaints_.add(step.at("run"), "'run' is empty: give a program and its arguments");
  run.tty = step.boolean("tty", false);
  run.input = step.text("stdin");
  read_place(step, run);
  run.background = step.text("background");
  run.expect = read_expectations(step, result_, names_);
  if (run.background.empty()) return run;
  for (const std::string_view key : expectation_keys()) {
    if (const TomlMember* member = step.find(key)) {
      complaints_.add(member->at, fmt::format("'{}' cannot be judged while the command runs: put it into the step with "
                                              "finish = \"{}\"",
                                              key, run.background));
    }
  }
  const PlacedText background{run.background, step.at("background")};
  const bool twice = std::any_of(in_background_.begin(), in_background_.end(),
                                 [&](const PlacedText& other) { return other.text == background.text; });
  if (twice) complaints_.add(background.at, fmt::format("'{}' is still running: choose another name", run.background));
  if (!twice) in_background_.push_back(background);
  return run;
}

verb::Finish StepsReader::read_finish(TableReader& step) {
  verb::Finish finish;
  finish.background = step.text("finish");
  const auto running = std::find_if(in_background_.begin(), in_background_.end(),
                                    [&](const PlacedText& other) { return other.text == finish.background; });
  if (running == in_background_.end()) {
    complaints_.add(step.at("finish"), fmt::format("no command '{}' is running: start it with background = \"{}\"",
                                                   finish.background, finish.background));
  } else {
    in_background_.erase(running);
  }
  finish.expect = read_expectations(step, result_, names_);
  return finish;
}

std::string StepsReader::read_step_name(TableReader& step) {
  std::string name = step.text("name");
  if (name.empty()) return name;
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
    complaints_.add(step.at("name"), fmt::format("a second step is called '{}': names are unique", name));
  }
  names_.push_back(name);
  return name;
}

void StepsReader::read(const TomlNode& node) {
  TableReader table(node, "[[step]]", complaints_);
  const std::string verb = verb_of(table);
  if (verb.empty()) return;
  refuse_keys(table, verb);
  Step step;
  step.at = table.at(verb);
  if (verb == "signal") step.verb = read_signal(table);
  if (verb == "exits") step.verb = verb::Exits{plain(globs(table, verb))};
  if (verb == "sleep") step.verb = verb::Sleep{table.number(verb, {0, kMaxSeconds}, 0)};
  if (verb == "start") step.verb = read_start(table);
  if (verb == "pid_reuse") step.verb = read_pid_reuse(table);
  if (verb == "run") step.verb = read_run(table);
  if (verb == "finish") step.verb = read_finish(table);
  step.name = read_step_name(table);  // after the verb: a step cannot refer to itself
  table.finish();
  result_.steps.push_back(std::move(step));
}

void StepsReader::finish() {
  for (const PlacedText& background : in_background_) {
    complaints_.add(background.at, fmt::format("no step finishes '{}': add one with finish = \"{}\"", background.text,
                                               background.text));
  }
}

}  // namespace

void read_steps(TableReader& root, Case& result) {
  StepsReader steps(result, root.complaints());
  for (const TomlNode& node : root.tables("step")) steps.read(node);
  steps.finish();
}

}  // namespace lab
