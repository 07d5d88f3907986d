// SPDX-License-Identifier: Apache-2.0
// Real children: one that answers, one that never does, one that dies.
#include "os/expendable.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include "os/expendable_pass.h"
#include "os/procfs.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string read_to_end(Expendable& child) {
  std::string text;
  char piece[256];
  for (;;) {
    const auto n = child.read_some(piece, sizeof piece, Deadline::after(5s));
    if (!n || *n == 0) return text;
    text.append(piece, *n);
  }
}

TEST(Expendable, HasNoneOfTheCallersDescriptors) {
  const UniqueFd leaked(open("/dev/null", O_RDONLY));  // not close-on-exec, as a caller's may be
  auto child = Expendable::start("test", [](int channel) {
    const auto root = ProcDirectory::open_root();
    const auto fds = root->open("self/fd");
    DirectoryReader reader;
    reader.start(fds->descriptor());
    std::string names;
    while (const char* name = reader.next()) names += std::string(name) + " ";
    return send_frame(channel, names) ? 0 : 1;
  });
  ASSERT_TRUE(child);
  FrameStream stream(4096);
  stream.feed(read_to_end(*child));
  // Three of /dev/null, the channel, /proc, and the directory itself.
  EXPECT_EQ(stream.next(), "0 1 2 3 4 5 ");
  EXPECT_EQ(child->wait(Deadline::after(5s)), 0);
}

TEST(Expendable, StartsWithDefaultSignals) {
  (void)signal(SIGTERM, SIG_IGN);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  auto child = Expendable::start("test", [](int) {
    sigset_t mask;
    sigprocmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, SIGUSR1) == 0 && signal(SIGTERM, SIG_DFL) == SIG_DFL && getsid(0) == getpid() ? 42 : 1;
  });
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  (void)signal(SIGTERM, SIG_DFL);
  ASSERT_TRUE(child);
  const auto status = child->wait(Deadline::after(5s));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 42);
}

TEST(Expendable, IsAbandonedWhenItDoesNotAnswer) {
  auto child = Expendable::start("test", [](int) {
    for (;;) pause();
    return 0;
  });
  ASSERT_TRUE(child);
  const pid_t pid = child->pid();
  char byte = 0;
  const auto n = child->read_some(&byte, 1, Deadline::after(20ms));
  ASSERT_FALSE(n);
  EXPECT_EQ(n.error().code, ErrorCode::timed_out);
  child->abandon();
  EXPECT_EQ(child->pid(), -1);
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), -1);  // reaped, for it could die
}

TEST(Expendable, TellsThatItDied) {
  auto child = Expendable::start("test", [](int) {
    (void)raise(SIGSEGV);
    return 0;
  });
  ASSERT_TRUE(child);
  EXPECT_EQ(read_to_end(*child), "");
  const auto status = child->wait(Deadline::after(5s));
  ASSERT_TRUE(status && WIFSIGNALED(*status));
  EXPECT_EQ(WTERMSIG(*status), SIGSEGV);
}

// Out of memory in a child: what it would unwind is its parent's, whose numbers of descriptors mean other files there.
TEST(Expendable, NothingThrownLeavesTheChild) {
  struct CleanUp {
    pid_t owner;
    int channel;
    ~CleanUp() {
      if (getpid() != owner) (void)!write(channel, "x", 1);
    }
  };
  const CleanUp of_the_parent{getpid(), 3};  // 3: the channel of every such child
  auto child = Expendable::start("test", [](int) -> int { throw std::bad_alloc(); });
  ASSERT_TRUE(child);
  EXPECT_EQ(read_to_end(*child), "");
  const auto status = child->wait(Deadline::after(5s));
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 70);
}

void answer_index(std::size_t index, FrameWriter& answer) { answer.number(static_cast<std::uint32_t>(index)); }

TEST(ExpendablePass, AnswersEveryItemInOrder) {
  ExpendablePass pass("test", 3000, answer_index);
  std::size_t expected = 0;
  const auto missing = pass.finish([&](std::size_t index, std::string_view bytes) {
    FrameReader answer(bytes);
    EXPECT_EQ(index, expected++);
    EXPECT_EQ(answer.number<std::uint32_t>(), index);
  });
  EXPECT_THAT(missing, IsEmpty());
  EXPECT_EQ(expected, 3000U);
}

// A process that maps no node has nothing to tell, and there are thousands: the child neither says so nor waits for the
// caller to listen.
TEST(ExpendablePass, PassesOverThoseWithNothingToTell) {
  ExpendablePass pass("test", 5000, [](std::size_t index, FrameWriter& answer) {
    if (index % 1000 == 999) answer_index(index, answer);
  });
  std::vector<std::size_t> answered;
  EXPECT_THAT(pass.finish([&](std::size_t index, std::string_view bytes) {
    EXPECT_EQ(FrameReader(bytes).number<std::uint32_t>(), index);
    answered.push_back(index);
  }),
              IsEmpty());
  EXPECT_THAT(answered, ElementsAre(999U, 1999U, 2999U, 3999U, 4999U));
}

TEST(ExpendablePass, BlamesTheOneThatBlocksAmongThoseWithNothingToTell) {
  PassLimits limits;
  limits.each = 100ms;
  ExpendablePass pass(
      "test", 100,
      [](std::size_t index, FrameWriter& answer) {
        if (index == 40 || index == 99) pause();
        if (index == 70) (void)raise(SIGKILL);
        if (index == 90) answer_index(index, answer);
      },
      limits);
  std::vector<std::size_t> answered;
  EXPECT_THAT(pass.finish([&](std::size_t index, std::string_view) { answered.push_back(index); }),
              ElementsAre(40U, 70U, 99U));
  EXPECT_THAT(answered, ElementsAre(90U));
}

// Longer in all than one item may take: it comes on all the time.
TEST(ExpendablePass, WaitsForASilentChildThatComesOn) {
  PassLimits limits;
  limits.each = 80ms;
  ExpendablePass pass(
      "test", 10, [](std::size_t, FrameWriter&) { usleep(30000); }, limits);
  EXPECT_THAT(pass.finish([](std::size_t, std::string_view) {}), IsEmpty());
}

TEST(ExpendablePass, SkipsTheOneThatBlocksAndTheOneThatKills) {
  PassLimits limits;
  limits.each = 100ms;
  ExpendablePass pass(
      "test", 6,
      [](std::size_t index, FrameWriter& answer) {
        if (index == 1) pause();
        if (index == 4) (void)raise(SIGKILL);
        answer_index(index, answer);
      },
      limits);
  std::vector<std::size_t> answered;
  const auto missing = pass.finish([&](std::size_t index, std::string_view) { answered.push_back(index); });
  EXPECT_THAT(answered, ElementsAre(0U, 2U, 3U, 5U));
  EXPECT_THAT(missing, ElementsAre(1U, 4U));
}

TEST(ExpendablePass, GivesUpWhenEverythingBlocks) {
  PassLimits limits;
  limits.each = 20ms;
  limits.most_stuck = 1;
  ExpendablePass pass(
      "test", 10, [](std::size_t, FrameWriter&) { pause(); }, limits);
  EXPECT_EQ(pass.finish([](std::size_t, std::string_view) {}).size(), 10U);
}

}  // namespace
}  // namespace vacate
