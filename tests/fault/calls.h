// SPDX-License-Identifier: Apache-2.0
// System calls that can fail on a healthy kernel, and how: what is plausible to go wrong, by errno(3) and the manual
// page of each. An error that would be a lie of the kernel ("no such process" about one that is there) is not among
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fault {

/// Where a call names what it works on.
enum class Names { nothing, descriptor, path, path_at };

struct CallKind {
  long number = -1;
  std::string_view name;
  Names names = Names::nothing;
  std::vector<int> errors;
};

[[nodiscard]] const std::vector<CallKind>& call_kinds();
/// nullptr: of no interest.
[[nodiscard]] const CallKind* find_kind(long number);
[[nodiscard]] const CallKind* find_kind(std::string_view name);

}  // namespace fault
