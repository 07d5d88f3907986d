// SPDX-License-Identifier: Apache-2.0
#include "app/why.h"

#include <algorithm>

#include "app/select.h"
#include "app/version.h"
#include "attribute/protection.h"
#include "plan/narrowing.h"
#include "plan/plan_free.h"

namespace vacate {
namespace {

/// `usual`: what `free` does by default, whomever is asked about.
WhySubject about_process(const ProcessSelector& wanted, const WhyReport& report, const Plan& usual) {
  WhySubject subject;
  subject.process = wanted;
  const auto* process = report.snapshot.find(wanted.pid);
  if (process == nullptr || !wanted.matches(process->key)) return subject;
  if (report.attribution.find(wanted.pid) == nullptr) {
    subject.protection = protection_of(*process, report.snapshot);
    return subject;
  }
  subject.usual = usual;
  FreeRequest request;
  request.selection.pids = {wanted};
  if (auto plan = plan_free(report.snapshot, report.attribution, request)) {
    subject.asked = std::move(*plan);
  } else {
    subject.asked_why_not = plan.error().message;
  }
  return subject;
}

WhySubject about_gpu(unsigned index, const WhyReport& report) {
  WhySubject subject;
  subject.gpu = index;
  FreeRequest request;
  request.selection.all_gpus = false;
  request.selection.gpus = {index};
  subject.usual = plan_free(report.snapshot, report.attribution, request).value_or(Plan{});
  request.scope = Scope::all;
  subject.asked = plan_free(report.snapshot, report.attribution, request).value_or(Plan{});
  return subject;
}

}  // namespace

Result<WhyReport> report_why(Look look, const WhyQuestion& question) {
  WhyReport report{std::string(kVersion), std::move(look.scan.snapshot), std::move(look.attribution), {}};
  const auto gpus = resolve_gpus(question.gpu_words, report.snapshot.gpus);
  if (!gpus) return gpus.error();
  const auto usual = plan_free(report.snapshot, report.attribution, FreeRequest{}).value_or(Plan{});
  for (const auto& process : question.processes) report.subjects.push_back(about_process(process, report, usual));
  if (is_narrowing(question.narrowing)) {
    if (auto checked = check_narrowing(report.snapshot, question.narrowing); !checked) return checked.error();
    for (const auto& holder : report.attribution.holders)
      if (is_selected(holder, report.snapshot, question.narrowing))
        report.subjects.push_back(about_process({holder.key.pid, holder.key.start_ticks}, report, usual));
  }
  for (const auto index : *gpus) report.subjects.push_back(about_gpu(index, report));
  if (report.subjects.empty()) return Error{ErrorCode::malformed, "nobody who was named holds a GPU"};
  return report;
}

ExitCode exit_code_of(const WhyReport& report) noexcept { return exit_code_of(report.snapshot); }

}  // namespace vacate
