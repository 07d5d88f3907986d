// SPDX-License-Identifier: Apache-2.0
// How a client of MPS can be ended: never by a signal, for that leaves its server and the other clients undefined, but
// by the control daemon, where that is to be believed (facts.md 1.8). Pure.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"
#include "plan/kinship.h"

namespace vacate {

/// Is it protected as a client of MPS, and by nothing else?
[[nodiscard]] bool is_mps_client(const Member& member) noexcept;

/// The server whose client it is, for the daemon to end it; or why that cannot be done, as the end of a sentence.
[[nodiscard]] std::variant<pid_t, std::string> mps_way(const Snapshot& snapshot, const Member& client,
                                                       const FreeRequest& request);

/// Does an MPS server or control daemon live, which the end of a client could harm? By name, for it only spares.
[[nodiscard]] bool may_have_mps_server(const Snapshot& snapshot);

/// Living clients of MPS that the end of a server would harm, for they are not to be ended as well; sorted. Empty for
/// whoever is no server (facts.md 1.8: clients first).
[[nodiscard]] std::vector<pid_t> clients_left_by(const Snapshot& snapshot, const Process& server,
                                                 const FreeRequest& request);

/// `plan` with every end of a server refused of whom a living client is not ended by it too, whatever the reason:
/// refused itself, left out by a selector, or unknown to a plan that was reviewed. What ends with such a server by one
/// stop of a service is refused with it. Steps keep their places and numbers; the id is the caller's.
[[nodiscard]] Plan spare_mps_servers(Plan plan, const Snapshot& snapshot);

/// What the daemon will do, for a plan.
[[nodiscard]] std::string mps_sentence(const Snapshot& snapshot, pid_t server);

}  // namespace vacate
