// SPDX-License-Identifier: Apache-2.0
// Reads NStgid of /proc/TID/status and walks the namespaces outwards with NS_GET_PARENT.
#include "lab/driver/process_identity.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/text.h"

namespace lab {

using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

namespace {

constexpr std::string_view kPidsKey = "NStgid:";  // of the process, not of the thread that calls

/// Status of a thread is small: about 1.5 KiB, more where many CPUs or groups are listed.
Result<std::string> read_status(int proc, pid_t tid) {
  const UniqueFd file(openat(proc, fmt::format("{}/status", tid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error("open status");
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read status");
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

Result<std::vector<pid_t>> numbers_of(std::string_view status) {
  for (const std::string_view line : vacate::split(status, '\n')) {
    if (!line.starts_with(kPidsKey)) continue;
    std::vector<pid_t> numbers;
    for (const std::string_view word : vacate::split(vacate::trim(line.substr(kPidsKey.size())), '\t')) {
      const auto number = vacate::parse_unsigned(word);
      if (!number) return Error{ErrorCode::malformed, fmt::format("status: {}", line)};
      numbers.push_back(static_cast<pid_t>(*number));
    }
    return numbers;
  }
  return Error{ErrorCode::malformed, "status without NStgid"};
}

Result<ino_t> inode_of(int fd) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return system_error("stat pid namespace");
  return about.st_ino;
}

}  // namespace

std::optional<pid_t> ProcessIdentity::number_in(ino_t inode) const {
  const auto found = std::find(chain->inodes.begin(), chain->inodes.end(), inode);
  if (found == chain->inodes.end()) return std::nullopt;
  return numbers[static_cast<std::size_t>(found - chain->inodes.begin())];
}

Result<ProcessTable> ProcessTable::open() {
  UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!proc) return system_error("open /proc");
  std::array<char, 32> self{};
  const ssize_t length = readlinkat(proc.get(), "self", self.data(), self.size());
  if (length <= 0) return system_error("read /proc/self");
  if (std::string_view(self.data(), static_cast<std::size_t>(length)) != std::to_string(getpid())) {
    return Error{ErrorCode::unsupported, "/proc shows another pid namespace than the caller's"};
  }
  return ProcessTable(std::move(proc));
}

Result<ProcessIdentity> ProcessTable::identify(pid_t tid) {
  if (tid <= 0) return Error{ErrorCode::unsupported, "the caller is not visible in the server's pid namespace"};
  auto status = read_status(proc_.get(), tid);
  if (!status) return status.error().within(fmt::format("thread {}", tid));
  auto numbers = numbers_of(*status);
  if (!numbers) return numbers.error().within(fmt::format("thread {}", tid));
  auto chain = namespaces_of(tid, numbers->size());
  if (!chain) return chain.error().within(fmt::format("thread {}", tid));
  return ProcessIdentity{std::move(*numbers), std::move(*chain)};
}

Result<pid_t> ProcessTable::process_of(pid_t tid) const {
  auto status = read_status(proc_.get(), tid);
  if (!status) return status.error().within(fmt::format("thread {}", tid));
  auto numbers = numbers_of(*status);
  if (!numbers) return numbers.error().within(fmt::format("thread {}", tid));
  return numbers->front();
}

Result<std::shared_ptr<const NamespaceChain>> ProcessTable::namespaces_of(pid_t tid, std::size_t depth) {
  UniqueFd current(openat(proc_.get(), fmt::format("{}/ns/pid", tid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!current) return system_error("open pid namespace");
  auto inode = inode_of(current.get());
  if (!inode) return inode.error();
  auto& known = chains_[*inode];
  if (auto chain = known.lock()) return std::shared_ptr<const NamespaceChain>(std::move(chain));

  auto chain = std::make_shared<NamespaceChain>();
  chain->inodes = {*inode};
  UniqueFd outer(fcntl(current.get(), F_DUPFD_CLOEXEC, 0));
  while (chain->inodes.size() < depth) {
    outer.reset(ioctl(outer.get(), NS_GET_PARENT));
    if (!outer) return system_error("find the pid namespace around another");
    inode = inode_of(outer.get());
    if (!inode) return inode.error();
    chain->inodes.push_back(*inode);
  }
  std::reverse(chain->inodes.begin(), chain->inodes.end());
  chain->innermost = std::move(current);
  known = chain;
  return std::shared_ptr<const NamespaceChain>(std::move(chain));
}

}  // namespace lab
