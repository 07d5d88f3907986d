// SPDX-License-Identifier: Apache-2.0
// The files of a unit as the system's service manager would read them: the unit's own one, its templates, the names
// that link to it, and its drop-ins in their order (systemd.unit(5); compared with `systemctl cat` on 252).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/unit_lint.h"
#include "unit/unit_name.h"

namespace vacate {

struct FoundUnit {
  std::string name;                 ///< "llm.service": what links lead to
  std::vector<UnitSource> sources;  ///< in the order in which systemd reads them; empty where it is masked
  std::string masked_by;
  std::vector<std::string> unread;  ///< drop-ins that could not be read, each with the reason
};

/// The unit of this name. gone: no folder of units has it. malformed: its file cannot be read as one.
[[nodiscard]] Result<FoundUnit> find_unit(const ServiceName& name);

/// The file at `path` with the drop-ins beside it (`path`.d and its kin). malformed: it cannot be read.
[[nodiscard]] Result<FoundUnit> read_unit_at(const std::string& path);

}  // namespace vacate
