// SPDX-License-Identifier: Apache-2.0
#include "os/service_notifier.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include <fmt/format.h>

namespace vacate {

ServiceNotifier ServiceNotifier::from_environment() noexcept {
  const char* address = std::getenv("NOTIFY_SOCKET");
  return to(address != nullptr ? address : "");
}

ServiceNotifier ServiceNotifier::to(std::string_view address) noexcept {
  ServiceNotifier notifier;
  const bool is_address = address.size() > 1 && (address.front() == '/' || address.front() == '@');
  if (!is_address || address.size() >= sizeof(sockaddr_un::sun_path)) return notifier;
  notifier.address_ = address;
  if (address.front() == '@') notifier.address_.front() = '\0';
  notifier.socket_ = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return notifier;
}

void ServiceNotifier::say_status(std::string_view line) const noexcept { send(fmt::format("STATUS={}", line)); }

void ServiceNotifier::extend_timeout(std::chrono::microseconds from_now) const noexcept {
  send(fmt::format("EXTEND_TIMEOUT_USEC={}", from_now.count()));
}

void ServiceNotifier::send(std::string_view message) const noexcept {
  if (!is_heard()) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::copy(address_.begin(), address_.end(), to.sun_path);
  // A path ends with a zero byte that is counted; an abstract name is as long as it is.
  const auto size = offsetof(sockaddr_un, sun_path) + address_.size() + (address_.front() == '\0' ? 0 : 1);
  (void)sendto(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&to), static_cast<socklen_t>(size));
}

}  // namespace vacate
