// SPDX-License-Identifier: Apache-2.0
// A child process for work that can block for ever. It has none of the caller's descriptors but one socket, dies with
// the caller, and is abandoned, never waited for, when it does not answer (design.md rule 7). It cannot protect the
// caller from what the child writes: callers parse that as they would a stranger's bytes.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace vacate {

class Expendable {
 public:
  /// Forks a child that runs `work(channel)` and ends with what it returns. In the child: default signal dispositions,
  /// nothing blocked, a session of its own (a terminal's ^C is for the caller), "/" as directory, /dev/null as standard
  /// streams. `name`: its comm, 15 bytes.
  [[nodiscard]] static Result<Expendable> start(const char* name, const std::function<int(int channel)>& work);
  /// The same with one descriptor of the caller's beside the channel. Nothing that others wait on the end of: a child
  /// that is stuck keeps it.
  [[nodiscard]] static Result<Expendable> start_with(const char* name, int shared,
                                                     const std::function<int(int channel, int shared)>& work);

  Expendable(Expendable&& other) noexcept;
  Expendable& operator=(Expendable&& other) noexcept;
  ~Expendable() { abandon(); }

  /// -1 once it has been reaped or abandoned.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// For poll(2): readable when the child has said something or closed its end.
  [[nodiscard]] int descriptor() const noexcept { return channel_.get(); }

  /// Next bytes from the child, at least one, at most `size`; 0: it closed its end. timed_out past the deadline.
  [[nodiscard]] Result<std::size_t> read_some(char* buffer, std::size_t size, Deadline deadline);
  /// All of `bytes` to the child. timed_out: it does not take them; gone: it closed its end.
  [[nodiscard]] Result<void> write_all(std::string_view bytes, Deadline deadline);

  /// Waits for the end and reaps: the wait status of waitpid(2), nothing past the deadline.
  [[nodiscard]] std::optional<int> wait(Deadline deadline) noexcept;
  /// KILL; whether it has ended and was reaped, now or before. One that is stuck in the kernel may be asked for again.
  [[nodiscard]] bool end_at_once() noexcept;
  /// KILL, reaped if it ends at once. One that is stuck in the kernel is left to init.
  void abandon() noexcept;

 private:
  Expendable(pid_t pid, UniqueFd pidfd, UniqueFd channel) noexcept
      : pid_(pid), pidfd_(std::move(pidfd)), channel_(std::move(channel)) {}
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd channel_;
};

/// In the child: sends `bytes` as they are. False: nobody listens any more.
[[nodiscard]] bool send_all(int channel, std::string_view bytes);
/// In the child: sends `payload` as one frame. False: nobody listens any more.
[[nodiscard]] bool send_frame(int channel, std::string_view payload);

}  // namespace vacate
