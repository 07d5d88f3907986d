// SPDX-License-Identifier: Apache-2.0
// Texts into buffers of callers, with the library's manners.
#pragma once

#include <cstring>

#include "lab/nvml/abi.h"

namespace lab::nvml {

/// Copies `text` with its terminator, or says that `length` is too small.
inline Return give_text(const char* text, char* buffer, unsigned length) {
  if (buffer == nullptr) return Return::invalid_argument;
  const std::size_t needed = std::strlen(text) + 1;
  if (needed > length) return Return::insufficient_size;
  std::memcpy(buffer, text, needed);
  return Return::success;
}

}  // namespace lab::nvml
