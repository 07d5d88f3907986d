// SPDX-License-Identifier: Apache-2.0
// NVML's process lists from a library that writes rows of any length under any of the three names: no pid may come out
// that no row had, and a list as the eras wrote it comes out whole.
#include <algorithm>
#include <vector>

#include "fuzz.h"
#include "gpu/nvml_processes.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

constexpr std::uint64_t kMostMemory = std::uint64_t{97887} << 20U;
constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;

struct Row {
  std::uint32_t pid = 0;
  std::uint64_t memory = 0;
  std::uint32_t gpu_instance = kNoInstance, compute_instance = kNoInstance;
};

/// One of the three functions of a library.
struct Call {
  bool there = false;
  nvml::Return code = nvml::kSuccess;
  std::size_t stride = 16;
};

/// The library as the bytes of the fuzzer make it.
struct Vendor {
  Call v1, v2, v3;
  std::vector<Row> rows;
  bool clears_first = false;    ///< the whole array, before it writes rows
  bool leaves_ids = false;      ///< of a GPU that is not split
  bool leaves_padding = false;  ///< the four bytes between pid and memory
  unsigned grows = 0;           ///< rows that the list has more at each call
  unsigned calls = 0;
};
Vendor* vendor = nullptr;

template <class T>
void put(unsigned char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void write_row(const Row& row, std::size_t stride, unsigned char* at) {
  if (!vendor->leaves_padding) std::memset(at, 0, 16);
  put(at, row.pid);
  put(at + 8, row.memory);
  if (stride < 24) return;
  if (!vendor->leaves_ids) {
    put(at + 16, row.gpu_instance);
    put(at + 20, row.compute_instance);
  }
  if (stride > 24) std::memset(at + 24, 0, stride - 24);
}

nvml::Return answer(const Call& call, unsigned* count, void* out) {
  if (call.code != nvml::kSuccess) return call.code;
  const unsigned capacity = *count;
  const auto needed = static_cast<unsigned>(vendor->rows.size()) + vendor->grows * std::min(vendor->calls, 3U);
  ++vendor->calls;
  if (needed > capacity) {
    *count = needed;
    return nvml::kInsufficientSize;
  }
  *count = static_cast<unsigned>(vendor->rows.size());
  auto* bytes = static_cast<unsigned char*>(out);
  // What is longer than any row known would be written past the end: no caller can guard against that.
  const std::size_t room = capacity * nvml::kStride535 + 64;
  if (vendor->clears_first && capacity * call.stride <= room) std::memset(bytes, 0, capacity * call.stride);
  for (std::size_t i = 0; i < vendor->rows.size() && (i + 1) * call.stride <= room; ++i)
    write_row(vendor->rows[i], call.stride, bytes + i * call.stride);
  return nvml::kSuccess;
}

nvml::Return answer_v1(nvml::Device, unsigned* count, void* out) { return answer(vendor->v1, count, out); }
nvml::Return answer_v2(nvml::Device, unsigned* count, void* out) { return answer(vendor->v2, count, out); }
nvml::Return answer_v3(nvml::Device, unsigned* count, void* out) { return answer(vendor->v3, count, out); }

Call take_call(Input& input) {
  static constexpr std::size_t kStrides[] = {16, 24, 32, 40, 48};
  static constexpr nvml::Return kCodes[] = {nvml::kSuccess, nvml::kSuccess,     nvml::kFunctionNotFound,
                                            nvml::kUnknown, nvml::kGpuIsLost,   nvml::kArgumentVersionMismatch,
                                            nvml::kSuccess, nvml::kNoPermission};
  Call call;
  call.there = !input.flag();
  call.code = kCodes[input.number<std::uint8_t>() % 8];
  call.stride = kStrides[input.number<std::uint8_t>() % 5];
  return call;
}

Row take_row(Input& input) {
  Row row;
  // No kernel gives a pid above this; the bytes of a buffer that nobody wrote would make one.
  row.pid = input.number<std::uint32_t>() & 0x7FFFFFFFU;
  row.memory = input.flag() ? input.number<std::uint64_t>() % (kMostMemory + 1) : nvml::kNotAvailable;
  if (input.flag()) row.gpu_instance = input.number<std::uint8_t>() % 64;
  if (input.flag()) row.compute_instance = input.number<std::uint8_t>() % 64;
  return row;
}

Vendor take_vendor(Input& input) {
  Vendor made;
  made.v2 = take_call(input);
  made.v3 = take_call(input);
  made.v1 = take_call(input);
  const auto habits = input.number<std::uint8_t>();
  made.clears_first = (habits & 1U) != 0;
  made.leaves_ids = (habits & 2U) != 0;
  made.leaves_padding = (habits & 4U) != 0;
  made.grows = input.number<std::uint8_t>();
  const auto repeats = input.number<std::uint8_t>();
  while (!input.empty() && made.rows.size() < 1000) made.rows.push_back(take_row(input));
  // Long lists from short inputs.
  const auto once = made.rows.size();
  for (std::size_t i = 0; i < once * repeats && made.rows.size() < 1000; ++i) {
    made.rows.push_back(made.rows[i % once]);
    made.rows.back().pid += static_cast<std::uint32_t>(i);
  }
  return made;
}

bool is_row(const nvml::ProcessRow& row) {
  return std::any_of(vendor->rows.begin(), vendor->rows.end(),
                     [&](const Row& known) { return known.pid == row.pid && known.memory == row.memory; });
}

/// As the eras wrote them: every name with the length of row that it had then.
bool is_an_era() {
  const auto as = [](const Call& call, std::size_t stride) { return !call.there || call.stride == stride; };
  return as(vendor->v1, 16) && as(vendor->v2, 24) && vendor->v3.stride <= 32 && !vendor->clears_first;
}

const Call* first_that_answers() {
  for (const Call* call : {&vendor->v2, &vendor->v3, &vendor->v1}) {
    if (call->there && !nvml::is_fallback(call->code)) return call;
  }
  return nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Vendor made = take_vendor(input);
  vendor = &made;
  nvml::ProcessCalls calls;
  if (made.v1.there) calls.v1 = answer_v1;
  if (made.v2.there) calls.v2 = answer_v2;
  if (made.v3.there) calls.v3 = answer_v3;
  const auto list = nvml::sample_processes(calls, nullptr, kMostMemory);
  require(!list.malformed || list.rows.empty(), "rows: a list that makes no sense gives nobody");
  require(list.result == nvml::kSuccess || list.rows.empty(), "rows: a call that fails gives nobody");
  for (const auto& row : list.rows) require(is_row(row), "rows: nobody comes out who is in no row");
  const auto* answering = first_that_answers();
  if (is_an_era() && answering != nullptr && answering->code == nvml::kSuccess) {
    require(!list.malformed && list.rows.size() == made.rows.size(), "rows: a list as the eras wrote it is whole");
  }
  return 0;
}
