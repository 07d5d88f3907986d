// SPDX-License-Identifier: Apache-2.0
// Laws of a DriverSample, wherever it comes from.
#pragma once

#include "fuzz.h"
#include "gpu/sample_codec.h"

namespace vacate::fuzz {

inline bool same_sample(const DriverSample& a, const DriverSample& b) {
  return a.driver == b.driver && a.gpus == b.gpus && a.charges == b.charges && a.blind_spots == b.blind_spots;
}

inline void check_sample(const DriverSample& sample) {
  for (std::size_t i = 0; i < sample.gpus.size(); ++i)
    require(sample.gpus[i].index == i, "sample: GPUs stand in the order of their indices");
  for (const auto& charge : sample.charges) {
    require(charge.gpu < sample.gpus.size(), "sample: a charge is on a GPU that is there");
    require(charge.pid > 0 && charge.pid <= kPidLimit, "sample: a charged pid is a pid");
  }
  const auto again = decode_sample(encode_sample(sample));
  require(again.has_value(), "sample: what is encoded can be decoded");
  require(same_sample(*again, sample), "sample: and is the same");
}

}  // namespace vacate::fuzz
