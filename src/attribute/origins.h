// SPDX-License-Identifier: Apache-2.0
// Where the processes of a snapshot come from, by their control groups, and which process is the first of a container.
// A control group joins nobody to a group (design.md, Standing); testimony.h is about what it tells.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attribute/census.h"
#include "model/origin.h"

namespace vacate {

class Origins {
 public:
  explicit Origins(const Census& census);

  /// Of a living process whose control group was read; nothing known for anybody else.
  [[nodiscard]] const Origin& of(pid_t pid) const noexcept;
  /// The living first process of the container that Origin::container names: pid 1 of its pid namespace, or, where it
  /// has none of its own, the oldest process that a container runtime started. nullptr: it was not seen.
  [[nodiscard]] const Process* first_of_container(const std::string& container) const;

 private:
  [[nodiscard]] bool is_below_same_container(const Process& process, const std::string& container) const noexcept;

  const Census* census_;
  std::map<pid_t, Origin> origins_;
  std::map<std::string, std::vector<const Process*>> by_container_;
};

}  // namespace vacate
