// SPDX-License-Identifier: Apache-2.0
#include "os/program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "os/expendable.h"
#include "os/trusted_path.h"

namespace vacate {
namespace {

constexpr std::size_t kLongestOutput = std::size_t{1} << 20U;
// Exit codes as a shell gives them. The program's own would be taken for ours, which costs an answer and no more.
constexpr int kUntrusted = 126;
constexpr int kNotThere = 127;

/// In the child: becomes the program.
int become_program(int channel, const std::vector<std::string>& paths, const std::vector<std::string>& arguments) {
  for (const auto& path : paths) {
    const auto trusted = check_trusted_program(path);
    if (!trusted && trusted.error().code == ErrorCode::gone) continue;
    if (!trusted) return kUntrusted;
    if (dup2(channel, STDOUT_FILENO) < 0 || dup2(channel, STDERR_FILENO) < 0) return kNotThere;
    (void)close(channel);
    std::vector<std::string> words{path};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::array<char*, 1> environment{nullptr};
    (void)execve(path.c_str(), argv.data(), environment.data());
    return kUntrusted;
  }
  return kNotThere;
}

}  // namespace

Result<ProgramOutput> run_trusted_program(const std::vector<std::string>& paths,
                                          const std::vector<std::string>& arguments, Deadline deadline) {
  auto child = Expendable::start("vacate-ask", [&](int channel) { return become_program(channel, paths, arguments); });
  if (!child) return child.error();
  ProgramOutput output;
  std::array<char, 4096> piece;
  while (output.text.size() < kLongestOutput) {
    const auto n = child->read_some(piece.data(), piece.size(), deadline);
    if (!n) return n.error();
    if (*n == 0) break;
    output.text.append(piece.data(), *n);
  }
  const auto status = child->wait(deadline);
  if (!status) return Error{ErrorCode::timed_out, "the program does not end"};
  if (WIFEXITED(*status)) output.exit_code = WEXITSTATUS(*status);
  if (output.exit_code == kNotThere) return Error{ErrorCode::gone, "no such program"};
  if (output.exit_code == kUntrusted)
    return Error{ErrorCode::refused, "the program is not one that only root can have put there"};
  return output;
}

}  // namespace vacate
