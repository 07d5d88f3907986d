// SPDX-License-Identifier: Apache-2.0
#include "execute/unit_stops.h"

#include <algorithm>

namespace vacate {
namespace {

using Clock = Deadline::Clock;

bool is_waiting_to_be_heard(const std::optional<UnitStop>& conversation) {
  return conversation && !conversation->was_accepted();
}

}  // namespace

Result<void> UnitStops::ask(const UnitTarget& unit, const std::vector<ProcessKey>& members) {
  auto& stop = stops_[unit.name];
  stop.silent_at = Clock::now() + silence_;
  auto conversation = UnitStop::start(unit, members, socket_);
  if (!conversation) {
    stop.answer = UnitStopAnswer{UnitStopEnd::unreachable, conversation.error().message};
    return conversation.error();
  }
  stop.conversation.emplace(*std::move(conversation));
  return {};
}

void UnitStops::advance() {
  for (auto& [name, stop] : stops_) {
    if (stop.answer || !stop.conversation) continue;
    stop.answer = stop.conversation->advance();
    if (!stop.answer && is_waiting_to_be_heard(stop.conversation) && Clock::now() >= stop.silent_at)
      stop.answer = UnitStopAnswer{
          UnitStopEnd::unreachable,
          stop.conversation->was_asked() ? "it was asked and does not answer; it may stop the unit yet" : "no answer"};
  }
}

const UnitStopAnswer* UnitStops::answer(const std::string& unit) const {
  const auto at = stops_.find(unit);
  return at != stops_.end() && at->second.answer ? &*at->second.answer : nullptr;
}

bool UnitStops::was_asked(const std::string& unit) const {
  const auto at = stops_.find(unit);
  return at != stops_.end() && at->second.conversation && at->second.conversation->was_asked();
}

std::string UnitStops::whereabouts(const std::string& unit) const {
  const auto at = stops_.find(unit);
  if (at == stops_.end()) return "the service manager was not asked";
  const auto& conversation = at->second.conversation;
  if (conversation && conversation->was_accepted()) return "the service manager is still stopping " + unit;
  return "the service manager has not answered";
}

void UnitStops::add_waits(std::vector<pollfd>& waits) const {
  for (const auto& [name, stop] : stops_)
    if (stop.conversation && !stop.answer) waits.push_back({stop.conversation->descriptor(), POLLIN, 0});
}

std::optional<Clock::time_point> UnitStops::next_due() const {
  std::optional<Clock::time_point> next;
  for (const auto& [name, stop] : stops_) {
    if (stop.answer || !is_waiting_to_be_heard(stop.conversation)) continue;
    next = next ? std::min(*next, stop.silent_at) : stop.silent_at;
  }
  return next;
}

}  // namespace vacate
