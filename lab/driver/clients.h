// SPDX-License-Identifier: Apache-2.0
// The clients of the simulated driver and the memory they keep: the lifetime rules of facts.md 2.2 and nothing else.
// Pure: no system calls, no clock of its own, no FUSE. Falling memory is a function of time, so nothing here needs a
// timer.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lab/driver/process_identity.h"
#include "lab/driver/protocol.h"

namespace lab {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC
using Token = std::uint64_t;              // names a control file; never used twice

/// What a client was given on one GPU.
struct Allocation {
  std::uint32_t gpu = 0;
  ListKind list = ListKind::none;
  std::uint64_t bytes = 0;
  std::int64_t release_after_ms = 0;
  std::uint32_t release_steps = 1;
};

struct Client {
  std::optional<ProcessIdentity> opener;  ///< nothing before the first allocation: no client in the driver's sense yet
  std::vector<Allocation> allocations;
  std::uint32_t references = 1;  ///< its control file and the files registered with that
  std::uint32_t imports = 0;     ///< files that keep its memory, though not itself

  [[nodiscard]] bool listed() const noexcept { return references > 0 && opener.has_value(); }
};

/// Memory of a client that is gone, on its way back.
struct Falling {
  Allocation allocation;
  Clock::time_point since;

  [[nodiscard]] std::uint64_t remaining(Clock::time_point now) const noexcept;
};

class Clients {
 public:
  explicit Clients(std::size_t gpu_count) : last_release_(gpu_count) {}

  /// A control file was opened; it is the first reference to its client.
  [[nodiscard]] Token add();
  /// Adds to the client; the first allocation charges it to `caller`.
  void allocate(Token token, const ProcessIdentity& caller, const Allocation& allocation);

  /// False where there is no such client any more.
  [[nodiscard]] bool add_reference(Token token);
  [[nodiscard]] bool add_import(Token token);
  void drop_reference(Token token, Clock::time_point now);
  void drop_import(Token token, Clock::time_point now);

  [[nodiscard]] const std::map<Token, Client>& all() const noexcept { return clients_; }
  /// Bytes on `gpu` of clients, alive or not, that have not fallen yet.
  [[nodiscard]] std::uint64_t used(std::uint32_t gpu, Clock::time_point now) const;
  /// The part of used() that belonged to clients past their last reference.
  [[nodiscard]] std::uint64_t ownerless(std::uint32_t gpu, Clock::time_point now) const;
  /// When a client with something on `gpu` last lost its last reference.
  [[nodiscard]] std::optional<Clock::time_point> last_release(std::uint32_t gpu) const { return last_release_.at(gpu); }

 private:
  void free_if_unused(Token token, Clock::time_point now);

  std::map<Token, Client> clients_;
  std::vector<Falling> falling_;
  std::vector<std::optional<Clock::time_point>> last_release_;
  Token last_token_ = 0;
};

}  // namespace lab
