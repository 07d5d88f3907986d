// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_processes.h"

#include <algorithm>
#include <cstring>

namespace vacate::nvml {
namespace {

constexpr std::size_t kSlack = 64;  // beyond the longest rows: an overlong write shows and harms nothing
constexpr unsigned kFirstCapacity = 128;
constexpr unsigned kLargestCapacity = 1U << 20U;  // far beyond what RM lists; a count above it is rubbish
constexpr std::uint32_t kUnwrittenWord = 0xA5A5A5A5;

template <class T>
T load(const unsigned char* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool is_instance(std::uint32_t id) noexcept { return id == kNoInstance || id < kMostInstances || id == kUnwrittenWord; }

/// Rounded up so that an array that a library cleared, of rows of one length, never ends where rows of another length
/// may end. For that it is 2 modulo 3 (16 against 24 bytes), odd (16 against 32) and 3 modulo 4 (24 against 32).
constexpr unsigned telling_capacity(unsigned least) noexcept { return least + 11 - least % 12; }
static_assert(telling_capacity(131) == 131 && telling_capacity(132) == 143);

/// The length of rows to believe; 0: what was written is not what the call's name says.
std::size_t believed_stride(std::size_t known, std::span<const unsigned char> buffer, RowCount rows) noexcept {
  const std::size_t measured = measure_stride(buffer, rows);
  if (known == 0 || measured == 0) return measured;
  // The end of the only row may be left unwritten. With a cleared array behind it, it is shorter and not this
  // version's.
  const bool one_short = rows.given == 1 && measured < known && buffer[known] == kUnwritten;
  return measured == known || one_short ? known : 0;
}

/// One call with a buffer that grows until the list fits: it can grow between two calls (facts.md 1.6).
ProcessList ask(GetProcesses call, Device device, std::size_t known_stride, std::uint64_t most_memory) {
  ProcessList list;
  unsigned capacity = telling_capacity(kFirstCapacity);
  for (int attempt = 0; attempt < 8; ++attempt) {
    // Room for the longest row known: buffers sized for 24 bytes a row overflow on 535.
    std::vector<unsigned char> buffer(capacity * kStride535 + kSlack, kUnwritten);
    unsigned count = capacity;
    list.result = call(device, &count, buffer.data());
    if (list.result == kInsufficientSize) {
      capacity = telling_capacity(std::max(capacity * 2, count < kLargestCapacity / 2 ? count * 2 + 8 : 0));
      if (capacity > kLargestCapacity) break;
      continue;
    }
    if (list.result != kSuccess || count == 0) return list;
    const auto stride = believed_stride(known_stride, buffer, {count, capacity});
    auto rows = count <= capacity ? parse_process_rows(buffer, count, stride, most_memory) : std::nullopt;
    list.malformed = !rows;
    if (rows) list.rows = *std::move(rows);
    return list;
  }
  list.malformed = true;
  return list;
}

}  // namespace

std::size_t measure_stride(std::span<const unsigned char> buffer, RowCount rows) noexcept {
  const auto last = std::find_if(buffer.rbegin(), buffer.rend(), [](unsigned char byte) { return byte != kUnwritten; });
  const auto written = static_cast<std::size_t>(buffer.rend() - last);
  if (written == 0 || rows.given == 0 || rows.given > rows.capacity) return 0;
  // Shorter ones first: the last row may end behind pid and memory. A longer one that is mistaken for a shorter leaves
  // gaps, which show as pids that nobody wrote.
  for (const std::size_t stride : {kStrideV1, kStrideV2, kStride535}) {
    const std::size_t before_last = stride * (rows.given - 1);
    if (written >= before_last + kStrideV1 && written <= before_last + stride) return stride;
    // A library that clears the whole array first: the end of what it cleared tells the stride as well.
    if (written == stride * rows.capacity) return stride;
  }
  return 0;
}

std::optional<std::vector<ProcessRow>> parse_process_rows(std::span<const unsigned char> buffer, std::size_t count,
                                                          std::size_t stride, std::uint64_t most_memory) {
  if (stride < kStrideV1 || count > buffer.size() / stride) return std::nullopt;
  std::vector<ProcessRow> rows;
  rows.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned char* row = buffer.data() + i * stride;
    ProcessRow parsed{load<std::uint32_t>(row + kPidOffset), load<std::uint64_t>(row + kMemoryOffset), kNoInstance};
    // A pid may be rubbish by the driver's fault; one that nobody wrote, or the other two, only if the stride is wrong.
    if (parsed.pid == kUnwrittenWord) return std::nullopt;
    if (parsed.memory != kNotAvailable && parsed.memory > most_memory) return std::nullopt;
    if (stride >= kStrideV2 && (!is_instance(load<std::uint32_t>(row + kGpuInstanceOffset)) ||
                                !is_instance(load<std::uint32_t>(row + kComputeInstanceOffset))))
      return std::nullopt;
    if (stride >= kStrideV2) parsed.instance = load<std::uint32_t>(row + kGpuInstanceOffset);
    if (parsed.instance == kUnwrittenWord) parsed.instance = kNoInstance;
    rows.push_back(parsed);
  }
  return rows;
}

ProcessList sample_processes(const ProcessCalls& calls, Device device, std::uint64_t most_memory) {
  struct Version {
    GetProcesses call;
    std::size_t stride;  // 0: to be measured
  };
  ProcessList list;
  for (const auto& version : {Version{calls.v2, kStrideV2}, Version{calls.v3, 0}, Version{calls.v1, kStrideV1}}) {
    if (version.call == nullptr) continue;
    list = ask(version.call, device, version.stride, most_memory);
    if (!is_fallback(list.result) && !list.malformed) return list;
  }
  return list;
}

}  // namespace vacate::nvml
