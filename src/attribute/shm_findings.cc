// SPDX-License-Identifier: Apache-2.0
#include "attribute/shm_findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "attribute/shm_catalogue.h"

namespace vacate {
namespace {

using V = ShmVerdict;

struct Reason {
  ShmVerdict verdict = V::cannot_tell;
  std::string because;
};
using MaybeReason = std::optional<Reason>;

std::string said(const ShmUser& user) {
  switch (user.how) {
    case ShmUse::mapping:
      return fmt::format("process {} maps it", user.pid);
    case ShmUse::descriptor:
      return fmt::format("process {} has it open", user.pid);
    case ShmUse::thread_descriptor:
      return fmt::format("a thread of process {} has it open", user.pid);
    case ShmUse::lock:
      return user.pid > 0 ? fmt::format("process {} has a lock on it", user.pid)
                          : std::string("somebody has a lock on it");
    case ShmUse::attachment:
      return "somebody has it attached";
  }
  return "somebody uses it";
}

std::string in_words(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", std::floor(seconds));
  if (seconds < 3600) return fmt::format("{:.0f} min", std::floor(seconds / 60));
  if (seconds < 2 * 86400) return fmt::format("{:.0f} h", std::floor(seconds / 3600));
  return fmt::format("{:.0f} days", std::floor(seconds / 86400));
}

std::string last_part(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

/// What hides no user of a file.
bool hides_no_user(const BlindSpot& spot) { return spot.code == "deleted-uncounted"; }

/// All of one call.
class Judge {
 public:
  Judge(const ShmSnapshot& snapshot, const ShmRequest& request, const std::set<ShmFileKey>& waived)
      : snapshot_(snapshot), request_(request), waived_(waived), sees_all_(sees_all_users(snapshot, request)) {
    for (const auto& [device, path] : snapshot.mounted) mounted_.emplace(device, last_part(path));
  }

  [[nodiscard]] std::vector<ShmFinding> run();

 private:
  [[nodiscard]] Reason judge(const ShmSegment& segment, const std::optional<ShmName>& name) const;
  [[nodiscard]] MaybeReason refuse_kind(const ShmSegment& segment, const std::optional<ShmName>& name) const;
  [[nodiscard]] MaybeReason refuse_file(const ShmSegment& segment) const;
  [[nodiscard]] MaybeReason refuse_owner(const ShmSegment& segment) const;
  [[nodiscard]] MaybeReason refuse_age(const ShmSegment& segment) const;
  [[nodiscard]] MaybeReason refuse_creator(const ShmSegment& segment) const;
  [[nodiscard]] MaybeReason refuse_keeper(const ShmSegment& segment, const std::optional<ShmName>& name) const;
  void hold_sets_together(std::vector<ShmFinding>& findings, const std::vector<std::string>& sets) const;

  const ShmSnapshot& snapshot_;
  const ShmRequest& request_;
  const std::set<ShmFileKey>& waived_;
  bool sees_all_;
  std::set<std::pair<std::uint64_t, std::string>> mounted_;  ///< device and name
};

/// What is never removed, whoever uses it.
MaybeReason Judge::refuse_kind(const ShmSegment& segment, const std::optional<ShmName>& name) const {
  if (segment.kind == ShmKind::huge_page) return Reason{V::not_ours, "huge pages are listed only"};
  if (segment.kind == ShmKind::other) return Reason{V::not_ours, "it is " + segment.type + ", not a segment"};
  if (name && name->treatment == ShmTreatment::never) return Reason{V::not_ours, std::string(name->note)};
  return std::nullopt;
}

MaybeReason Judge::refuse_file(const ShmSegment& segment) const {
  if (segment.kind == ShmKind::sysv) {
    if (segment.locked_down) return Reason{V::not_ours, "it is marked for removal already"};
    return std::nullopt;
  }
  if (segment.identity.links > 1)
    return Reason{V::not_ours, "it has another name as well: removing this one would free nothing"};
  if (segment.locked_down) return Reason{V::not_ours, "it is marked immutable or append-only"};
  return std::nullopt;
}

MaybeReason Judge::refuse_owner(const ShmSegment& segment) const {
  const auto& caller = snapshot_.caller;
  const bool is_own = segment.uid.known() && *segment.uid == caller.uid;
  if (caller.root || caller.uid == 0 || is_own) return std::nullopt;
  return Reason{V::not_ours, fmt::format("it belongs to {}: only that user or root may remove it", segment.user)};
}

MaybeReason Judge::refuse_age(const ShmSegment& segment) const {
  const bool is_file = segment.kind == ShmKind::file;
  if (is_file && waived_.contains({segment.identity.device, segment.identity.inode})) return std::nullopt;
  const double age = snapshot_.time - segment.modified;
  const double wanted = std::chrono::duration<double>(request_.older_than).count();
  if (age < 0 && wanted > 0) return Reason{V::too_young, "its time lies in the future, so its age is not known"};
  if (age >= wanted) return std::nullopt;
  if (segment.identity.size == 0) return Reason{V::too_young, "it is empty and young: somebody is making it just now"};
  return Reason{V::too_young, fmt::format("it was changed {} ago, {} are asked for", in_words(age), in_words(wanted))};
}

/// Nothing tells when the creator of a segment or a tracker started in the time of the files: clocks are set. So
/// whoever has the number lives.
MaybeReason Judge::refuse_creator(const ShmSegment& segment) const {
  if (segment.creator == 0) return Reason{V::cannot_tell, "its creator is not visible from here"};
  for (const auto& keeper : snapshot_.keepers)
    if (keeper.pid == segment.creator)
      return Reason{V::in_use, fmt::format("process {}, of the number of its creator, lives", keeper.pid)};
  return std::nullopt;
}

/// A number in a name is that of its maker in the maker's own pid namespace: somebody who has that number there and
/// sees this tmpfs may be it. Python's tracker unlinks what its clients leave once they have ended.
MaybeReason Judge::refuse_keeper(const ShmSegment& segment, const std::optional<ShmName>& name) const {
  if (segment.kind == ShmKind::sysv) return refuse_creator(segment);
  if (mounted_.contains({segment.identity.device, last_part(segment.name)}))
    return Reason{V::in_use, "a file of this name is mounted somewhere"};
  for (const auto& keeper : snapshot_.keepers) {
    if (!std::binary_search(keeper.devices.begin(), keeper.devices.end(), segment.identity.device)) continue;
    if (name && name->creator && keeper.own_pid == *name->creator)
      return Reason{V::in_use,
                    fmt::format("process {}, of the number that its name has of its creator, lives", keeper.pid)};
    const bool is_tracked = name && name->by_resource_tracker && keeper.resource_tracker && segment.uid.known() &&
                            keeper.uid == *segment.uid;
    if (is_tracked)
      return Reason{V::in_use,
                    fmt::format("process {}, a resource tracker of Python, lives and may answer for it", keeper.pid)};
  }
  return std::nullopt;
}

Reason Judge::judge(const ShmSegment& segment, const std::optional<ShmName>& name) const {
  if (auto reason = refuse_kind(segment, name)) return *std::move(reason);
  if (!segment.users.empty()) return {V::in_use, said(segment.users.front())};
  if (segment.kind != ShmKind::sysv && !name)
    return {V::unknown_family, "no software is known whose segments have such names"};
  if (name && name->treatment == ShmTreatment::listed_only) return {V::unknown_family, std::string(name->note)};
  if (segment.kind == ShmKind::sysv && !request_.sysv)
    return {V::unknown_family,
            "nothing tells whose a System V segment is: --sysv includes it, if it is old enough (--older-than)"};
  for (auto reason : {refuse_file(segment), refuse_owner(segment)})
    if (reason) return *std::move(reason);
  if (!sees_all_) return {V::cannot_tell, "not every process could be seen: somebody unseen may use it"};
  for (auto reason : {refuse_age(segment), refuse_keeper(segment, name)})
    if (reason) return *std::move(reason);
  if (segment.kind == ShmKind::sysv) return {V::unused, "nobody has it attached, and its creator has ended"};
  return {V::unused, "nobody maps, opens or locks it"};
}

/// A semaphore goes with its segment and the segments of one job go together, or none of them goes.
void Judge::hold_sets_together(std::vector<ShmFinding>& findings, const std::vector<std::string>& sets) const {
  std::map<std::string, std::size_t> kept;
  for (std::size_t i = 0; i < findings.size(); ++i)
    if (!sets[i].empty() && findings[i].verdict != V::unused) kept.emplace(sets[i], i);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto other = kept.find(sets[i]);
    if (sets[i].empty() || findings[i].verdict != V::unused || other == kept.end()) continue;
    findings[i].verdict = findings[other->second].verdict;
    findings[i].because = fmt::format("it belongs together with {}, which stays: {}",
                                      snapshot_.segments[other->second].name, findings[other->second].because);
  }
}

std::vector<ShmFinding> Judge::run() {
  std::vector<ShmFinding> findings;
  std::vector<std::string> sets;
  findings.reserve(snapshot_.segments.size());
  for (const auto& segment : snapshot_.segments) {
    std::optional<ShmName> name;
    if (segment.kind == ShmKind::file || segment.kind == ShmKind::other) name = recognise_shm(segment.name);
    if (segment.kind == ShmKind::huge_page) name = recognise_huge_page_file(segment.name);
    // A file that bears the name of a folder is nobody's that is known.
    if (name && name->is_folder && segment.kind == ShmKind::file) name.reset();
    auto reason = judge(segment, name);
    ShmFinding finding;
    if (name) {
      finding.family = name->family;
      finding.software = name->software;
      finding.encodes = name->encodes;
    }
    finding.verdict = reason.verdict;
    finding.because = std::move(reason.because);
    findings.push_back(std::move(finding));
    // Sets are held together within one file system.
    const bool in_set = name && !name->set.empty();
    sets.push_back(in_set ? fmt::format("{}/{}", segment.identity.device, name->set) : "");
    findings.back().set = sets.back();
  }
  hold_sets_together(findings, sets);
  return findings;
}

}  // namespace

bool sees_all_users(const ShmSnapshot& snapshot, const ShmRequest& request) {
  const auto& visibility = snapshot.visibility;
  if (visibility.all_references) return true;
  if (!request.assume_private || visibility.blind_spots.empty()) return false;
  return std::all_of(visibility.blind_spots.begin(), visibility.blind_spots.end(),
                     [](const BlindSpot& spot) { return spot.code == "foreign-pid-namespace" || hides_no_user(spot); });
}

std::vector<ShmFinding> judge_shm(const ShmSnapshot& snapshot, const ShmRequest& request,
                                  const std::set<ShmFileKey>& waived) {
  return Judge(snapshot, request, waived).run();
}

}  // namespace vacate
