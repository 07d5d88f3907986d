// SPDX-License-Identifier: Apache-2.0
#include "lab/machine/mps_daemon.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "base/deadline.h"
#include "base/text.h"
#include "lab/actor/futex.h"
#include "lab/actor/mps_client.h"
#include "lab/actor/signals.h"
#include "lab/machine/files.h"
#include "lab/machine/plan.h"
#include "lab/machine/units.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr int kClientBacklog = 8;
constexpr auto kObeyLimit = std::chrono::seconds(2);

std::string pipe_directory(const ActorSpec& control) {
  const auto at = control.env.find(kMpsPipeVariable);
  return at != control.env.end() ? at->second : kMpsPipeDirectory;
}

bool lives(const Slot& slot) { return slot.phase.load() == Phase::ready && slot.status.load() == kNoStatus; }

}  // namespace

Result<std::unique_ptr<MpsDaemon>> MpsDaemon::start(const MpsSpec& spec, const ActorSpec& control, Board board) {
  const std::string folder = pipe_directory(control);
  const std::string path = folder + kMpsSocket;
  if (auto made = make_directories(folder); !made) return made.error();
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const Account owner = account_of(control.user);
  if (!listener || bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), 0666) != 0 || chmod(folder.c_str(), 0755) != 0 ||
      chown(path.c_str(), owner.uid, owner.gid) != 0 || chown(folder.c_str(), owner.uid, owner.gid) != 0 ||
      listen(listener.get(), kClientBacklog) != 0) {
    return system_error(path);
  }
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return system_error("eventfd");
  return std::unique_ptr<MpsDaemon>(new MpsDaemon(spec, board, std::move(listener), std::move(wake)));
}

MpsDaemon::MpsDaemon(const MpsSpec& spec, Board board, UniqueFd listener, UniqueFd wake)
    : spec_(spec), board_(board), listener_(std::move(listener)), wake_(std::move(wake)) {
  const SignalsBlocked blocked;  // the reaping of pid 1 is for its first thread
  server_ = std::thread([this] { serve(); });
}

MpsDaemon::~MpsDaemon() {
  const std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  server_.join();
}

/// In the machine; 0: it does not live.
pid_t MpsDaemon::number_of(const std::string& name) const {
  const auto slot = newest(board_, name);
  return slot && lives(board_.slot(*slot)) ? board_.slot(*slot).pid.load() : 0;
}

std::vector<std::string> MpsDaemon::clients() const {
  std::vector<std::string> names;
  for (const std::string& name : spec_.clients) {
    const auto slot = newest(board_, name);
    if (slot && lives(board_.slot(*slot)) && board_.slot(*slot).mps.load() != MpsOrder::done) names.push_back(name);
  }
  return names;
}

/// "SERVER CLIENT": until the client's contexts are gone, which takes a client that runs.
std::string MpsDaemon::end_client(std::string_view words) const {
  const auto numbers = vacate::split(vacate::trim(words), ' ');
  const auto server = vacate::parse_unsigned(numbers.front());
  const auto client = vacate::parse_unsigned(numbers.back());
  if (numbers.size() != 2 || !server || !client || static_cast<pid_t>(*server) != number_of(spec_.server))
    return "Server not found\n";
  for (const std::string& name : clients()) {
    if (static_cast<pid_t>(*client) != number_of(name)) continue;
    if (spec_.refuses) return "CUDA_ERROR_MPS_RPC_FAILURE\n";
    const std::uint32_t slot = *newest(board_, name);
    board_.slot(slot).mps.store(spec_.clients_exit ? MpsOrder::end_contexts_and_exit : MpsOrder::end_contexts);
    board_.nudge(slot);
    const auto deadline = Deadline::after(kObeyLimit);
    for (;;) {
      const std::uint32_t seen = board_.region().event.load();
      if (board_.slot(slot).mps.load() == MpsOrder::done || !lives(board_.slot(slot))) return "CUDA_SUCCESS\n";
      if (deadline.passed()) return "CUDA_ERROR_TIMEOUT\n";
      futex_wait(board_.region().event, seen, deadline);
    }
  }
  return "Client not found\n";
}

std::string MpsDaemon::answer(std::string_view question) const {
  const pid_t server = number_of(spec_.server);
  std::string text;
  if (question == "get_server_list") {
    if (server > 0) text = fmt::format("{}\n", server);
  } else if (question.starts_with("get_client_list ")) {
    const auto wanted = vacate::parse_unsigned(vacate::trim(question.substr(16)));
    if (server <= 0 || !wanted || static_cast<pid_t>(*wanted) != server) return "Server not found\n";
    for (const std::string& name : clients()) text += fmt::format("{}\n", number_of(name));
  } else if (question == "ps") {
    text = "PID       ID    SERVER    DEVICE             NAMESPACE      COMMAND\n";
    for (const std::string& name : clients())
      text += fmt::format("{:<9} 0     {:<9} GPU-0              {:<14} {}\n", number_of(name), server, number_of(name),
                          name.substr(0, 15));
  } else if (question.starts_with("terminate_client ")) {
    text = end_client(question.substr(17));
  } else {
    text = "Unknown command\n";
  }
  return text;
}

void MpsDaemon::talk(const UniqueFd& peer) {
  std::string asked;
  std::array<char, 1024> piece;
  for (ssize_t n = 0; (n = read(peer.get(), piece.data(), piece.size())) > 0;)
    asked.append(piece.data(), static_cast<std::size_t>(n));
  std::string text;
  for (const std::string_view line : vacate::split(asked, '\n')) {
    if (const auto question = vacate::trim(line); !question.empty()) text += answer(question);
  }
  (void)!send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

void MpsDaemon::serve() {
  std::vector<UniqueFd> unanswered;  // of a silent one: they wait until they have enough of it
  for (;;) {
    std::array<pollfd, 2> waits{{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
    poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) return;
    UniqueFd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer || number_of(spec_.control) <= 0) continue;  // hung up on: nobody is there
    if (spec_.silent)
      unanswered.push_back(std::move(peer));
    else
      talk(peer);
  }
}

}  // namespace lab
