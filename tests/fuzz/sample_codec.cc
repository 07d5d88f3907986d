// SPDX-License-Identifier: Apache-2.0
// The answer of the driver child, which runs the vendor's code and is read like a stranger's.
#include "sample_laws.h"

using namespace vacate;
using namespace vacate::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto sample = decode_sample(as_text(data, size));
  if (!sample) {
    require(sample.error().code == ErrorCode::malformed, "sample: what cannot be decoded is malformed");
    return 0;
  }
  check_sample(*sample);
  return 0;
}
