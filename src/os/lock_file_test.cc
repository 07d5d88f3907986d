// SPDX-License-Identifier: Apache-2.0
// Locks in a /run of the test's own.
#include "os/lock_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "os/process_ref.h"
#include "os/test_mounts.h"

namespace vacate {
namespace {

constexpr const char* kPath = "/run/vacate/free.lock";

void with_own_run(const std::function<void()>& check) {
  testing::in_mount_namespace([] { return mount("tmpfs", "/run", "tmpfs", 0, "mode=0755") == 0; }, check);
}

ErrorCode error_of(std::string_view name = "free.lock") {
  const auto lock = LockFile::open(name);
  return lock ? ErrorCode::bug : lock.error().code;
}

/// Runs in a child that says one byte when it is done; its end is the caller's to wait for.
struct Other {
  pid_t pid = -1;
  UniqueFd said;
};

Other in_other_process(const std::function<char(int say)>& work) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const char word = work(ends[1]);
    _exit(write(ends[1], &word, 1) == 1 ? 0 : 1);
  }
  close(ends[1]);
  return {pid, UniqueFd(ends[0])};
}

char next_word(const Other& other) {
  char word = 0;
  return read(other.said.get(), &word, 1) == 1 ? word : '-';
}

void end(const Other& other) {
  int status = 0;
  EXPECT_EQ(waitpid(other.pid, &status, 0), other.pid);
}

TEST(LockFileTest, NamesAreOfFilesInItsFolderAlone) {
  for (const char* name : {"", ".lock", "free", "../free.lock", "a/b.lock", "..lock", "x y.lock", "x\n.lock"})
    EXPECT_EQ(error_of(name), ErrorCode::malformed) << name;
  EXPECT_EQ(error_of(std::string(200, 'x') + ".lock"), ErrorCode::malformed);
}

TEST(LockFileTest, OneHasItAndTheOtherReadsWho) {
  with_own_run([] {
    auto first = LockFile::open("free.lock");
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(first->path(), kPath);
    EXPECT_FALSE(first->owner());
    ASSERT_TRUE(first->try_lock("free --all\n\x1b[2J"));
    EXPECT_TRUE(first->held());
    auto second = LockFile::open("free.lock");
    ASSERT_TRUE(second);
    const auto tried = second->try_lock("free");
    ASSERT_FALSE(tried);
    EXPECT_EQ(tried.error().code, ErrorCode::busy);
    EXPECT_EQ(second->owner(), (LockOwner{getpid(), "free --all\\x0a\\x1b[2J"}));
    auto other = LockFile::open("gpu-GPU-1234.lock");
    ASSERT_TRUE(other);
    EXPECT_TRUE(other->try_lock("wait")) << "another name is another lock";
    { const auto dropped = std::move(*first); }
    EXPECT_TRUE(second->try_lock("free"));
    struct stat info {};
    ASSERT_EQ(stat(kPath, &info), 0);
    EXPECT_EQ(info.st_mode & 07777U, 0600U) << "whoever could open it could lock it";
    ASSERT_EQ(stat("/run/vacate", &info), 0);
    EXPECT_EQ(info.st_mode & 07777U, 0755U);
  });
}

TEST(LockFileTest, WaitsForItUntilTheDeadlineOrUntilWoken) {
  with_own_run([] {
    auto first = LockFile::open("free.lock");
    ASSERT_TRUE(first && first->try_lock("first"));
    auto second = LockFile::open("free.lock");
    ASSERT_TRUE(second);
    EXPECT_EQ(second->lock("second", Deadline::after({}), -1).value_or(LockWait::taken), LockWait::timed_out);
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_EQ(second->lock("second", Deadline::never(), ends[0]).value_or(LockWait::taken), LockWait::woken);
    EXPECT_FALSE(second->held());
    { const auto dropped = std::move(*first); }
    auto third = LockFile::open("free.lock");
    ASSERT_TRUE(third);
    EXPECT_TRUE(third->try_lock("third")) << "who gave up waiting keeps nothing";
  });
}

TEST(LockFileTest, IsGivenToWhoeverWaitsWhenItsHolderEnds) {
  with_own_run([] {
    const Other holder = in_other_process([](int say) {
      auto lock = LockFile::open("free.lock");
      if (!lock || !lock->try_lock("holder") || write(say, "l", 1) != 1) return 'e';
      for (;;) pause();
    });
    ASSERT_EQ(next_word(holder), 'l');
    const Other waiter = in_other_process([](int say) {
      auto lock = LockFile::open("free.lock");
      if (!lock || write(say, "w", 1) != 1) return 'e';
      return lock->lock("waiter", Deadline::never(), -1).value_or(LockWait::woken) == LockWait::taken ? 't' : 'n';
    });
    ASSERT_EQ(next_word(waiter), 'w');
    const auto pinned = ProcessRef::open(holder.pid);
    ASSERT_TRUE(pinned && pinned->send_signal(SIGKILL));
    EXPECT_EQ(next_word(waiter), 't');
    end(holder);
    end(waiter);
  });
}

TEST(LockFileTest, ACopyOfItsDescriptorKeepsIt) {
  with_own_run([] {
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    std::optional<LockFile> lock(std::move(*LockFile::open("free.lock")));
    ASSERT_TRUE(lock->try_lock("parent"));
    const Other heir = in_other_process([&](int) {
      close(ends[1]);
      char byte = 0;
      return read(ends[0], &byte, 1) == 0 ? 'x' : 'e';
    });
    lock.reset();
    auto next = LockFile::open("free.lock");
    ASSERT_TRUE(next);
    EXPECT_FALSE(next->try_lock("next"));
    close(ends[1]);
    EXPECT_EQ(next_word(heir), 'x');
    end(heir);
    EXPECT_TRUE(next->try_lock("next"));
  });
}

TEST(LockFileTest, IsTakenOnTheFileThatBearsTheName) {
  with_own_run([] {
    auto first = LockFile::open("free.lock");
    auto late = LockFile::open("free.lock");
    ASSERT_TRUE(first && late);
    std::filesystem::remove_all("/run/vacate");
    ASSERT_TRUE(late->try_lock("late"));
    EXPECT_TRUE(std::filesystem::exists(kPath));
    const auto tried = first->try_lock("first");
    ASSERT_FALSE(tried) << "two that each have a lock of their own";
    EXPECT_EQ(tried.error().code, ErrorCode::busy);
  });
}

TEST(LockFileTest, WhatOthersCouldHaveMadeIsNotUsed) {
  with_own_run([] {
    std::ofstream("/run/precious") << "precious";
    std::filesystem::create_symlink("/run/elsewhere", "/run/vacate");
    ASSERT_EQ(mkdir("/run/elsewhere", 0755), 0);
    EXPECT_EQ(error_of(), ErrorCode::refused) << "a link for the folder";
    std::filesystem::remove("/run/vacate");
    ASSERT_EQ(mkdir("/run/vacate", 0755), 0);
    ASSERT_EQ(chmod("/run/vacate", 0777), 0);
    EXPECT_EQ(error_of(), ErrorCode::refused) << "a folder for everybody";
    ASSERT_EQ(chmod("/run/vacate", 0755), 0);
    std::filesystem::create_symlink("/run/precious", kPath);
    EXPECT_EQ(error_of(), ErrorCode::refused) << "a link for the file";
    std::filesystem::remove(kPath);
    ASSERT_EQ(mkfifo(kPath, 0600), 0);
    EXPECT_EQ(error_of(), ErrorCode::refused) << "a pipe";
    std::filesystem::remove(kPath);
    std::ofstream(kPath) << "4711 \xff\x1b\n";
    EXPECT_EQ(error_of(), ErrorCode::refused) << "others may open it";
    ASSERT_EQ(chmod(kPath, 0600), 0);
    const auto lock = LockFile::open("free.lock");
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock->owner(), (LockOwner{4711, "\\xff\\x1b"}));
    ASSERT_EQ(chown(kPath, 12345, 0), 0);
    EXPECT_EQ(error_of(), ErrorCode::refused) << "somebody else's file";
    ASSERT_EQ(chown("/run/vacate", 12345, 0), 0);
    EXPECT_EQ(error_of(), ErrorCode::refused) << "somebody else's folder";
    ASSERT_EQ(chmod("/run", 01777), 0);
    EXPECT_EQ(error_of(), ErrorCode::unsupported);
    std::string text;
    std::ifstream("/run/precious") >> text;
    EXPECT_EQ(text, "precious");
  });
}

TEST(LockFileTest, OthersThanRootUseAFolderOfTheirOwn) {
  with_own_run([] {
    static constexpr uid_t kUser = 1000;
    ASSERT_EQ(mkdir("/run/user", 0755), 0);
    ASSERT_EQ(mkdir("/run/user/1001", 0700), 0);
    const auto as_user = [](char expected) {
      const Other other = in_other_process([](int) {
        if (setuid(kUser) != 0) return 'e';
        auto lock = LockFile::open("free.lock");
        if (!lock) return lock.error().code == ErrorCode::unsupported ? 'u' : 'e';
        return lock->path() == "/run/user/1000/vacate/free.lock" && lock->try_lock("free") ? 'l' : 'b';
      });
      EXPECT_EQ(next_word(other), expected);
      end(other);
    };
    as_user('u');
    ASSERT_EQ(mkdir("/run/user/1000", 0700), 0);
    as_user('u');  // root's
    ASSERT_EQ(chown("/run/user/1000", kUser, kUser), 0);
    as_user('l');
    ASSERT_EQ(chmod("/run/user/1000", 0755), 0);
    as_user('u');
  });
}

}  // namespace
}  // namespace vacate
