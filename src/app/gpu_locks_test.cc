// SPDX-License-Identifier: Apache-2.0
#include "app/gpu_locks.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

Gpu gpu(unsigned index, const std::string& uuid, const std::string& pci = "00000000:65:00.0") {
  Gpu result;
  result.index = index;
  result.uuid = uuid;
  result.pci = pci;
  return result;
}

TEST(GpuLocks, AreNamedAfterTheGpuWhateverItsIndexIsHere) {
  EXPECT_EQ(lock_name_of(gpu(0, "GPU-8a-B2")), "gpu-8a-B2.lock");
  EXPECT_EQ(lock_name_of(gpu(3, "GPU-8a-B2")), "gpu-8a-B2.lock");
  EXPECT_EQ(lock_name_of(gpu(0, "")), "gpu-00000000_65_00_0.lock");
  EXPECT_EQ(lock_name_of(gpu(0, "GPU-../x y")), "gpu-___x_y.lock");
}

TEST(GpuLocks, OfNoGpuAreAllTaken) {
  auto locks = GpuLocks::open({});
  ASSERT_TRUE(locks.has_value());
  EXPECT_FALSE(locks->missing().has_value());
  const auto taken = locks->take("vacate wait", Deadline::at({}), -1);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(*taken, LockWait::taken);
}

}  // namespace
}  // namespace vacate
