// SPDX-License-Identifier: Apache-2.0
// Checks of what refers to actors: names, globs and {pid:NAME}.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lab/case/read.h"

namespace lab {
namespace {

std::vector<std::string> actor_names(const Case& so_far) {
  std::vector<std::string> names;
  for (const ActorSpec& actor : so_far.actors) names.push_back(actor.name);
  return names;
}

std::string hint(std::string_view name, const Case& so_far) {
  const auto close = vacate::closest_match(name, actor_names(so_far));
  return close ? fmt::format("did you mean '{}'?", *close) : std::string("name one that the case has");
}

/// `text` without a final "+N", the mark of a copy made by on_term = "fork" (N may be a glob); empty if it has none.
std::string_view forker_of(std::string_view text) {
  const auto plus = text.rfind('+');
  const bool marked = plus != std::string_view::npos && plus + 1 < text.size() &&
                      text.find_first_not_of("0123456789*?[]-", plus + 1) == std::string_view::npos;
  return marked ? text.substr(0, plus) : std::string_view();
}

bool is_copy(std::string_view glob, const ActorSpec& actor) {
  const auto forker = forker_of(glob);
  return !forker.empty() && actor.on_term == OnTerm::fork && glob_matches(forker, actor.name);
}

}  // namespace

bool check_actor(const PlacedText& name, const Case& so_far, Complaints& complaints) {
  if (so_far.actor(name.text) != nullptr) return true;
  complaints.add(name.at, fmt::format("no actor is called '{}': {}", name.text, hint(name.text, so_far)));
  return false;
}

void check_globs(const std::vector<PlacedText>& globs, const Case& so_far, Complaints& complaints) {
  for (const PlacedText& glob : globs) {
    const bool matches = std::any_of(so_far.actors.begin(), so_far.actors.end(), [&](const ActorSpec& actor) {
      return glob_matches(glob.text, actor.name) || is_copy(glob.text, actor);
    });
    if (matches) continue;
    complaints.add(glob.at, fmt::format("'{}' matches no actor: {}", glob.text, hint(glob.text, so_far)));
  }
}

std::vector<std::string> resolve_globs(const std::vector<PlacedText>& globs, const Case& so_far,
                                       Complaints& complaints) {
  check_globs(globs, so_far, complaints);
  std::vector<std::string> names;
  for (const PlacedText& glob : globs) {
    for (const ActorSpec& actor : so_far.actors) {
      const bool there = std::find(names.begin(), names.end(), actor.name) != names.end();
      if (!there && glob_matches(glob.text, actor.name)) names.push_back(actor.name);
    }
  }
  return names;
}

void check_pid_marks(const PlacedText& text, const Case& so_far, Complaints& complaints) {
  constexpr std::string_view kMark = "{pid:";
  for (std::size_t at = 0; (at = text.text.find(kMark, at)) != std::string::npos;) {
    const auto begin = at + kMark.size();
    const auto end = text.text.find('}', begin);
    if (end == std::string::npos) {
      complaints.add(text.at, fmt::format("'{}' has no end: write {{pid:NAME}}", text.text.substr(at)));
      return;
    }
    const std::string name = text.text.substr(begin, end - begin);
    const bool copy = std::any_of(so_far.actors.begin(), so_far.actors.end(),
                                  [&](const ActorSpec& actor) { return is_copy(name, actor); });
    if (!copy) check_actor({name, text.at}, so_far, complaints);
    at = end;
  }
}

std::vector<std::optional<int>> instances(const TomlNode& entry, const std::string& where, Complaints& complaints) {
  TableReader table(entry, where, complaints);
  if (table.find("count") == nullptr) return {std::nullopt};
  const auto count = table.integer("count", {1, kMaxCount}, 1);
  std::vector<std::optional<int>> result;
  for (int n = 0; n < count; ++n) result.emplace_back(n);
  const TomlMember* name = table.find("name");
  const auto* text = name != nullptr ? name->value.as<std::string>() : nullptr;
  const TomlMember* sysv = table.find("sysv");  // System V segments have no names
  const bool nameless = sysv != nullptr && sysv->value.as<bool>() != nullptr && *sysv->value.as<bool>();
  if (count > 1 && !nameless && text != nullptr && text->find("{i}") == std::string::npos) {
    complaints.add(name->value.at,
                   fmt::format("{} of {} are all called '{}': put {{i}} into the name", count, where, *text));
    result.resize(1);
  }
  return result;
}

}  // namespace lab
