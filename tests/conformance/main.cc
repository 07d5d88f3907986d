// SPDX-License-Identifier: Apache-2.0
// Runs the conformance tests in a mount namespace of their own with a /dev of their own, so that nothing they mount or
// create is seen outside. Without the rights for that they fail; they are never skipped.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

namespace {

bool bind_mount(const std::string& from, const std::string& to) {
  return mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

bool make_file(const std::string& path) {
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  close(fd);
  return true;
}

/// A /dev with what the tests need; the driver's nodes are shown in it by the tests.
bool make_own_dev() {
  std::string place = "/tmp/vacate-dev-XXXXXX";
  if (mkdtemp(place.data()) == nullptr) return false;
  bool good = mount("dev", place.c_str(), "tmpfs", MS_NOSUID, "mode=755") == 0;
  for (const char* name : {"null", "zero", "full", "random", "urandom", "fuse"}) {
    const std::string to = place + "/" + name;
    good = good && make_file(to) && bind_mount(std::string("/dev/") + name, to);
  }
  good = good && mount(place.c_str(), "/dev", nullptr, MS_MOVE, nullptr) == 0;
  rmdir(place.c_str());
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    std::perror("driver_conformance: own mount namespace");
    return EXIT_FAILURE;
  }
  if (!make_own_dev()) {
    std::perror("driver_conformance: own /dev with fuse");
    return EXIT_FAILURE;
  }
  return RUN_ALL_TESTS();
}
