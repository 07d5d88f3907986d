// SPDX-License-Identifier: Apache-2.0
// A planted fault: tests/fuzz/run expects the fuzzer to find it, to end with a failure and to keep the input. Were that
// not so, the silence of the other targets would mean nothing.
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = vacate::fuzz::as_text(data, size);
  vacate::fuzz::require(text.size() < 3 || text[0] != 'b' || text[1] != 'u' || text[2] != 'g', "nobody writes a bug");
  return 0;
}
