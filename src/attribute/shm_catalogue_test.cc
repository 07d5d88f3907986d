// SPDX-License-Identifier: Apache-2.0
#include "attribute/shm_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vacate {
namespace {

using ::testing::ElementsAre;
using T = ShmTreatment;

struct NameRow {
  std::string name;
  std::string family;  ///< empty: unknown
  T treatment = T::removable;
  std::optional<pid_t> creator = std::nullopt;
  std::string set = {};
};

TEST(ShmCatalogue, KnowsEveryFormOfTheReports) {
  for (const NameRow& row : std::vector<NameRow>{
           {"psm_0a1b2c3d", "python"},
           {"wnsm_1a2b", "python", T::listed_only},
           {"sem.mp-8x3kq2zz", "python"},
           {"sem.mp-_x3kq2z_", "python"},
           {"pym-4711-k3j2h1g0", "python", T::removable, 4711},
           {"sem.loky-424242-ab12cd34", "loky", T::removable, 424242},
           {"joblib_memmapping_folder_4711_ab12_cd34", "joblib", T::removable, 4711},
           {"joblib_memmapping_folder_4711_ab12_cd34/1-2.pkl", "joblib", T::removable, 4711},
           {"torch_4711_0", "torch", T::removable, 4711},
           {"torch_4711_3735928559_12", "torch", T::removable, 4711},
           {"nccl-Xq7rT0", "nccl"},
           {"nccl-shm-recv-ab12cd34ef-0-1-2", "nccl"},
           {"cuda.shm.3e9.52f2.1", "cuda", T::removable, 0x52f2},
           {"cuda.shm.0.52.1", "cuda", T::removable, 82},
           {"mps.shm.1000.77", "mps", T::listed_only, 77},
           {"vllm_offload_11111111-2222-4333-8444-555555555555.mmap", "vllm"},
           {"vllm_offload_my.engine.mmap", "vllm"},
           {"VLLM_OBJECT_STORAGE_SHM_BUFFER", "vllm"},
           {"vllm-cache-1", "vllm", T::listed_only},
           {"vllm_whatever", "vllm", T::listed_only},
           {"vllm_offload_my notes.mmap", "vllm", T::listed_only},
           {"sgl_shm_mm_4711_deadbeef", "sglang", T::removable, 4711},
           {"sgl_shm_xputensor_4711_deadbeef", "sglang", T::removable, 4711},
           {"multi_tokenizer_args_4711", "sglang", T::removable, 4711},
           {"sglang_loads_x.shm", "sglang"},
           {"smg-tokenspeed-1", "sglang"},
           {"triton_python_backend_shm_region_11111111-2222-4333-8444-555555555555", "triton"},
           {"triton_python_backend_shm_region_17", "triton"},
           {"plasmaAb12Cd", "ray"},
           {"vader_segment.node7.3fa20001.2", "openmpi", T::removable, std::nullopt, "vader node7 3fa20001"},
           {"vader_segment.node7.example.org.3fa20001.2", "openmpi", T::removable, std::nullopt,
            "vader node7.example.org 3fa20001"},
           {"sm_segment.node7.1000.3fa20001.0", "openmpi", T::removable, std::nullopt, "sm node7 1000 3fa20001"},
           {"open_mpi.0000", "openmpi"},
           {"ucx_shm_posix_5f3a2b", "ucx"},
           {"psm2_shm.1000000a0b10", "psm"},
           {"psm3_shm.1000.abc", "psm", T::removable, std::nullopt, "psm3"},
           {"psm3_nic_affinity_shm", "psm", T::removable, std::nullopt, "psm3"},
           {"sem.psm3_nic_affinity_sem", "psm", T::removable, std::nullopt, "psm3"},
           {"nvshmem-shm-1", "nvshmem"},
           {"hsakmt_shared_mem", "rocm", T::never},
           {"sem.hsakmt_semaphore", "rocm", T::never},
           {"pulse-shm-3141592653", "pulseaudio", T::never},
           {"mono.4321", "mono", T::never, 4321},
           {"PostgreSQL.1234567890", "postgresql", T::never},
           {".com.google.Chrome.aB3dE9", "chrome", T::never},
           {".org.chromium.Chromium.x", "chrome", T::never},
           {"lttng-ust-wait-8", "lttng", T::never},
           {"wayland-0", "wayland", T::never},
       }) {
    const auto name = recognise_shm(row.name);
    ASSERT_TRUE(name) << row.name;
    EXPECT_EQ(name->family, row.family) << row.name;
    EXPECT_EQ(name->treatment, row.treatment) << row.name;
    EXPECT_EQ(name->creator, row.creator) << row.name;
    EXPECT_EQ(name->set, row.set) << row.name;
  }
}

TEST(ShmCatalogue, WhatOnlyLooksAlikeIsUnknown) {
  for (const std::string name : {"psm_0A1B2C3D",
                                 "psm_0a1b2c3D",
                                 "sem.mp-ABCDEFGH",
                                 "sem.loky-4711-abc",
                                 "pym-4711-ABCDEFGH",
                                 "nccl-a_cdef",
                                 "plasma_cache",
                                 "sglang_loads_of_data.csv",
                                 "nvshmem-shm-keep me",
                                 "psm2_shm.",
                                 "psm2_shm.\xc3(",
                                 "torch_0_1",
                                 "torch_04711_1",
                                 "torch_4194305_1",
                                 "torch_99999999999_0",
                                 "cuda.shm.0.0.1",
                                 "cuda.shm.0.400001.1",
                                 "joblib_memmapping_folder_4711_a_b/my_thesis.odt",
                                 "joblib_memmapping_folder_4711_a_b/.pkl",
                                 "psm_0a1b2c3d/1.pkl",
                                 "psm_0a1b2c3",
                                 "psm_0a1b2c3d4",
                                 "psm_0a1b2c3g",
                                 "my_psm_0a1b2c3d",
                                 "psm_0a1b2c3d.bak",
                                 "psm_",
                                 "sem.mp-short",
                                 "sem.mp-UPPER-12",
                                 "torch_",
                                 "torch_x_1",
                                 "torch_1_",
                                 "nccl-",
                                 "nccl-12345",
                                 "nccl-1234567",
                                 "cuda.shm.xyz.1.1",

                                 "triton_python_backend_shm_region_",
                                 "triton_python_backend_shm_region_1-2",
                                 "plasma12345",
                                 "vader_segment.node",
                                 "sm_segment.node.x.1.1",
                                 "open_mpi.00000",
                                 "lmcache_pool",
                                 "my_feature_store",
                                 "mono.x",
                                 "",
                                 "psm_0a1b2c3d\n",
                                 "\x1b[31mpsm_0a1b2c3d"})
    EXPECT_FALSE(recognise_shm(name)) << name;
}

TEST(ShmCatalogue, SaysWhatANameEncodes) {
  EXPECT_THAT(recognise_shm("cuda.shm.3e9.52f2.1")->encodes, ElementsAre("uid 1001", "creator pid 21234"));
  EXPECT_THAT(recognise_shm("sm_segment.node7.1000.3fa20001.0")->encodes,
              ElementsAre("host node7", "uid 1000", "job 3fa20001", "rank 0"));
  EXPECT_THAT(recognise_shm("psm_0a1b2c3d")->encodes, ElementsAre());
  EXPECT_EQ(recognise_shm("torch_4194304_0")->creator, 4194304);
}

TEST(ShmCatalogue, WhatIsNeverTouchedIsNotTouchedInAFolderEither) {
  const auto name = recognise_shm("joblib_memmapping_folder_4711_a_b/hsakmt_shared_mem");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->treatment, T::never);
  EXPECT_TRUE(recognise_shm("joblib_memmapping_folder_4711_a_b")->is_folder);
  EXPECT_FALSE(recognise_shm("joblib_memmapping_folder_4711_a_b/1.pkl")->is_folder);
}

TEST(ShmCatalogue, HugePagesAreAListOfTheirOwn) {
  EXPECT_EQ(recognise_huge_page_file("rtemap_12")->family, "dpdk");
  EXPECT_EQ(recognise_huge_page_file("spdk_pid4711map_0")->creator, 4711);
  EXPECT_EQ(recognise_huge_page_file("appmap_3")->treatment, T::never);
  EXPECT_FALSE(recognise_huge_page_file("psm_0a1b2c3d"));
  EXPECT_FALSE(recognise_shm("rtemap_12"));
}

TEST(ShmCatalogue, AHostileNameCostsNoMoreThanItsLength) {
  const std::string dots(255, '.');
  EXPECT_FALSE(recognise_shm("vader_segment." + dots));
  EXPECT_FALSE(recognise_shm("sm_segment." + std::string(240, '1') + "."));
}

TEST(ShmCatalogue, FamiliesAreSortedAndNamedOnce) {
  const auto families = shm_families();
  EXPECT_TRUE(std::is_sorted(families.begin(), families.end()));
  EXPECT_THAT(families, ::testing::IsSupersetOf({"python", "nccl", "torch", "openmpi", "psm"}));
}

}  // namespace
}  // namespace vacate
