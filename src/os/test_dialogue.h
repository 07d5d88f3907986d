// SPDX-License-Identifier: Apache-2.0
// For tests: a child process with which words are exchanged over its standard input and output, so that what it does
// next is in the test's hands.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace vacate::testing {

class Dialogue {
 public:
  /// The child runs `work`; if that returns, it ends with 1.
  explicit Dialogue(const std::function<void()>& work) {
    std::array<int, 2> input{}, output{};
    if (pipe2(input.data(), O_CLOEXEC) != 0 || pipe2(output.data(), O_CLOEXEC) != 0) return;
    const UniqueFd its_input(input[0]), its_output(output[1]);
    input_.reset(input[1]);
    output_.reset(output[0]);
    pid_ = fork();
    if (pid_ != 0) return;
    dup2(its_input.get(), STDIN_FILENO);
    dup2(its_output.get(), STDOUT_FILENO);
    work();
    _exit(1);
  }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool say(std::string_view text) const {
    return write(input_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  /// The next `size` bytes that it says; fewer at its end.
  [[nodiscard]] std::string hear(std::size_t size) const {
    std::string text;
    for (char byte = 0; text.size() < size && read(output_.get(), &byte, 1) == 1;) text += byte;
    return text;
  }
  /// The end of its input.
  void say_no_more() noexcept { input_.reset(); }

 private:
  pid_t pid_ = -1;
  UniqueFd input_, output_;
};

}  // namespace vacate::testing
