// SPDX-License-Identifier: Apache-2.0
#include "lab/actor/mps_client.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/unique_fd.h"
#include "lab/actor/title.h"

namespace lab {
namespace {

/// Until `from` has no more. False: `to` takes no more.
bool copy(int from, int to) {
  std::array<char, 4096> piece;
  for (ssize_t n = 0; (n = read(from, piece.data(), piece.size())) > 0;) {
    for (ssize_t done = 0; done < n;) {
      const ssize_t written = write(to, piece.data() + done, static_cast<std::size_t>(n - done));
      if (written <= 0) return false;
      done += written;
    }
  }
  return true;
}

}  // namespace

bool is_mps_control(std::string_view argv0) noexcept {
  return argv0.substr(argv0.rfind('/') + 1) == "nvidia-cuda-mps-control";
}

int ask_mps_daemon() {
  const char* folder = std::getenv(kMpsPipeVariable);
  const std::string path = std::string(folder != nullptr ? folder : kMpsPipeDirectory) + kMpsSocket;
  const vacate::UniqueFd daemon(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (!daemon || connect(daemon.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    std::puts("Cannot find MPS control daemon process");
    return 1;
  }
  if (!copy(STDIN_FILENO, daemon.get()) || shutdown(daemon.get(), SHUT_WR) != 0) return 1;
  return copy(daemon.get(), STDOUT_FILENO) ? 0 : 1;
}

}  // namespace lab
