// SPDX-License-Identifier: Apache-2.0
#include "app/select.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

std::vector<Gpu> gpus() {
  std::vector<Gpu> list(3);
  for (unsigned i = 0; i < 3; ++i) list[i].index = i;
  list[0].uuid = "GPU-aa11";
  list[1].uuid = "GPU-aa22";
  list[2].uuid = "GPU-bb33";
  list[0].pci = "00000000:65:00.0";
  list[1].pci = "00000000:CA:00.0";
  list[2].pci = "00010000:65:00.0";
  return list;
}

TEST(ResolveGpus, TakesEveryUsualSpelling) {
  const struct {
    std::vector<std::string> words;
    std::vector<unsigned> indices;
  } kTable[] = {
      {{"0"}, {0}},     {{"2", "0", "2"}, {0, 2}},   {{"all"}, {0, 1, 2}},    {{"GPU-bb33"}, {2}},
      {{"gpu-b"}, {2}}, {{"00000000:65:00.0"}, {0}}, {{"0000:65:00.0"}, {0}}, {{"ca:00.0"}, {1}},
      {{"CA:00"}, {1}}, {{"00010000:65:00.0"}, {2}},
  };
  for (const auto& row : kTable) {
    const auto result = resolve_gpus(row.words, gpus());
    ASSERT_TRUE(result.has_value()) << row.words.front();
    EXPECT_EQ(*result, row.indices) << row.words.front();
  }
}

TEST(ResolveGpus, SaysWhichWordAndWhatThereIs) {
  for (const auto* word : {"3", "GPU-cc", "-1", "66:00.0", "x", "", "GPU-"}) {
    const auto result = resolve_gpus({word}, gpus());
    ASSERT_FALSE(result.has_value()) << word;
    EXPECT_EQ(result.error().code, ErrorCode::malformed);
    EXPECT_NE(result.error().message.find(word), std::string::npos);
  }
  EXPECT_NE(resolve_gpus({"9"}, gpus()).error().message.find("0, 1, 2"), std::string::npos);
  EXPECT_NE(resolve_gpus({"GPU-aa"}, gpus()).error().message.find("several"), std::string::npos);
  EXPECT_TRUE(resolve_gpus({"all"}, {})->empty());
}

TEST(Narrowed, KeepsOnlyWhatIsSelected) {
  Snapshot snapshot;
  Attribution attribution;
  for (unsigned i = 0; i < 2; ++i) {
    Process process;
    process.key.pid = static_cast<pid_t>(10 + i);
    process.uid = uid_t{i};
    snapshot.processes.push_back(process);
    Holder holder;
    holder.key = process.key;
    holder.gpus.push_back({i, mebibytes(1), true, {}});
    attribution.holders.push_back(holder);
    GpuAccount account;
    account.index = i;
    account.holders = {process.key.pid};
    attribution.accounts.push_back(account);
    attribution.groups.push_back({i + 1, {process.key.pid}, {}, std::nullopt, "", Standing::live});
  }
  const auto by_gpu = narrowed(attribution, snapshot, {{1}, false, {}, {}});
  ASSERT_EQ(by_gpu.holders.size(), 1U);
  EXPECT_EQ(by_gpu.holders[0].key.pid, 11);
  EXPECT_EQ(by_gpu.accounts.size(), 1U);
  EXPECT_EQ(by_gpu.groups.size(), 1U);
  const auto by_user = narrowed(attribution, snapshot, {{}, true, {}, {0}});
  ASSERT_EQ(by_user.holders.size(), 1U);
  EXPECT_EQ(by_user.holders[0].key.pid, 10);
  EXPECT_EQ(by_user.accounts.size(), 2U);
  EXPECT_TRUE(by_user.accounts[1].holders.empty());
  EXPECT_EQ(narrowed(attribution, snapshot, {{}, true, {{10, std::nullopt}}, {1}}).holders.size(), 0U);
}

}  // namespace
}  // namespace vacate
