// SPDX-License-Identifier: Apache-2.0
// A stand-in for the control daemon of MPS: answers the questions that nvidia-cuda-mps-control hands to the daemon
// (facts.md 1.8), at the socket in its pipe directory, for as long as the actor that is the daemon lives. What a real
// server does to a client's contexts, the client does to itself, at its word.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"
#include "lab/actor/board.h"
#include "lab/case/case.h"

namespace lab {

class MpsDaemon {
 public:
  /// Listens in the pipe directory of `control`, which is that actor's user's, and serves in a thread. `spec` outlives
  /// it.
  [[nodiscard]] static vacate::Result<std::unique_ptr<MpsDaemon>> start(const MpsSpec& spec, const ActorSpec& control,
                                                                        Board board);
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;
  ~MpsDaemon();

 private:
  MpsDaemon(const MpsSpec& spec, Board board, vacate::UniqueFd listener, vacate::UniqueFd wake);
  void serve();
  void talk(const vacate::UniqueFd& peer);
  [[nodiscard]] std::string answer(std::string_view question) const;
  [[nodiscard]] std::string end_client(std::string_view words) const;
  [[nodiscard]] pid_t number_of(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> clients() const;

  const MpsSpec& spec_;
  Board board_;
  vacate::UniqueFd listener_;
  vacate::UniqueFd wake_;
  std::thread server_;
};

}  // namespace lab
