// SPDX-License-Identifier: Apache-2.0
// One line of the record of what was done, as it is kept and read back: an action announced, or what came of one. Plain
// values. What was read back may have been written by anybody: every text is hostile bytes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vacate {

enum class EntryPhase {
  intent,  ///< it is about to be done
  result,  ///< what came of it
};

/// Which vacate wrote it. `run` and the number of an entry tell an action from every other.
struct EntryAuthor {
  std::string run;                      ///< 16 hex digits, random: one run of vacate
  pid_t pid = 0;                        ///< as it saw itself
  uid_t uid = 0;                        ///< effective; of what the journal kept, as the journal saw it
  std::optional<uid_t> login_uid = {};  ///< who had logged in, before any sudo
  bool operator==(const EntryAuthor&) const = default;
};

struct ActionEntry {
  double time = 0;  ///< seconds since the epoch
  EntryAuthor author;
  std::uint64_t number = 0;  ///< of the action within the run, 1..
  EntryPhase phase = EntryPhase::intent;
  std::string boot_id;
  std::string plan;    ///< empty: of none
  unsigned n = 0;      ///< the step
  std::string action;  ///< "signal", "stop-unit", ...; a later vacate may know more
  std::string signal;  ///< of a signal, else empty
  pid_t pid = 0;       ///< 0: it is no process
  std::string key;     ///< "4711@156405"
  std::string target;  ///< unit, path, control group
  std::string title;
  std::vector<std::string> because;
  std::string result;  ///< of a result: "done", "gone", "denied", "left-alone", "failed"
  std::string detail;
  bool operator==(const ActionEntry&) const = default;
};

}  // namespace vacate
