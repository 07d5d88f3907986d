// SPDX-License-Identifier: Apache-2.0
// See shm.h.
#include "lab/machine/shm.h"

#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/bytes.h"
#include "base/unique_fd.h"
#include "lab/machine/plan.h"

namespace lab {
namespace {

using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr mode_t kForAll = 0666;  // actors of any user are to use them

timespec ago(Seconds age) {
  timespec when{};
  clock_gettime(CLOCK_REALTIME, &when);
  const double whole = std::floor(age);
  when.tv_sec -= static_cast<time_t>(whole);
  when.tv_nsec -= static_cast<long>((age - whole) * 1e9);
  if (when.tv_nsec < 0) {
    when.tv_nsec += 1'000'000'000;
    --when.tv_sec;
  }
  return when;
}

Result<void> make_file(const ShmSpec& spec) {
  const std::string path = "/dev/shm/" + spec.name;
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kForAll));
  const Account owner = account_of(spec.user);
  const timespec changed = ago(spec.age);
  const std::array<timespec, 2> times = {changed, changed};
  if (!file || fchmod(file.get(), kForAll) != 0 || fchown(file.get(), owner.uid, owner.gid) != 0 ||
      ftruncate(file.get(), static_cast<off_t>(vacate::mebibytes(spec.size).count)) != 0 ||
      futimens(file.get(), times.data()) != 0)
    return system_error("making " + path);
  return {};
}

int make_segment(const ShmSpec& spec) {
  const int id = shmget(IPC_PRIVATE, static_cast<std::size_t>(vacate::mebibytes(spec.size).count), IPC_CREAT | kForAll);
  shmid_ds state{};
  if (id < 0 || shmctl(id, IPC_STAT, &state) != 0) return -1;
  const Account owner = account_of(spec.user);
  state.shm_perm.uid = owner.uid;
  state.shm_perm.gid = owner.gid;
  return shmctl(id, IPC_SET, &state) == 0 ? id : -1;
}

/// In a child, so that its creator is dead, as that of a segment that survived a forced stop is.
Result<int> make_orphaned_segment(const ShmSpec& spec) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe");
  const UniqueFd answer(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t child = fork();
  if (child < 0) return system_error("fork");
  if (child == 0) {
    const int id = make_segment(spec);
    _exit(write(theirs.get(), &id, sizeof id) == static_cast<ssize_t>(sizeof id) ? 0 : 1);
  }
  theirs.reset();
  int id = -1;
  ssize_t got = -1;
  do {
    got = read(answer.get(), &id, sizeof id);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof id) || id < 0)
    return vacate::Error{vacate::ErrorCode::io, "cannot make a System V segment"};
  return id;
}

void add(std::vector<ShmPlan>& plans, const std::vector<std::string>& names, std::string_view actor, ShmPlan plan) {
  if (std::find(names.begin(), names.end(), actor) != names.end()) plans.push_back(std::move(plan));
}

}  // namespace

Result<std::vector<int>> make_shm(const Case& scenario) {
  std::vector<int> ids;
  for (const ShmSpec& spec : scenario.shms) {
    if (spec.sysv) {
      auto id = make_orphaned_segment(spec);
      if (!id) return id.error();
      ids.push_back(*id);
      continue;
    }
    if (auto made = make_file(spec); !made) return made.error();
    ids.push_back(-1);
  }
  return ids;
}

std::vector<ShmPlan> shm_held_by(const Case& scenario, const std::vector<int>& ids, std::string_view actor) {
  std::vector<ShmPlan> plans;
  for (std::size_t i = 0; i < scenario.shms.size(); ++i) {
    const ShmSpec& spec = scenario.shms[i];
    const auto id = static_cast<std::uint32_t>(ids.at(i));
    const ShmUse mapped = spec.sysv ? ShmUse::attached : ShmUse::mapped;
    add(plans, spec.mapped_by, actor, {mapped, spec.name, vacate::mebibytes(spec.size).count, id});
    add(plans, spec.opened_by, actor, {ShmUse::opened, spec.name, vacate::mebibytes(spec.size).count, id});
    add(plans, spec.locked_by, actor, {ShmUse::locked, spec.name, vacate::mebibytes(spec.size).count, id});
  }
  return plans;
}

}  // namespace lab
