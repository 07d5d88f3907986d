// SPDX-License-Identifier: Apache-2.0
#include "attribute/proofs.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace vacate {
namespace {

// A parent makes the pipe just before it forks. Start times are cut to whole clock ticks of 10 ms, so a pipe made
// before the start looks at most one tick younger than it; what is younger still was made by the process itself, for a
// helper of its own, and says nothing of its owner. One that is much older was inherited on the way and belonged to
// somebody else's child.
constexpr double kLatestBirthSeconds = 0.011;
constexpr double kEarliestBirthSeconds = -2;
constexpr int kLastStandardDescriptor = 2;

bool was_born_with(const PipeEnd& pipe) noexcept {
  return pipe.close_on_exec && pipe.fd > kLastStandardDescriptor && pipe.created_after_start.known() &&
         *pipe.created_after_start <= kLatestBirthSeconds && *pipe.created_after_start >= kEarliestBirthSeconds &&
         pipe.reads;  // the owner has the end to write to: its death is the end of file here (facts.md 3.7)
}

bool contains(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

// A pid at the other end that was seen by nobody is somebody who came or went during the scan: not nobody.
bool is_nobody(const Census& census, pid_t pid) {
  const auto* process = census.snapshot().find(pid);
  return process != nullptr && is_gone(*process);
}

bool is_of(const Process& process, const Opener& opener) {
  return process.pgid == opener.pid || process.sid == opener.pid;
}

// Every process of the opener's own group or session that could be the one who keeps its client alive. A trainer beside
// the loaders that has not made its context yet looks like them.
std::set<pid_t> possible_keepers(const Census& census, const Charges& charges, const Opener& opener) {
  std::set<pid_t> keepers;
  for (const auto& [pid, references] : census.references()) {
    const auto* process = census.living(pid);
    if (process == nullptr || charges.is_charged(pid) || !is_of(*process, opener) || !census.looks_like_compute(pid))
      continue;
    const bool on_its_gpu =
        std::any_of(opener.charges.begin(), opener.charges.end(),
                    [&, who = pid](const DriverCharge& charge) { return census.refers_to_gpu(who, charge.gpu); });
    if (on_its_gpu || !census.refers_to_any_gpu(pid)) keepers.insert(pid);
  }
  return keepers;
}

// Are they one process, or holders of one open file description that `pid` is among?
bool are_one_client(const Census& census, const std::set<pid_t>& keepers, pid_t pid) {
  if (keepers.size() == 1) return keepers.contains(pid);
  const auto& clients = census.snapshot().shared_clients;
  return std::any_of(clients.begin(), clients.end(), [&](const std::vector<pid_t>& client) {
    return contains(client, pid) &&
           std::all_of(keepers.begin(), keepers.end(), [&](pid_t keeper) { return contains(client, keeper); });
  });
}

std::optional<std::string> opener_proof(const Census& census, const Charges& charges, const Opener& opener,
                                        const Process& process) {
  if (!is_of(process, opener) || !are_one_client(census, possible_keepers(census, charges, opener), process.key.pid))
    return std::nullopt;
  const auto led = process.pgid == opener.pid ? "process group" : "session";
  return fmt::format("it keeps the client of dead process {}, which led its {}", opener.pid, led);
}

}  // namespace

std::optional<std::string> broken_pipe_proof(const Census& census, const Process& process,
                                             const std::function<bool(pid_t)>& is_leftover) {
  for (const auto& pipe : process.pipes) {
    if (!was_born_with(pipe) || !pipe.other_end.known() || contains(*pipe.other_end, process.key.pid)) continue;
    const auto& others = *pipe.other_end;
    const std::string_view what = pipe.is_socket ? "socket" : "pipe";
    // The kernel counts the ends of a pipe: nobody is nobody, even where some tables of descriptors could not be read.
    if (others.empty())
      return fmt::format("the {} on fd {} that it was born with has nobody at the other end: its owner is dead", what,
                         pipe.fd);
    // Who it is that has the other end is another matter: there, two statements of the scan have to agree.
    if (!census.snapshot().visibility.all_references) continue;
    if (std::all_of(others.begin(), others.end(),
                    [&](pid_t pid) { return is_nobody(census, pid) || is_leftover(pid); }))
      return fmt::format("the {} on fd {} that it was born with has only leftovers at the other end: its owner is dead",
                         what, pipe.fd);
  }
  return std::nullopt;
}

std::optional<std::string> dead_named_parent_proof(const Process& process) {
  if (!process.named_parent || process.named_parent_alive) return std::nullopt;
  return fmt::format("its command line names its parent, {}, which is dead", *process.named_parent);
}

std::optional<std::string> dead_opener_proof(const Census& census, const Charges& charges, const Process& process) {
  const auto& snapshot = census.snapshot();
  if (!can_call_dead(snapshot) || !snapshot.visibility.all_references || !can_trust_lists(snapshot))
    return std::nullopt;
  for (const auto& opener : charges.openers()) {
    if (opener.fate != OpenerFate::dead || !contains(opener.inheritors, process.key.pid)) continue;
    if (auto proof = opener_proof(census, charges, opener, process)) return proof;
  }
  return std::nullopt;
}

}  // namespace vacate
