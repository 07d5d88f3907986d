// SPDX-License-Identifier: Apache-2.0
#include "os/mps_control.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "model/process.h"
#include "os/expendable.h"
#include "os/process_ref.h"
#include "os/trusted_path.h"

namespace vacate {
namespace {

constexpr const char* kProgram = "/usr/bin/nvidia-cuda-mps-control";
constexpr std::string_view kVariable = "CUDA_MPS_PIPE_DIRECTORY=";
constexpr std::string_view kDefaultDirectory = "/tmp/nvidia-mps";
constexpr std::size_t kLongestAnswer = 65536;
constexpr std::size_t kLongestEnvironment = std::size_t{1} << 18U;
constexpr std::size_t kLongestReason = 300;

// Exit codes of the child before it is the program: the reason is in what it wrote. The program's own would be taken
// for ours, which costs an answer and no more.
constexpr int kGone = 123;
constexpr int kDenied = 124;
constexpr int kRefused = 125;

/// Everything that the child writes until it ends or has written too much.
Result<std::string> collect(Expendable& child, std::size_t limit, Deadline deadline) {
  std::string text;
  std::array<char, 4096> piece;
  while (text.size() < limit) {
    const auto n = child.read_some(piece.data(), piece.size(), deadline);
    if (!n) return n.error();
    if (*n == 0) break;
    text.append(piece.data(), *n);
  }
  return text;
}

int tell(int channel, const Error& error) {
  (void)!write(channel, error.message.data(), error.message.size());
  return error.code == ErrorCode::gone ? kGone : error.code == ErrorCode::denied ? kDenied : kRefused;
}

/// What the daemon's user may do is enough; a program run as root would be open to what another user's daemon says.
Result<void> become_user(uid_t uid) {
  if (geteuid() == uid) return {};
  if (geteuid() != 0) return Error{ErrorCode::denied, "the control daemon is another user's: run as root"};
  const auto nobodys = static_cast<gid_t>(65534);
  if (setgroups(0, nullptr) != 0 || setresgid(nobodys, nobodys, nobodys) != 0 || setresuid(uid, uid, uid) != 0)
    return system_error("becoming the user of the control daemon");
  return {};
}

/// Standard input with nothing but `command` in it: it fits into a pipe.
Result<void> prepare_input(const std::string& command) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe");
  UniqueFd from(ends[0]);
  UniqueFd into(ends[1]);
  if (write(into.get(), command.data(), command.size()) != static_cast<ssize_t>(command.size()) ||
      dup2(from.get(), STDIN_FILENO) < 0)
    return system_error("pipe");
  return {};
}

/// In the child: becomes the program.
int become_program(int channel, const MpsAddress& address, const std::string& command) {
  if (auto trusted = check_trusted_program(kProgram); !trusted) return tell(channel, trusted.error());
  if (auto trusted = check_pipe_directory(address.pipe_directory, address.uid); !trusted)
    return tell(channel, trusted.error());
  if (auto ready = prepare_input(command); !ready) return tell(channel, ready.error());
  if (auto done = become_user(address.uid); !done) return tell(channel, done.error());
  std::string variable = std::string(kVariable) + address.pipe_directory;
  std::string name = kProgram;
  std::array<char*, 2> argv{name.data(), nullptr};
  std::array<char*, 2> environment{variable.data(), nullptr};
  if (dup2(channel, STDOUT_FILENO) < 0) return kRefused;
  (void)close(channel);
  (void)execve(kProgram, argv.data(), environment.data());
  return kRefused;
}

Result<void> check_part(const UniqueFd& fd, const std::string& path, uid_t uid, bool is_last) {
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return system_error(path);
  if (!S_ISDIR(info.st_mode)) return Error{ErrorCode::refused, path + " is no folder"};
  const bool is_open = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool is_sticky = (info.st_mode & S_ISVTX) != 0;
  if (info.st_uid != 0 && info.st_uid != uid)
    return Error{ErrorCode::refused, path + " is neither root's nor that of the control daemon's user"};
  if (is_open && (is_last || !is_sticky)) return Error{ErrorCode::refused, "others can write to " + path};
  return {};
}

}  // namespace

std::string parse_pipe_directory(std::string_view environ) {
  for (const auto entry : split(environ, '\0')) {
    if (entry.starts_with(kVariable) && entry.size() > kVariable.size())
      return std::string(entry.substr(kVariable.size()));
  }
  return std::string(kDefaultDirectory);
}

Result<std::string> read_pipe_directory(const ProcessKey& key, Deadline deadline) {
  const auto daemon = ProcessRef::open(key.pid);
  if (!daemon) return daemon.error();
  if (daemon->key().start_ticks != key.start_ticks) return Error{ErrorCode::gone, "it is another process by now"};
  const std::string path = fmt::format("/proc/{}/environ", key.pid);
  auto child = Expendable::start("vacate-environ", [&](int channel) {
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return errno == EACCES || errno == EPERM ? kDenied : kGone;
    std::array<char, 4096> piece;
    for (ssize_t n = 0; (n = read(file.get(), piece.data(), piece.size())) > 0;)
      if (write(channel, piece.data(), static_cast<std::size_t>(n)) != n) return kRefused;
    return 0;
  });
  if (!child) return child.error();
  const auto text = collect(*child, kLongestEnvironment, deadline);
  if (!text) return text.error();
  const auto status = child->wait(deadline);
  if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
    return Error{ErrorCode::denied, "its environment cannot be read"};
  if (auto alive = daemon->prove_alive(); !alive) return alive.error();
  return parse_pipe_directory(*text);
}

Result<void> check_pipe_directory(const std::string& path, uid_t uid) {
  static constexpr int kLookUp = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  if (path.empty() || path.front() != '/') return Error{ErrorCode::refused, "the pipe directory is no absolute path"};
  std::vector<std::string_view> parts = split(path, '/');
  std::erase_if(parts, [](std::string_view part) { return part.empty() || part == "."; });
  UniqueFd folder(open("/", kLookUp | O_DIRECTORY));
  if (auto trusted = check_part(folder, "/", uid, false); !trusted) return trusted;
  std::string so_far;
  for (const auto part : parts) {
    if (part == "..") return Error{ErrorCode::refused, "the pipe directory has '..' in its path"};
    so_far += fmt::format("/{}", part);
    UniqueFd next(openat(folder.get(), std::string(part).c_str(), kLookUp));
    if (auto trusted = check_part(next, so_far, uid, part.data() == parts.back().data()); !trusted) return trusted;
    folder = std::move(next);
  }
  return {};
}

Result<std::string> ask_mps(const MpsAddress& address, const std::string& command, Deadline deadline) {
  const std::string line = command + "\n";
  auto child = Expendable::start("vacate-mps", [&](int channel) { return become_program(channel, address, line); });
  if (!child) return child.error();
  auto text = collect(*child, kLongestAnswer, deadline);
  if (!text) return text;
  const auto status = child->wait(deadline);
  if (!status) return Error{ErrorCode::timed_out, "no answer in time"};
  const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  const std::string why = text->substr(0, kLongestReason);
  if (code == kGone) return Error{ErrorCode::gone, why};
  if (code == kDenied) return Error{ErrorCode::denied, why};
  if (code == kRefused) return Error{ErrorCode::refused, why};
  if (code != 0) return Error{ErrorCode::gone, "the control program reaches no daemon"};
  return text;
}

std::optional<std::vector<pid_t>> parse_pid_lines(std::string_view answer) {
  std::vector<pid_t> pids;
  for (const auto line : split(answer, '\n')) {
    const auto word = trim(line);
    if (word.empty()) continue;
    const auto number = parse_unsigned(word);
    if (!number || *number == 0 || *number > kLargestPid) return std::nullopt;
    pids.push_back(static_cast<pid_t>(*number));
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

namespace {

Result<std::vector<pid_t>> ask_list(const MpsAddress& address, const std::string& command, Deadline deadline) {
  const auto answer = ask_mps(address, command, deadline);
  if (!answer) return answer.error();
  auto pids = parse_pid_lines(*answer);
  if (!pids) return Error{ErrorCode::malformed, "its answer is no list of processes"};
  return *std::move(pids);
}

}  // namespace

Result<std::vector<pid_t>> ask_mps_servers(const MpsAddress& address, Deadline deadline) {
  return ask_list(address, "get_server_list", deadline);
}

Result<std::vector<pid_t>> ask_mps_clients(const MpsAddress& address, pid_t server, Deadline deadline) {
  return ask_list(address, fmt::format("get_client_list {}", server), deadline);
}

}  // namespace vacate
