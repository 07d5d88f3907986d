// SPDX-License-Identifier: Apache-2.0
// Rows of NVML's process lists. The length of a row depends on the driver and is not told (facts.md 1.6): it is
// measured by what the call wrote, and a list that makes no sense with it yields nothing. Parsing is pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/nvml_library.h"

namespace vacate::nvml {

struct ProcessRow {
  std::uint32_t pid = 0;
  std::uint64_t memory = 0;              ///< bytes as given; all ones: not available
  std::uint32_t instance = kNoInstance;  ///< GPU instance of MIG
  bool operator==(const ProcessRow&) const = default;
};

inline constexpr unsigned char kUnwritten = 0xA5;

/// What a call was given room for and what it says it gave.
struct RowCount {
  std::size_t given = 0;
  std::size_t capacity = 0;
};
/// Stride of rows written into a buffer that was all kUnwritten; 0 where what was written ends at no known row's end.
[[nodiscard]] std::size_t measure_stride(std::span<const unsigned char> buffer, RowCount rows) noexcept;
/// The rows, if they make sense with `stride`: instance ids all ones or small, memory not available or below
/// `most_memory`.
[[nodiscard]] std::optional<std::vector<ProcessRow>> parse_process_rows(std::span<const unsigned char> buffer,
                                                                        std::size_t count, std::size_t stride,
                                                                        std::uint64_t most_memory);

struct ProcessList {
  Return result = kNotSupported;
  bool malformed = false;  ///< the call succeeded and wrote rubbish
  std::vector<ProcessRow> rows;
};
/// Asks the version whose ABI is certain first: `_v2`, then `_v3` with its stride measured, then the first.
[[nodiscard]] ProcessList sample_processes(const ProcessCalls& calls, Device device, std::uint64_t most_memory);

}  // namespace vacate::nvml
