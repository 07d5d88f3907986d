// SPDX-License-Identifier: Apache-2.0
// What is believed of a service manager's words, and buses that are none: silent, rude, absent. One that answers is in
// the lab's machines.
#include "os/service_manager.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/unique_fd.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

const UnitQuestion kQuestion{"llm.service", "/system.slice/llm.service"};

UnitProperties running() {
  return {"active", "running", "always", "/system.slice/llm.service", 4711, 1'700'000'000'250'000};
}

TEST(ParseUnit, TakesWhatTheManagerSays) {
  const auto unit = parse_unit(kQuestion, running(), ManagerPids::ours);
  ASSERT_TRUE(unit);
  EXPECT_EQ(*unit, (ServiceUnit{"llm.service", "active", "running", 4711, "always", 1'700'000'000.25}));
}

TEST(ParseUnit, LeavesOutNumbersOfAnotherNamespace) {
  const auto unit = parse_unit(kQuestion, running(), ManagerPids::foreign);
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->main_pid, 0);
  EXPECT_EQ(unit->active_state, "active");
}

TEST(ParseUnit, AUnitKeptElsewhereIsAnotherOne) {
  for (const char* group : {"", "/", "/system.slice", "/system.slice/llm.service/", "/machine.slice/llm.service",
                            "/system.slice/llm.service/payload"}) {
    auto said = running();
    said.active_state = "inactive";
    said.control_group = group;
    EXPECT_FALSE(parse_unit(kQuestion, said, ManagerPids::ours)) << group;
  }
}

TEST(ParseUnit, BelievesNoGarbage) {
  struct Row {
    const char* what;
    void (*spoil)(UnitProperties&);
  };
  const Row rows[] = {
      {"a state that nobody knows", [](UnitProperties& u) { u.active_state = "gone"; }},
      {"no state", [](UnitProperties& u) { u.active_state.clear(); }},
      {"a state with an end", [](UnitProperties& u) { u.active_state = std::string("inactive\0", 9); }},
      {"capitals", [](UnitProperties& u) { u.active_state = "Inactive"; }},
      {"bytes for a sub-state", [](UnitProperties& u) { u.sub_state = "\x1b[2J\xff"; }},
      {"a long sub-state", [](UnitProperties& u) { u.sub_state = std::string(4096, 'a'); }},
      {"a long restart", [](UnitProperties& u) { u.restart = std::string(65, 'a'); }},
      {"blanks in restart", [](UnitProperties& u) { u.restart = "on failure"; }},
      {"a pid beyond all", [](UnitProperties& u) { u.main_pid = (1U << 22U) + 1; }},
      {"a negative pid", [](UnitProperties& u) { u.main_pid = 0xffffffffU; }},
  };
  for (const auto& row : rows) {
    auto said = running();
    row.spoil(said);
    EXPECT_FALSE(parse_unit(kQuestion, said, ManagerPids::ours)) << row.what;
    EXPECT_FALSE(parse_unit(kQuestion, said, ManagerPids::foreign)) << row.what;
  }
}

TEST(ParseUnit, AnActivationThatIsNotKnownIsNoTime) {
  auto said = running();
  said.activated = 0;
  EXPECT_FALSE(parse_unit(kQuestion, said, ManagerPids::ours)->activated.known());
}

TEST(EarliestActivation, TakesTheClockThatMakesFewerProcessesOlder) {
  const ClockPair now{5'000'000, 900};
  EXPECT_EQ(earliest_activation({4'999'500, 400}, now), 4'999'500U) << "both agree";
  EXPECT_EQ(earliest_activation({4'999'900, 400}, now), 4'999'500U) << "the clock was put back since";
  EXPECT_EQ(earliest_activation({4'000'000, 400}, now), 4'000'000U) << "suspended, or the clock was put forward";
  EXPECT_EQ(earliest_activation({0, 400}, now), 0U);
  EXPECT_EQ(earliest_activation({4'000'000, 0}, now), 0U);
  EXPECT_EQ(earliest_activation({4'000'000, 901}, now), 0U) << "after now";
  EXPECT_EQ(earliest_activation({~0ULL, 1}, {100, 900}), 0U) << "before the epoch";
}

TEST(ParseUnit, NoMainProcessIsNone) {
  auto said = running();
  said.main_pid = 0;
  said.sub_state = "exited";
  EXPECT_EQ(parse_unit(kQuestion, said, ManagerPids::ours)->main_pid, 0);
}

/// A socket that listens and does with who connects what a test wants, in a process of its own.
class FakeBus {
 public:
  explicit FakeBus(void (*serve)(int listener)) {
    char folder[] = "/tmp/vacate-bus-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/socket";
    listener_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    server_ = fork();
    if (server_ == 0) {
      serve(listener_.get());
      _exit(0);
    }
  }
  FakeBus(const FakeBus&) = delete;
  FakeBus& operator=(const FakeBus&) = delete;
  ~FakeBus() {
    const UniqueFd server(open_pidfd(server_));
    EXPECT_EQ(signal_pidfd(server.get(), SIGKILL), 0);
    (void)waitpid(server_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string folder_, path_;
  UniqueFd listener_;
  pid_t server_ = -1;
};

struct Asked {
  ServiceManager manager;
  std::chrono::steady_clock::duration took;
};
Asked ask(const std::string& socket, std::chrono::milliseconds limit) {
  const auto start = std::chrono::steady_clock::now();
  ServiceManagerQuery query({kQuestion}, ManagerPids::ours, socket);
  Asked asked{query.finish(Deadline::after(limit)), {}};
  asked.took = std::chrono::steady_clock::now() - start;
  return asked;
}

TEST(ServiceManagerQuery, WithoutQuestionsAsksNobody) {
  ServiceManagerQuery query({}, ManagerPids::ours, "/nowhere");
  const auto manager = query.finish(Deadline::after(1s));
  ASSERT_FALSE(manager.answered);
  EXPECT_EQ(manager.answered.reason(), Unknown::not_asked);
}

TEST(ServiceManagerQuery, WithoutABusThereIsNoManager) {
  const auto asked = ask("/nowhere/at/all", 1s);
  // Unless this machine runs systemd: then that one could not be asked.
  if (access("/run/systemd/system", F_OK) == 0) {
    EXPECT_FALSE(asked.manager.answered.known());
  } else {
    ASSERT_TRUE(asked.manager.answered.known());
    EXPECT_FALSE(*asked.manager.answered);
  }
}

TEST(ServiceManagerQuery, ABusThatNeverAnswersIsGivenUp) {
  const FakeBus bus([](int listener) {
    const int client = accept(listener, nullptr, nullptr);
    char byte = 0;
    while (read(client, &byte, 1) > 0) {
    }
    pause();
  });
  const auto asked = ask(bus.path(), 300ms);
  EXPECT_LT(asked.took, 2s);
  EXPECT_FALSE(asked.manager.answered.known());
  EXPECT_THAT(asked.manager.units, IsEmpty());
}

TEST(ServiceManagerQuery, ABusThatNobodyServesIsGivenUp) {
  const FakeBus bus([](int) { pause(); });
  const auto asked = ask(bus.path(), 300ms);
  EXPECT_LT(asked.took, 2s);
  EXPECT_FALSE(asked.manager.answered.known());
}

TEST(ServiceManagerQuery, ABusThatSpeaksNonsenseSaysNothing) {
  const FakeBus bus([](int listener) {
    for (;;) {
      const int client = accept(listener, nullptr, nullptr);
      const std::string noise(100000, '\xff');
      (void)!send(client, "OK 1234\r\n", 9, MSG_NOSIGNAL);
      (void)!send(client, noise.data(), noise.size(), MSG_NOSIGNAL);
      (void)close(client);
    }
  });
  const auto asked = ask(bus.path(), 5s);
  EXPECT_FALSE(asked.manager.answered.known());
  EXPECT_THAT(asked.manager.units, IsEmpty());
}

TEST(ServiceManagerQuery, ASocketThatIsNoneSaysNothing) {
  const auto asked = ask("/etc/hostname", 5s);
  ASSERT_FALSE(asked.manager.answered.known());
}

}  // namespace
}  // namespace vacate
