// SPDX-License-Identifier: Apache-2.0
// Names of systemd's services and the folders in which their drop-ins lie (systemd.unit(5); measured on 252). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vacate {

/// "llm.service", "llm@0.service"; a template has an empty instance.
struct ServiceName {
  std::string prefix;                   ///< "llm"
  std::optional<std::string> instance;  ///< "0"
  [[nodiscard]] std::string full() const;
  [[nodiscard]] bool is_template() const noexcept { return instance && instance->empty(); }
  /// "llm@.service" of "llm@0.service"; nothing where there is none.
  [[nodiscard]] std::optional<std::string> template_name() const;
};

/// "llm" means llm.service. malformed: no name that systemd takes (letters, digits and :-_.\@, 255 bytes at most), or
/// that of another kind of unit.
[[nodiscard]] Result<ServiceName> parse_service_name(std::string_view word);

/// Folders of drop-ins below each folder of units, the first wins where two have a file of one name (each pair measured
/// on 252): "a-b@1.service.d", "a-b@.service.d", "a-.service.d", "a-@1.service.d", "a-@.service.d". "service.d", which
/// is last for all names of a unit, is not among them.
[[nodiscard]] std::vector<std::string> dropin_folders(const ServiceName& name);

}  // namespace vacate
