// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "base/text.h"

namespace vacate {

void open_standard_descriptors() noexcept {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    // The lowest free number is taken. The other way round than it is used: what is written there is lost, and says so.
    const int use = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) static_cast<void>(open("/dev/null", use));
  }
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // refused: a scan that runs out of descriptors says so
}

bool is_terminal(int descriptor) noexcept { return isatty(descriptor) == 1; }

bool is_capable_terminal(int descriptor) noexcept {
  const char* kind = std::getenv("TERM");
  return is_terminal(descriptor) && kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
}

RenderStyle style_for(int descriptor) noexcept {
  static constexpr std::size_t kNarrowest = 40;
  RenderStyle style;
  if (!is_terminal(descriptor)) return style;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = std::max<std::size_t>(size.ws_col, kNarrowest);
  const char* no_colour = std::getenv("NO_COLOR");
  const bool wants_none = no_colour != nullptr && *no_colour != '\0';
  if (!wants_none && is_capable_terminal(descriptor)) style.colour = Colour::yes;
  return style;
}

Result<void> write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) return Error{ErrorCode::gone, "nobody reads the output any more"};
    if (written < 0) return system_error("cannot write the output");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> see_to_the_end(int descriptor) noexcept {
  // NFS and FUSE tell of what they could not keep when a descriptor is closed, of any copy.
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0 && close(copy) != 0 && errno != EINTR) return system_error("cannot write the output");
  return {};
}

void complain(std::string_view line) noexcept {
  // One call, so that lines of several stay whole, and no allocation: memory may be what is lacking.
  static constexpr std::string_view kWho = "vacate: ";
  const auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  const std::array<iovec, 3> parts = {part(kWho), part(line), part("\n")};
  while (writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size())) < 0 && errno == EINTR) continue;
}

bool ask_yes_no(std::string_view question) noexcept {
  static constexpr std::size_t kLongestAnswer = 16;
  if (!write_all(STDERR_FILENO, question)) return false;
  std::string answer;
  for (;;) {
    char byte = 0;
    const ssize_t n = read(STDIN_FILENO, &byte, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || byte == '\n') break;
    if (answer.size() < kLongestAnswer) answer += byte;
  }
  const auto word = trim(answer);
  return word == "y" || word == "Y" || word == "yes" || word == "Yes" || word == "YES";
}

}  // namespace vacate
