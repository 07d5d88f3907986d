// SPDX-License-Identifier: Apache-2.0
#include "lab/case/complaints.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace lab {

void Complaints::add(Position at, std::string text) {
  std::pair finding(at, vacate::printable(text));
  if (std::find(found_.begin(), found_.end(), finding) == found_.end()) found_.push_back(std::move(finding));
}

vacate::Error Complaints::error() const {
  auto sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.line, a.first.column) < std::pair(b.first.line, b.first.column);
  });
  std::string message;
  for (const auto& [at, text] : sorted) {
    if (!message.empty()) message += '\n';
    message += fmt::format("{}:{}:{}: {}", path_, at.line, at.column, text);
  }
  return {vacate::ErrorCode::malformed, std::move(message)};
}

}  // namespace lab
