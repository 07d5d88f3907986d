// SPDX-License-Identifier: Apache-2.0
// For tests that lay files over those of the machine: a child with mounts of its own, whose failures are the test's.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <iostream>

namespace vacate::testing {

/// Runs `check` in a child that has a mount namespace of its own, after `prepare`, which says whether it could. Skips
/// with the reason where it could not, or without root.
inline void in_mount_namespace(const std::function<bool()>& prepare, const std::function<void()>& check) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for a mount namespace";
  const pid_t pid = fork();
  if (pid == 0) {
    const bool apart = unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    if (!apart || !prepare()) _exit(77);
    check();
    std::cout << std::flush;
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(status, 0);
}

}  // namespace vacate::testing
