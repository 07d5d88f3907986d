// SPDX-License-Identifier: Apache-2.0
// The answers of `vacate why` as text and as JSON.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "report/format.h"
#include "report/json_parts.h"
#include "report/status.h"
#include "report/why.h"

namespace vacate {
namespace {

using namespace json;  // NOLINT(google-build-using-namespace): the parts of one writer

std::vector<WhyPart> explain(const WhyReport& report, const WhySubject& subject) {
  return subject.gpu ? explain_gpu(report, subject) : explain_process(report, subject);
}

std::string_view heading(const std::string& topic) {
  static constexpr auto kHeadings =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"group", "together with"},
                                                                    {"origin", "where it comes from"},
                                                                    {"account", "where the memory went"},
                                                                    {"explanations", "what may explain the remainder"},
                                                                    {"reset", "before a reset"},
                                                                    {"frees", "what would free it"},
                                                                    {"does-not-free", "what would not"}});
  const auto* at = std::find_if(kHeadings.begin(), kHeadings.end(), [&](const auto& h) { return h.first == topic; });
  return at == kHeadings.end() ? static_cast<std::string_view>(topic) : at->second;
}

std::string answer_text(const std::vector<WhyPart>& parts, const RenderStyle& style) {
  std::string text;
  for (const auto& part : parts) {
    std::size_t first = 0;
    if (part.topic != "subject") {
      std::string head(heading(part.topic));
      if (part.topic == "standing") head += ": " + part.sentences.at(first++);
      text += painted(head, Paint::strong, style) + '\n';
    }
    for (std::size_t i = first; i < part.sentences.size(); ++i) {
      const std::string sentence = printable(part.sentences[i], 1024);
      text += part.topic == "subject" ? wrap(sentence, 0, style.width) : bullet(sentence, 2, style.width);
    }
  }
  return text;
}

Json parts_json(const std::vector<WhyPart>& parts) {
  return list_of(parts, [](const WhyPart& part) {
    Json object;
    object["topic"] = safe(part.topic);
    object["sentences"] = texts(part.sentences);
    return object;
  });
}

Json process_json(const WhyReport& report, const WhySubject& subject) {
  const pid_t pid = subject.process->pid;
  const auto* process = report.snapshot.find(pid);
  if (process != nullptr && !subject.process->matches(process->key)) process = nullptr;
  const auto* holder = process != nullptr ? report.attribution.find(pid) : nullptr;
  Json object;
  object["pid"] = pid;
  object["key"] = process != nullptr ? Json(to_string(process->key)) : Json(nullptr);
  object["seen"] = process != nullptr;
  object["charged"] = std::any_of(report.snapshot.charges.begin(), report.snapshot.charges.end(),
                                  [&](const DriverCharge& charge) { return charge.pid == pid; });
  object["holder"] = holder != nullptr ? holder_json(*holder, report.snapshot) : Json(nullptr);
  object["group"] = nullptr;
  for (const auto& group : report.attribution.groups) {
    const bool is_relative = process != nullptr && std::any_of(group.relatives.begin(), group.relatives.end(),
                                                               [&](const Relative& r) { return r.key.pid == pid; });
    if (is_relative || (holder != nullptr && group.id == holder->group))
      object["group"] = group_json(group, report.snapshot);
  }
  return object;
}

Json gpu_subject_json(const WhyReport& report, const WhySubject& subject) {
  Json object;
  object["gpu"] = nullptr;
  for (const auto& gpu : report.snapshot.gpus)
    for (const auto& account : report.attribution.accounts) {
      if (gpu.index != *subject.gpu || account.index != *subject.gpu) continue;
      object["gpu"] = gpu_json(gpu, account);
      put(object, "recovery_action", gpu.recovery_action);
    }
  return object;
}

}  // namespace

std::string render_why_text(const WhyReport& report, const RenderStyle& style) {
  std::string text = report.source == Source::recording ? render_replay_line(report.snapshot, style) : "";
  bool first = true;
  for (const auto& subject : report.subjects) {
    if (!std::exchange(first, false)) text += '\n';
    text += answer_text(explain(report, subject), style);
  }
  return text;
}

std::string render_why_json(const WhyReport& report) {
  Json object;
  object["schema"] = "vacate.why/1";
  object["version"] = safe(report.version);
  object["time"] = format_rfc3339(report.snapshot.time);
  object["driver"] = driver_json(report.snapshot.driver);
  object["visibility"] = visibility_json(report.snapshot.visibility);
  object["subjects"] = list_of(report.subjects, [&](const WhySubject& subject) {
    Json entry = subject.gpu ? gpu_subject_json(report, subject) : process_json(report, subject);
    entry["explained"] = parts_json(explain(report, subject));
    entry["usual_plan"] = plan_json(subject.usual);
    entry["asked_plan"] = plan_json(subject.asked);
    return entry;
  });
  if (report.source == Source::recording) object["replay"] = true;
  return one_line(object);
}

}  // namespace vacate
