// SPDX-License-Identifier: Apache-2.0
#include "gpu/sample_codec.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

DriverSample sample() {
  DriverSample sample;
  sample.driver.state = DriverState::mismatch;
  sample.driver.version = "580.95.05";
  sample.driver.detail = "why";
  Gpu gpu;
  gpu.uuid = "GPU-a";
  gpu.pci = "00000000:65:00.0";
  gpu.name = "name";
  gpu.state = GpuState::reset_required;
  gpu.minor = 3U;
  gpu.memory = {Bytes{100}, Unknown::timed_out, Unknown::implausible, Bytes{1}};
  gpu.persistence = true;
  gpu.recovery_action = Unknown::not_supported;
  gpu.utilization = 97U;
  gpu.mig = true;
  gpu.unified_memory = true;
  sample.gpus = {gpu};
  sample.charges = {{0, 4711, Bytes{5}, {ContextKind::compute, ContextKind::mps}, {1, 7}}};
  sample.blind_spots = {{"list-truncated", "GPU 0"}};
  return sample;
}

TEST(SampleCodec, RoundTrips) {
  const auto before = sample();
  const auto after = decode_sample(encode_sample(before));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->driver.state, before.driver.state);
  EXPECT_EQ(after->driver.version, before.driver.version);
  EXPECT_EQ(after->driver.detail, before.driver.detail);
  EXPECT_EQ(after->gpus, before.gpus);
  EXPECT_EQ(after->charges, before.charges);
  EXPECT_EQ(after->blind_spots, before.blind_spots);
}

TEST(SampleCodec, EveryCutAndEveryTailIsMalformed) {
  const auto bytes = encode_sample(sample());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_sample(std::string_view(bytes).substr(0, length))) << length;
  EXPECT_FALSE(decode_sample(bytes + "x"));
}

TEST(SampleCodec, EveryFlippedByteIsReadOrRefused) {
  const auto bytes = encode_sample(sample());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
      auto broken = bytes;
      broken[at] = static_cast<char>(static_cast<unsigned char>(broken[at]) ^ flip);
      const auto read = decode_sample(broken);
      if (!read) continue;
      for (const auto& charge : read->charges) {
        EXPECT_GT(charge.pid, 0);
        EXPECT_LT(charge.gpu, read->gpus.size());
      }
    }
  }
}

}  // namespace
}  // namespace vacate
