// SPDX-License-Identifier: Apache-2.0
// Signals to vacate that are meant for the command that it runs. A signal to the whole process group or control group
// reaches the command by itself; a witness, a small process in both of vacate's, tells those from signals to vacate
// alone, so that nobody gets one twice.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace vacate {

struct RelayedSignal {
  int number = 0;
  /// To vacate's whole process group: from the terminal (^C, ^\, a hang-up, a new size), or the witness has it as well.
  bool to_group = false;
};

class SignalRelay {
 public:
  /// Takes every signal that a person or a manager may send; vacate keeps them blocked from here on, job control's too.
  [[nodiscard]] static Result<SignalRelay> start();
  SignalRelay(SignalRelay&&) noexcept = default;
  SignalRelay& operator=(SignalRelay&&) = delete;
  ~SignalRelay();

  /// For poll(2): one of them is readable when something has come. -1 where there is no witness.
  [[nodiscard]] int signals() const noexcept { return signals_.get(); }
  [[nodiscard]] int witness() const noexcept { return reports_.get(); }
  /// Ends the witness and waits for it: the caller has one child less.
  void end_witness() noexcept;

  /// Takes what has come. Signals of `but_from` are left out: the keeper wakes vacate.
  void collect(pid_t but_from);
  /// When a signal is to be passed on that no witness has reported by then.
  [[nodiscard]] std::optional<Deadline::Clock::time_point> next_due() const;
  /// What is to be passed on now, in no order.
  [[nodiscard]] std::vector<RelayedSignal> take_due();

  /// Stops the calling process as `number` (TSTP, TTIN, TTOU, STOP) stops one, until somebody continues it.
  void stop_like(int number) const noexcept;

 private:
  SignalRelay(UniqueFd signals, UniqueFd reports, UniqueFd witness, pid_t witness_pid) noexcept
      : signals_(std::move(signals)),
        reports_(std::move(reports)),
        witness_(std::move(witness)),
        witness_pid_(witness_pid) {}
  void note_witnessed();

  UniqueFd signals_;
  UniqueFd reports_;
  UniqueFd witness_;
  pid_t witness_pid_ = -1;
  std::vector<RelayedSignal> due_;
  std::map<int, Deadline::Clock::time_point> pending_;    ///< by number: when it is due
  std::map<int, Deadline::Clock::time_point> witnessed_;  ///< by number: since when
};

/// Ends the calling process by `number`, as the command ended, so that a shell sees what it would have seen. Returns
/// only where the signal does not end a process. No core of vacate is written.
void die_by(int number) noexcept;

}  // namespace vacate
