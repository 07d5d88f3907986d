// SPDX-License-Identifier: Apache-2.0
// The event loop of fuse_server.h; the operations are in fuse_operations.cc.
#define FUSE_USE_VERSION 312
#include "lab/driver/fuse_server.h"

#include <fuse_lowlevel.h>
#include <poll.h>

#include <array>
#include <cstdlib>
#include <string>

#include "lab/driver/fuse_operations.h"

namespace lab {

bool FuseServer::run(vacate::UniqueFd connection) {
  std::string name = "lab-gpu-driver";
  std::array<char*, 2> argv = {name.data(), nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, argv.data());
  const fuse_lowlevel_ops operations = fuse_operations();
  fuse_session* session = fuse_session_new(&args, &operations, sizeof operations, this);
  if (session == nullptr) return false;
  // libfuse's way of being given a connection that somebody else has mounted.
  const std::string given = "/dev/fd/" + std::to_string(connection.get());
  if (fuse_session_mount(session, given.c_str()) != 0) return false;
  serve(session, connection.get());
  // The session is left as it is: this process ends now, and requests may still wait in it.
  return true;
}

void FuseServer::serve(fuse_session* session, int fd) {
  fuse_buf buffer{};
  while (fuse_session_exited(session) == 0) {
    pollfd ready = {fd, POLLIN, 0};
    const int events = poll(&ready, 1, delayed_.next().poll_timeout_ms());
    delayed_.send_due();
    if (events <= 0) continue;
    const int received = fuse_session_receive_buf(session, &buffer);
    if (received == -EINTR || received == -EAGAIN) continue;
    if (received <= 0) break;
    fuse_session_process_buf(session, &buffer);
  }
  std::free(buffer.mem);
}

}  // namespace lab
