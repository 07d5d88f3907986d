// SPDX-License-Identifier: Apache-2.0
// vacate.shm/1.
#include <algorithm>

#include "report/format.h"
#include "report/json_parts.h"
#include "report/shm.h"

namespace vacate {
namespace {

using namespace json;  // NOLINT(google-build-using-namespace): the parts of one writer

std::string_view word_for(ShmKind kind) {
  switch (kind) {
    case ShmKind::file:
      return "file";
    case ShmKind::other:
      return "other";
    case ShmKind::sysv:
      return "sysv";
    case ShmKind::huge_page:
      return "huge-page";
  }
  return "other";
}

Json pid_json(pid_t pid) { return pid > 0 ? Json(pid) : Json(nullptr); }

Json user_json(const ShmUser& user) {
  Json object;
  object["pid"] = pid_json(user.pid);
  object["how"] = describe(user.how);
  return object;
}

Json place_json(const ShmReport& report, std::size_t index) {
  const auto& snapshot = report.snapshot;
  const auto& place = snapshot.places[index];
  Bytes deleted, gain;
  bool all_known = true;
  for (const auto& entry : snapshot.deleted) {
    if (entry.place != index) continue;
    all_known = all_known && entry.on_disk.known();
    if (entry.on_disk.known()) deleted += *entry.on_disk;
  }
  for (std::size_t i = 0; i < snapshot.segments.size() && i < report.findings.size(); ++i) {
    const auto& segment = snapshot.segments[i];
    if (segment.kind == ShmKind::file && segment.place == index && report.findings[i].verdict == ShmVerdict::unused)
      gain += segment.on_disk;
  }
  Json object;
  put(object, "size", place.size);
  put(object, "used", place.used);
  put(object, "deleted_mapped", all_known ? Reading<Bytes>(deleted) : Reading<Bytes>(Unknown::no_permission));
  object["path"] = safe(place.path);
  object["gain"] = gain.count;
  object["read_only"] = place.read_only;
  object["huge_pages"] = place.huge_pages;
  return object;
}

Json segment_json(const ShmReport& report, std::size_t index) {
  const auto& snapshot = report.snapshot;
  const auto& segment = snapshot.segments[index];
  const auto& finding = report.findings.at(index);
  Json object;
  object["name"] = safe(segment.name);
  object["family"] = finding.family.empty() ? Json(nullptr) : safe(finding.family);
  object["size"] = segment.size.count;
  object["user"] = safe(segment.user);
  object["age"] = seconds_of(snapshot.time - segment.modified);
  object["users"] = list_of(segment.users, user_json);
  object["verdict"] = describe(finding.verdict);
  object["because"] = safe(finding.because);
  object["path"] = safe(shm_path(snapshot, segment));
  object["kind"] = word_for(segment.kind);
  object["on_disk"] = segment.on_disk.count;
  put(object, "uid", segment.uid);
  object["software"] = finding.software.empty() ? Json(nullptr) : safe(finding.software);
  object["encodes"] = texts(finding.encodes);
  if (segment.kind != ShmKind::sysv) return object;
  object["attached"] = segment.attached;
  object["creator"] = pid_json(segment.creator);
  object["last_user"] = pid_json(segment.last_user);
  return object;
}

Json deleted_json(const ShmReport& report, const DeletedShm& entry) {
  Json object;
  object["path"] = safe(report.snapshot.places.at(entry.place).path);
  object["name"] = safe(entry.name);
  put(object, "size", entry.on_disk);
  object["users"] = list_of(entry.users, user_json);
  return object;
}

Json result_json(const ShmReport& report, const ShmStep& step) {
  const auto* result = find_shm_result(report, step.n);
  Json object;
  object["n"] = step.n;
  object["name"] = safe(step.name);
  object["path"] = safe(shm_path(report.snapshot, report.snapshot.segments.at(step.segment)));
  object["size"] = step.on_disk.count;
  object["result"] = result == nullptr ? Json(nullptr) : Json(describe(result->status));
  object["detail"] = result == nullptr ? Json("") : safe(result->detail);
  return object;
}

}  // namespace

Json json::shm_cleanup_json(const ShmCleanup& cleanup) {
  const auto path = [](const ShmCleanup::Entry& entry) { return safe(entry.path); };
  Json details = Json::array();
  for (const auto* list : {&cleanup.removed, &cleanup.kept}) {
    for (const auto& entry : *list) {
      Json object;
      object["path"] = safe(entry.path);
      object["size"] = entry.on_disk.count;
      object["removed"] = list == &cleanup.removed;
      object["because"] = safe(entry.because);
      details.push_back(std::move(object));
    }
  }
  Json object;
  object["removed"] = list_of(cleanup.removed, path);
  object["kept"] = list_of(cleanup.kept, path);
  object["details"] = std::move(details);
  return object;
}

std::string render_shm_json(const ShmReport& report) {
  const auto& snapshot = report.snapshot;
  Json object;
  object["schema"] = "vacate.shm/1";
  object["verdict"] = describe(report.verdict);
  const int code = static_cast<int>(exit_code_of(report.verdict));
  object["exit"] = report.interrupted_by != 0 ? 128 + report.interrupted_by : code;
  object["time"] = format_rfc3339(snapshot.time);
  object["tmpfs"] = snapshot.places.empty() ? Json(nullptr) : place_json(report, 0);
  object["more_tmpfs"] = Json::array();
  for (std::size_t i = 1; i < snapshot.places.size(); ++i) object["more_tmpfs"].push_back(place_json(report, i));
  object["segments"] = Json::array();
  for (std::size_t i = 0; i < snapshot.segments.size(); ++i) object["segments"].push_back(segment_json(report, i));
  object["deleted"] = list_of(snapshot.deleted, [&](const DeletedShm& entry) { return deleted_json(report, entry); });
  object["results"] = list_of(report.plan.steps, [&](const ShmStep& step) { return result_json(report, step); });
  object["refusal"] = report.plan.refusal.empty() ? Json(nullptr) : safe(report.plan.refusal);
  object["visibility"] = visibility_json(snapshot.visibility);
  object["record"] = record_json(report.record);
  return one_line(object);
}

}  // namespace vacate
