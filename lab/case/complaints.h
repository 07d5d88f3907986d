// SPDX-License-Identifier: Apache-2.0
// Collects what is wrong with one case file, so that a person sees all of it at once: one line a finding, in the order
// of the file. It decides nothing about cases.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/case/case.h"

namespace lab {

class Complaints {
 public:
  explicit Complaints(std::string path) : path_(std::move(path)) {}

  /// Takes down one finding. The same one at the same place again (every copy of a counted entry has it) counts once.
  void add(Position at, std::string text);
  [[nodiscard]] bool empty() const noexcept { return found_.empty(); }
  /// malformed; one line `FILE:LINE:COLUMN: text` a finding, without a line end after the last.
  [[nodiscard]] vacate::Error error() const;

 private:
  std::string path_;
  std::vector<std::pair<Position, std::string>> found_;
};

}  // namespace lab
