// SPDX-License-Identifier: Apache-2.0
// A child process for a test: runs a set-up of the test's, says that it has, and then lives until it is ended. Ended
// with its object at the latest. It must not use gtest.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/unique_fd.h"

namespace lab {

class Child {
 public:
  /// Forks. Returns when `set_up` has returned or the child has ended or executed another program; what `set_up` wrote
  /// to the descriptor it is given is then in said().
  explicit Child(const std::function<void(int say)>& set_up);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] const std::string& said() const noexcept { return said_; }

  void signal(int number) const;
  /// Waits until the child has ended, but not for ever.
  [[nodiscard]] bool ends_within(int milliseconds);
  /// Ends it by SIGKILL and reaps it.
  void end();

  /// First word after `key` in /proc/PID/status, "" if there is none.
  [[nodiscard]] std::string status(const std::string& key) const;
  [[nodiscard]] std::string wait_channel() const;
  /// Whether its main thread waits for the answer to the ioctl `command`.
  [[nodiscard]] bool waits_in_ioctl(unsigned long command) const;

 private:
  pid_t pid_ = -1;
  vacate::UniqueFd pidfd_;
  std::string said_;
};

/// Turns the calling process, a child, into a program that lives until it is ended.
[[noreturn]] void become_another_program();

}  // namespace lab
