// SPDX-License-Identifier: Apache-2.0
// Removal against processes that re-create the name, grow the file and open it meanwhile, in 10,000 rounds each. What
// somebody has open must never lose its name. What is left of a race, an open(2) that has found the file and does not
// have it yet, is counted and printed (docs/shm.md).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "os/shm_files.h"

namespace vacate {
namespace {

constexpr unsigned kRounds = 10'000;
constexpr const char* kName = "psm_0a1b2c3d";

/// What both processes know.
struct Shared {
  std::atomic<bool> stop{false};
  std::atomic<unsigned> rounds{0};            ///< of the other process
  std::atomic<unsigned> violations{0};        ///< a file that it had open lost its name
  std::atomic<unsigned> window{0};            ///< an open(2) got a file whose name had just gone
  std::array<std::atomic<ino_t>, 256> met{};  ///< the first of those files; a tmpfs gives no inode number twice
};

/// Different waits in every round, so that the two meet at every point.
class Jitter {
 public:
  void spin() noexcept {
    state_ = state_ * 1664525U + 1013904223U;
    for (unsigned i = 0; i < (state_ >> 20U); ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  }

 private:
  unsigned state_ = static_cast<unsigned>(getpid());
};

struct stat state_of(int fd) {
  struct stat state {};
  (void)!fstat(fd, &state);
  return state;
}

unsigned links_of(int fd) { return static_cast<unsigned>(state_of(fd).st_nlink); }

class ShmRace : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/dev/shm/vacate-race-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared_ = new (memory) Shared();
  }
  void TearDown() override {
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (entry.path().filename().string().starts_with(".vacate-")) check_displaced(entry.path());
    std::filesystem::remove_all(path_);
    munmap(shared_, sizeof(Shared));
  }
  /// A later generation that was moved aside instead, and whose name somebody took again before it could be given back.
  /// It is not removed, and its maker had let go of it.
  void check_displaced(const std::string& path) {
    std::printf("  a closed file of a later generation is called %s now\n", path.c_str());
    EXPECT_TRUE(may_displace_) << "half removed: " << path;
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(fcntl(file.get(), F_SETLEASE, F_WRLCK), 0) << "somebody still had it";
  }
  /// Does the name lead to the file behind `fd`? It may be away for the moment in which it is looked at; how long that
  /// is depends on when the other process runs again, so that a number of tries would say nothing.
  [[nodiscard]] bool has_its_name(int fd) const {
    struct stat mine {
    }, named{};
    if (fstat(fd, &mine) != 0) return false;
    const auto patience = Deadline::after(std::chrono::seconds(30));
    while (!patience.passed()) {
      if (stat(file().c_str(), &named) == 0 && named.st_ino == mine.st_ino) return true;
      sched_yield();
    }
    return false;
  }
  [[nodiscard]] std::string file() const { return path_ + "/" + kName; }

  /// Had the file that was just opened, or made, lost its name already? The kernel shows a name before whoever makes or
  /// opens the file has it. What is made with O_EXCL is no other: its maker too can be kept waiting in between.
  bool met_the_window(int fd) const {
    const auto state = state_of(fd);
    if (state.st_nlink != 0) return false;
    const unsigned before = shared_->window.fetch_add(1);
    if (before < shared_->met.size()) shared_->met[before].store(state.st_ino);
    return true;
  }
  /// A file that met the window was removed as the file that it is, never as an earlier one of its name.
  void check_met() const {
    const auto count = std::min<std::size_t>(shared_->window.load(), shared_->met.size());
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_TRUE(std::find(removed_.begin(), removed_.end(), shared_->met[i].load()) != removed_.end())
          << "a later generation was removed by what was known of an earlier one";
  }

  /// Runs `other` in a process of its own until it has had its rounds, and removes the file as often as it is seen.
  void race(const std::function<void(Jitter&)>& other) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Jitter jitter;
      while (shared_->rounds.load() < kRounds) {
        other(jitter);
        // The file is closed for as long as it was open: both sides of the race have their turn.
        sched_yield();
        for (int i = 0; i < 4; ++i) jitter.spin();
        shared_->rounds.fetch_add(1);
      }
      _exit(0);
    }
    remove_while(child);
  }
  void remove_while(pid_t child) {
    const auto directory = ShmDirectory::open(path_);
    ASSERT_TRUE(directory);
    const LeaseBreaksIgnored guard;
    Jitter jitter;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      for (const auto& entry : directory->list().entries) {
        if (entry.name != kName) continue;
        jitter.spin();
        const auto result = unlink_unused(*directory, entry.name, entry.identity);
        ++results_[static_cast<std::size_t>(result.status)];
        if (result.status == ShmStatus::removed) removed_.push_back(entry.identity.inode);
      }
    }
    EXPECT_EQ(status, 0);
    for (const auto status_of : {ShmStatus::removed, ShmStatus::changed, ShmStatus::in_use, ShmStatus::already_gone,
                                 ShmStatus::denied, ShmStatus::cannot_tell})
      std::printf("  %-12s %u\n", std::string(describe(status_of)).c_str(), count(status_of));
    std::printf("  an open(2) met the window %u times in %u rounds\n", shared_->window.load(), shared_->rounds.load());
    EXPECT_EQ(shared_->violations.load(), 0U);
    check_met();
    EXPECT_GE(shared_->rounds.load(), kRounds);
    EXPECT_GT(count(ShmStatus::removed), 0U) << "a race in which nothing is ever removed proves nothing";
    EXPECT_EQ(count(ShmStatus::denied), 0U);
  }
  [[nodiscard]] unsigned count(ShmStatus status) const { return results_[static_cast<std::size_t>(status)]; }

  std::string path_;
  Shared* shared_ = nullptr;
  bool may_displace_ = false;
  std::array<unsigned, 16> results_{};
  std::vector<std::uint64_t> removed_;  ///< inode numbers
};

/// Each generation is open while it is looked at: it must keep its link until its maker lets go of it.
TEST_F(ShmRace, ANewGenerationOfTheNameIsNeverRemoved) {
  may_displace_ = true;
  race([this](Jitter& jitter) {
    if (shared_->rounds.load() % 2 == 0) (void)unlink(file().c_str());
    const UniqueFd fresh(open(file().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fresh || met_the_window(fresh.get())) return;
    jitter.spin();
    if (links_of(fresh.get()) != 1 || !has_its_name(fresh.get())) shared_->violations.fetch_add(1);
  });
}

TEST_F(ShmRace, WhatSomebodyAttachedKeepsItsName) {
  race([this](Jitter& jitter) {
    (void)!close(open(file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    jitter.spin();
    UniqueFd attached(open(file().c_str(), O_RDWR | O_CLOEXEC));
    if (!attached) return;  // it went before
    if (met_the_window(attached.get())) return;
    // Held by the mapping alone, as a segment is.
    void* memory = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, attached.get(), 0);
    const UniqueFd path(open(("/proc/self/fd/" + std::to_string(attached.get())).c_str(), O_PATH | O_CLOEXEC));
    attached.reset();
    jitter.spin();
    if (links_of(path.get()) != 1 || !has_its_name(path.get())) shared_->violations.fetch_add(1);
    munmap(memory, 4096);
  });
}

/// A file that somebody makes larger while it is removed is one that is being filled.
TEST_F(ShmRace, WhatGrowsWhileItIsOpenKeepsItsName) {
  race([this](Jitter& jitter) {
    const UniqueFd growing(open(file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!growing || met_the_window(growing.get())) return;
    for (int size = 1; size <= 4; ++size) {
      (void)!ftruncate(growing.get(), size * 4096);
      jitter.spin();
    }
    if (links_of(growing.get()) != 1 || !has_its_name(growing.get())) shared_->violations.fetch_add(1);
  });
}

/// From the moment that nobody could have the file any more to the moment that it has no name.
TEST_F(ShmRace, TheWindowIsMeasured) {
  const auto directory = ShmDirectory::open(path_);
  ASSERT_TRUE(directory);
  const LeaseBreaksIgnored guard;
  std::vector<double> micros;
  for (int round = 0; round < 1000; ++round) {
    (void)!close(open(file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const auto entry = directory->list().entries.at(0);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(unlink_unused(*directory, entry.name, entry.identity).status, ShmStatus::removed);
    micros.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(micros.begin(), micros.end());
  std::printf("  one removal, check to unlink: median %.1f us, worst of %zu %.1f us\n", micros[micros.size() / 2],
              micros.size(), micros.back());
}

}  // namespace
}  // namespace vacate
