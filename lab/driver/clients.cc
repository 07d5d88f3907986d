// SPDX-License-Identifier: Apache-2.0
// The lifetime rules behind clients.h.
#include "lab/driver/clients.h"

#include <algorithm>

namespace lab {

std::uint64_t Falling::remaining(Clock::time_point now) const noexcept {
  if (allocation.release_after_ms < 0) return allocation.bytes;
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - since).count();
  if (passed >= allocation.release_after_ms) return 0;
  const auto steps_done = static_cast<std::uint64_t>(passed) * allocation.release_steps /
                          static_cast<std::uint64_t>(allocation.release_after_ms);
  return allocation.bytes - allocation.bytes / allocation.release_steps * steps_done;
}

Token Clients::add() {
  clients_.emplace(++last_token_, Client{});
  return last_token_;
}

void Clients::allocate(Token token, const ProcessIdentity& caller, const Allocation& allocation) {
  Client& client = clients_.at(token);
  if (!client.opener) client.opener = caller;
  client.allocations.push_back(allocation);
}

bool Clients::add_reference(Token token) {
  const auto found = clients_.find(token);
  // References gone but imports left: a client that has ended cannot be taken up again.
  if (found == clients_.end() || found->second.references == 0) return false;
  ++found->second.references;
  return true;
}

bool Clients::add_import(Token token) {
  const auto found = clients_.find(token);
  if (found == clients_.end() || found->second.references == 0) return false;
  ++found->second.imports;
  return true;
}

void Clients::drop_reference(Token token, Clock::time_point now) {
  Client& client = clients_.at(token);
  if (--client.references == 0) {
    for (const Allocation& allocation : client.allocations) last_release_.at(allocation.gpu) = now;
  }
  free_if_unused(token, now);
}

void Clients::drop_import(Token token, Clock::time_point now) {
  --clients_.at(token).imports;
  free_if_unused(token, now);
}

void Clients::free_if_unused(Token token, Clock::time_point now) {
  const auto found = clients_.find(token);
  if (found->second.references > 0 || found->second.imports > 0) return;
  std::erase_if(falling_, [now](const Falling& part) { return part.remaining(now) == 0; });
  for (const Allocation& allocation : found->second.allocations) {
    if (allocation.release_after_ms != 0) falling_.push_back({allocation, now});
  }
  clients_.erase(found);
}

std::uint64_t Clients::used(std::uint32_t gpu, Clock::time_point now) const {
  std::uint64_t sum = ownerless(gpu, now);
  for (const auto& [token, client] : clients_) {
    if (client.references == 0) continue;
    for (const Allocation& allocation : client.allocations) sum += allocation.gpu == gpu ? allocation.bytes : 0;
  }
  return sum;
}

std::uint64_t Clients::ownerless(std::uint32_t gpu, Clock::time_point now) const {
  std::uint64_t sum = 0;
  for (const Falling& part : falling_) sum += part.allocation.gpu == gpu ? part.remaining(now) : 0;
  for (const auto& [token, client] : clients_) {
    if (client.references > 0) continue;
    for (const Allocation& allocation : client.allocations) sum += allocation.gpu == gpu ? allocation.bytes : 0;
  }
  return sum;
}

}  // namespace lab
