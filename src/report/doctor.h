// SPDX-License-Identifier: Apache-2.0
// What `vacate doctor` says: one row a thing that vacate depends on, with what its absence costs and how to get it.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/doctor.h"
#include "model/scan_use.h"
#include "model/snapshot.h"
#include "report/render_style.h"

namespace vacate {

enum class Health { good, limited, missing, unknown };
[[nodiscard]] std::string_view describe(Health health) noexcept;

struct Check {
  std::string code;  ///< stable for scripts
  Health health = Health::unknown;
  std::string finding;
  std::string cost;    ///< what it costs; empty where all is well
  std::string remedy;  ///< how to get it; empty where nothing has to be done or can be
};

struct DoctorReport {
  std::string version;
  MachineFacts facts;
  Snapshot snapshot;
  ScanUse scan = {};
  std::string bpf_refused = {};   ///< why BPF cannot be used; empty: it can
  std::size_t policy_rules = 0;   ///< of the machine's own policy file
  std::string policy_error = {};  ///< why that file stops every command that reads it; empty: it does not
};

/// In the order of reading: rights, view, kernel, driver, supervisors, policy.
[[nodiscard]] std::vector<Check> examine(const DoctorReport& report);

[[nodiscard]] std::string render_doctor_text(const DoctorReport& report, const RenderStyle& style);
/// One JSON object and a line feed (vacate.doctor/1).
[[nodiscard]] std::string render_doctor_json(const DoctorReport& report);

}  // namespace vacate
