// SPDX-License-Identifier: Apache-2.0
#include "os/service_notifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>

namespace vacate {
namespace {

/// A service manager's end: a datagram socket bound to `name` as it is in sun_path.
class Listener {
 public:
  explicit Listener(const std::string& name) : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    name.copy(at.sun_path, sizeof at.sun_path - 1);
    const auto size = offsetof(sockaddr_un, sun_path) + name.size() + (name.front() == '\0' ? 0 : 1);
    bound_ = bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), static_cast<socklen_t>(size)) == 0;
  }
  [[nodiscard]] bool bound() const { return bound_; }
  [[nodiscard]] std::string next() const {
    std::array<char, 1024> buffer{};
    const auto n = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    return n < 0 ? "nothing" : std::string(buffer.data(), static_cast<std::size_t>(n));
  }

 private:
  UniqueFd socket_;
  bool bound_ = false;
};

void expect_both(const ServiceNotifier& notifier, const Listener& manager) {
  ASSERT_TRUE(manager.bound());
  notifier.say_status("GPU 0: waiting for 7 x");
  notifier.extend_timeout(std::chrono::seconds(60));
  EXPECT_EQ(manager.next(), "STATUS=GPU 0: waiting for 7 x");
  EXPECT_EQ(manager.next(), "EXTEND_TIMEOUT_USEC=60000000");
  EXPECT_EQ(manager.next(), "nothing");
}

TEST(ServiceNotifier, WritesToAPath) {
  std::string folder = ::testing::TempDir() + "notifyXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/notify";
  {
    const Listener manager(path);
    expect_both(ServiceNotifier::to(path), manager);
  }
  unlink(path.c_str());
  rmdir(folder.c_str());
}

TEST(ServiceNotifier, WritesToAnAbstractName) {
  const std::string name = "vacate-notifier-test-" + std::to_string(getpid());
  const Listener manager(std::string(1, '\0') + name);
  expect_both(ServiceNotifier::to("@" + name), manager);
}

TEST(ServiceNotifier, SaysNothingWhereNobodyListens) {
  const std::string too_long(200, 'x');
  for (const std::string& address : {std::string(), std::string("@"), std::string("vsock:2:9"), "/" + too_long})
    EXPECT_FALSE(ServiceNotifier::to(address).is_heard()) << address;
  ServiceNotifier::to("/nonexistent/notify").say_status("unheard");
}

}  // namespace
}  // namespace vacate
