// SPDX-License-Identifier: Apache-2.0
#include "attribute/testimony.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "attribute/parentage.h"
#include "attribute/programs.h"

namespace vacate {
namespace {

// Both are told in whole clock ticks or better; who started within a moment of the activation belongs to it.
constexpr double kActivationSeconds = 0.05;
constexpr std::size_t kShownId = 12;  // as many digits of a container's id as its runtimes show

template <class Entries>
const typename Entries::value_type* find_by(const Entries& entries, std::string Entries::value_type::*member,
                                            const std::string& wanted) {
  const auto at =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.*member == wanted; });
  return at == entries.end() ? nullptr : &*at;
}

std::string shown(const std::string& container) {
  static constexpr std::size_t kWholeId = 64;
  return container.size() == kWholeId ? container.substr(0, kShownId) : container;
}

class Witness {
 public:
  Witness(const Census& census, const Groups& groups, const Origins& origins, const Process& top)
      : census_(census), groups_(groups), origins_(origins), top_(top), origin_(origins.of(top.key.pid)) {}

  Testimony hear() && {
    hear_service();
    hear_container();
    hear_job();
    if (!said_.gone.empty()) doubt_gone();
    return std::move(said_);
  }

 private:
  void hear_service() {
    if (origin_.user_manager && origin_.unit && origin_.unit->ends_with(".service") && !origin_.container)
      said_.open.push_back(fmt::format("its unit {} belongs to the service manager of user {}, which was not asked",
                                       *origin_.unit, *origin_.user_manager));
    if (!origin_.service || is_service_of_others_work(*origin_.service)) return;
    const auto& manager = census_.snapshot().services;
    const auto* unit = find_by(manager.units, &ServiceUnit::name, *origin_.service);
    if (unit == nullptr) {
      said_.open.push_back(fmt::format("its service {} could not be asked about", *origin_.service));
      said_.may_be_main = !manager.answered.known() || *manager.answered;  // where no manager runs, nobody is
    } else if (unit->active_state == "inactive" || unit->active_state == "failed") {
      left_over(fmt::format("its service {} is {}", unit->name, unit->active_state));
    } else if (unit->main_pid == 0) {
      said_.open.push_back(fmt::format("its service {} is {} and no main process of it is known, which proves nothing",
                                       unit->name, unit->active_state));
      // A daemon that forked itself away, or numbers of another namespace; between two attempts nothing is.
      said_.may_be_main = unit->sub_state != "auto-restart";
    } else {
      hear_main_process(*unit);
    }
  }

  void hear_main_process(const ServiceUnit& unit) {
    const auto* main = census_.living(unit.main_pid);
    // The number may have become another's since the manager said it.
    if (main == nullptr || origins_.of(unit.main_pid).service != unit.name) {
      said_.open.push_back(
          fmt::format("the main process {} of its service {} was not seen: look again", unit.main_pid, unit.name));
      return;
    }
    const bool is_running = unit.active_state != "deactivating" && unit.active_state != "maintenance";
    if (unit.main_pid == top_.key.pid) {
      if (is_running) live(fmt::format("it is the main process of its service {}", unit.name), unit.main_pid);
      said_.may_be_main = is_running;
    } else if (groups_.group_of(unit.main_pid) == groups_.group_of(top_.key.pid)) {
      if (is_running)
        live(fmt::format("the main process {} of its service {} is in its group", unit.main_pid, unit.name),
             unit.main_pid);
    } else if (main->key.start_ticks <= top_.key.start_ticks) {
      if (is_running)
        live(fmt::format("its service {} is {}, with main process {}", unit.name, unit.active_state, unit.main_pid),
             unit.main_pid);
    } else {
      hear_younger_main(unit, *main);
    }
  }

  // A former main process left it over, unless the unit itself started it before what is now its main process.
  void hear_younger_main(const ServiceUnit& unit, const Process& main) {
    if (descends_from(census_, main, top_.key.pid)) {
      said_.open.push_back(fmt::format("the main process {} of its service {} is below it", main.key.pid, unit.name));
    } else if (program_of(main, census_.snapshot().shells) != Program::ordinary &&
               program_of(main, census_.snapshot().shells) != Program::shell) {
      said_.open.push_back(fmt::format("its service {} starts the work of others", unit.name));
    } else if (unit.active_state == "deactivating") {
      said_.open.push_back(fmt::format("its service {} is being stopped: look again", unit.name));
    } else if (unit.activated.known() && top_.started + kActivationSeconds >= *unit.activated) {
      said_.open.push_back(fmt::format("its service {} started it before the main process that it has now", unit.name));
    } else if (!is_of_same_user(main)) {
      said_.open.push_back(
          fmt::format("the main process {} of its service {} is younger than it, but runs as another user",
                      main.key.pid, unit.name));
    } else {
      left_over(fmt::format("the main process {} of its service {} is younger than it: a former one left it over",
                            main.key.pid, unit.name));
    }
  }

  // A service that starts work as other users is restarted beside it (hubs, batch daemons).
  [[nodiscard]] bool is_of_same_user(const Process& main) const {
    return main.uid.known() && top_.uid.known() && *main.uid == *top_.uid;
  }

  void left_over(std::string sentence) {
    said_.gone.push_back(std::move(sentence));
    said_.left_by_service = true;
  }

  void hear_container() {
    if (!origin_.container) return;
    const auto* first = origins_.first_of_container(*origin_.container);
    const auto* entry = find_by(census_.snapshot().containers, &Existence::id, *origin_.container);
    const auto name = shown(*origin_.container);
    const bool is_gone = entry != nullptr && entry->exists.known() && !*entry->exists && !origin_.is_outside;
    if (first != nullptr && (first->key.pid == top_.key.pid || descends_from(census_, top_, first->key.pid))) {
      live(fmt::format("the first process {} of its container {} is alive and {}", first->key.pid, name,
                       first->key.pid == top_.key.pid ? "it is that one" : "an ancestor of it"),
           first->key.pid);
    } else if (is_gone && first == nullptr) {
      said_.gone.push_back(fmt::format("its container {} no longer exists{}", name, said_by(*entry)));
    } else if (first != nullptr) {
      said_.open.push_back(
          fmt::format("its container {} lives, but its first process {} is no ancestor of it", name, first->key.pid));
    } else if (entry == nullptr || !entry->exists.known()) {
      said_.open.push_back(fmt::format("whether its container {} still exists could not be told", name));
    } else {
      said_.open.push_back(fmt::format("its container {} still exists, but its first process was not seen", name));
    }
  }

  void hear_job() {
    if (!origin_.slurm_job) {
      if (origin_.job)
        said_.open.push_back(
            fmt::format("nobody was asked whether its job {} ({}) has ended", *origin_.job, origin_.job_system));
      return;
    }
    const auto* entry = find_by(census_.snapshot().jobs, &Existence::id, *origin_.slurm_job);
    if (entry == nullptr || !entry->exists.known() || origin_.is_outside) {
      said_.open.push_back(fmt::format("whether its Slurm job {} has ended could not be told", *origin_.slurm_job));
    } else if (*entry->exists) {
      live(fmt::format("its Slurm job {} is live{}", *origin_.slurm_job, said_by(*entry)), std::nullopt);
    } else {
      said_.gone.push_back(fmt::format("its Slurm job {} has ended{}", *origin_.slurm_job, said_by(*entry)));
    }
  }

  static std::string said_by(const Existence& entry) {
    return entry.source.empty() ? std::string() : fmt::format(" ({})", entry.source);
  }

  void live(std::string sentence, std::optional<pid_t> keeper) {
    if (said_.lives) return;
    said_.lives = std::move(sentence);
    said_.keeper = keeper;
  }

  // What it started may have been moved on, into a unit, container or job that is still owned.
  void doubt_gone() {
    const auto group = groups_.group_of(top_.key.pid);
    if (!group) return;
    for (const auto pid : groups_.members(*group)) {
      const auto* member = census_.living(pid);
      if (pid == top_.key.pid || member == nullptr || groups_.topmost_of(pid) != top_.key.pid) continue;
      const auto& theirs = origins_.of(pid);
      if (std::tie(theirs.service, theirs.container, theirs.slurm_job) ==
          std::tie(origin_.service, origin_.container, origin_.slurm_job))
        continue;
      if (!Witness(census_, groups_, origins_, *member).hear_for_life()) continue;
      said_.open.push_back(fmt::format("{}; but {} below it belongs to something that lives", said_.gone.front(), pid));
      said_.gone.clear();
      said_.left_by_service = false;
      return;
    }
  }

  bool hear_for_life() {
    hear_service();
    hear_container();
    hear_job();
    return said_.lives.has_value();
  }

  const Census& census_;
  const Groups& groups_;
  const Origins& origins_;
  const Process& top_;
  const Origin& origin_;
  Testimony said_;
};

}  // namespace

Testimony testimony_of(const Census& census, const Groups& groups, const Origins& origins, const Process& top) {
  return Witness(census, groups, origins, top).hear();
}

}  // namespace vacate
