// SPDX-License-Identifier: Apache-2.0
#include "tests/stall/silent_fuse.h"

#define FUSE_USE_VERSION 31
#include <fuse_lowlevel.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/unique_fd.h"
#include "os/process_ref.h"

namespace vacate {
namespace {

constexpr off_t kDataSize = off_t{1} << 20U;
constexpr double kForLong = 3600;  // seconds that the kernel may remember what a file is

enum Inode : fuse_ino_t { kRoot = 1, kData, kProgram, kHang };
constexpr std::array<const char*, 5> kNames = {"", "/", "data", "program", "hang"};

int g_reached = -1;  // NOLINT: where the server tells of a read of `hang`
int g_program = -1;  // NOLINT: what `program` is read from; libfuse hands callbacks no more than a pointer

bool fill(fuse_ino_t inode, struct stat& status) {
  status = {};
  status.st_ino = inode;
  status.st_nlink = 1;
  status.st_mode = inode == kRoot ? S_IFDIR | 0755 : S_IFREG | 0755;
  status.st_size = inode == kRoot ? 0 : kDataSize;
  struct stat program {};
  if (inode == kProgram && fstat(g_program, &program) == 0) status.st_size = program.st_size;
  return inode >= kRoot && inode <= kHang;
}

void do_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  fuse_entry_param entry{};
  for (fuse_ino_t inode = kData; parent == kRoot && inode <= kHang; ++inode)
    if (std::strcmp(name, kNames.at(inode)) == 0) entry.ino = inode;
  if (entry.ino == 0 || !fill(entry.ino, entry.attr)) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  entry.attr_timeout = entry.entry_timeout = kForLong;
  fuse_reply_entry(request, &entry);
}

void do_getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  struct stat status {};
  if (fill(inode, status)) {
    fuse_reply_attr(request, &status, kForLong);
  } else {
    fuse_reply_err(request, ENOENT);
  }
}

void do_open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  file->direct_io = inode == kHang;  // no page cache in between: the reader itself waits for the answer
  fuse_reply_open(request, file);
}

void do_read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, fuse_file_info*) {
  if (inode == kHang) {
    (void)!write(g_reached, "x", 1);
    return;  // taken and never answered: who waits for it cannot even be killed
  }
  std::vector<char> bytes(size);
  ssize_t length = std::clamp<off_t>(kDataSize - offset, 0, static_cast<off_t>(size));
  if (inode == kProgram) length = pread(g_program, bytes.data(), size, offset);
  fuse_reply_buf(request, bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
}

void do_flush(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  if (inode != kHang) fuse_reply_err(request, 0);
}

/// The server's process: it never returns.
[[noreturn]] void serve(const std::string& mount_point, const std::string& program) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  g_program = open(program.c_str(), O_RDONLY | O_CLOEXEC);
  fuse_lowlevel_ops operations{};
  operations.lookup = do_lookup;
  operations.getattr = do_getattr;
  operations.open = do_open;
  operations.read = do_read;
  operations.flush = do_flush;
  std::array<char, 6> name{"stall"};
  char* words[] = {name.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(1, words);
  fuse_session* session = fuse_session_new(&arguments, &operations, sizeof operations, nullptr);
  if (g_program < 0 || session == nullptr || fuse_session_mount(session, mount_point.c_str()) != 0) _exit(1);
  _exit(fuse_session_loop(session) == 0 ? 0 : 1);
}

}  // namespace

SilentFuse::SilentFuse(const std::string& mount_point, const std::string& program) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    problem_ = "no pipe";
    return;
  }
  taken_ = UniqueFd(ends[0]);
  reached_ = UniqueFd(ends[1]);
  server_ = fork();
  if (server_ == 0) {
    g_reached = reached_.get();
    serve(mount_point, program);
  }
  const std::string probe = mount_point + "/data";
  for (int i = 0; i < 500; ++i) {
    if (access(probe.c_str(), R_OK) == 0) return;
    if (waitpid(server_, nullptr, WNOHANG) == server_) {
      server_ = -1;
      break;
    }
    usleep(10000);
  }
  problem_ = "no FUSE here";
}

SilentFuse::~SilentFuse() {
  if (server_ <= 0) return;
  if (const auto ref = ProcessRef::open(server_)) (void)ref->send_signal(SIGKILL);
  waitpid(server_, nullptr, 0);
}

void SilentFuse::fall_silent() {
  if (const auto ref = ProcessRef::open(server_)) (void)ref->send_signal(SIGSTOP);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(server_), &info, WSTOPPED);
}

void SilentFuse::wait_for_reader() const {
  char byte = 0;
  (void)!read(taken_.get(), &byte, 1);
}

}  // namespace vacate
