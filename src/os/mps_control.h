// SPDX-License-Identifier: Apache-2.0
// Talks to a control daemon of MPS through the vendor's own program, nvidia-cuda-mps-control (facts.md 1.8): a fixed
// path that only root can have put there, no shell, no environment but the daemon's pipe directory, as the daemon's own
// user, in an expendable child with a deadline. What it prints is a stranger's text. Decides nothing.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "model/process.h"

namespace vacate {

/// CUDA_MPS_PIPE_DIRECTORY in the environment of a daemon, or the directory that holds without it.
[[nodiscard]] std::string parse_pipe_directory(std::string_view environ);

/// The same of the living daemon `key`. gone: it is, or it is somebody else by now. denied: others' environments are
/// not ours to read.
[[nodiscard]] Result<std::string> read_pipe_directory(const ProcessKey& key, Deadline deadline);

/// Where a daemon is asked, and as whom.
struct MpsAddress {
  uid_t uid = 0;
  std::string pipe_directory;
};

/// Can nobody but root and `uid` have made, or have put anything into, the directory at the absolute `path`? Folders on
/// the way may be everybody's if they are sticky. gone, refused: the message says which part. For expendable children.
[[nodiscard]] Result<void> check_pipe_directory(const std::string& path, uid_t uid);

/// One command, and what the daemon says to it. gone: no daemon there, or the program is not installed; refused:
/// program or directory are not to be trusted; denied: the daemon is another user's, and we are not root; timed_out.
[[nodiscard]] Result<std::string> ask_mps(const MpsAddress& address, const std::string& command, Deadline deadline);

/// The numbers of an answer, one a line, sorted; nothing if there is anything else in it.
[[nodiscard]] std::optional<std::vector<pid_t>> parse_pid_lines(std::string_view answer);

/// get_server_list and get_client_list. malformed: the answer is no list of numbers.
[[nodiscard]] Result<std::vector<pid_t>> ask_mps_servers(const MpsAddress& address, Deadline deadline);
[[nodiscard]] Result<std::vector<pid_t>> ask_mps_clients(const MpsAddress& address, pid_t server, Deadline deadline);

}  // namespace vacate
