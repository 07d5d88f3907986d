// SPDX-License-Identifier: Apache-2.0
// Everything that vacate asks of NVML, answered with the fuzzer's bytes: codes, figures, texts without an end, lists. A
// whole sample comes of it that the driver child can send.
#include <algorithm>

#include "gpu/nvml_sample.h"
#include "gpu/proc_driver.h"
#include "sample_laws.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

Input* answers = nullptr;

nvml::Return code() {
  static constexpr nvml::Return kCodes[] = {2, 3, 4, 6, 7, 9, 10, 13, 15, 16, 18, 25, 999, -1};
  const auto byte = answers->number<std::uint8_t>();
  // Most calls succeed, or nothing else is ever asked; when the bytes are used up all do.
  return byte < 200 ? nvml::kSuccess : kCodes[byte % 14];
}

nvml::Return fill(char* text, unsigned length) {
  const auto bytes = answers->take(std::min<std::size_t>(length, answers->number<std::uint8_t>()));
  std::memcpy(text, bytes.data(), bytes.size());  // without an end, if it is as long as the buffer
  return code();
}

template <class T>
nvml::Return fill(T* value) {
  *value = answers->number<T>();
  return code();
}

nvml::Return init() { return code(); }
nvml::Return init_with_flags(unsigned) { return code(); }
nvml::Return shutdown() { return code(); }
const char* words(nvml::Return) { return answers->flag() ? nullptr : "words"; }
nvml::Return version(char* text, unsigned length) { return fill(text, length); }
nvml::Return count(unsigned* number) {
  *number = answers->number<std::uint8_t>() % 4;
  if (answers->number<std::uint8_t>() == 255) *number = ~0U;
  return code();
}
nvml::Return handle(unsigned, nvml::Device* device) {
  static int token = 0;
  *device = reinterpret_cast<nvml::Device>(&token);
  return code();
}
nvml::Return device_text(nvml::Device, char* text, unsigned length) { return fill(text, length); }
nvml::Return device_number(nvml::Device, unsigned* number) { return fill(number); }
nvml::Return pci(nvml::Device, nvml::PciInfo* info) { return fill(info); }
nvml::Return memory(nvml::Device, nvml::Memory* amounts) { return fill(amounts); }
nvml::Return memory_v2(nvml::Device, nvml::MemoryV2* amounts) { return fill(amounts); }
nvml::Return fields(nvml::Device, int, nvml::FieldValue* field) { return fill(field); }
nvml::Return processes(nvml::Device, unsigned* number, void* out) {
  const auto capacity = *number;
  const auto bytes = answers->take(answers->number<std::uint16_t>() % (std::size_t{capacity} * nvml::kStride535 + 64));
  std::memcpy(out, bytes.data(), bytes.size());
  *number = answers->flag() ? static_cast<unsigned>(bytes.size() / 24) : answers->number<std::uint32_t>();
  return code();
}

nvml::Library take_library() {
  const auto absent = answers->number<std::uint32_t>();
  unsigned bit = 0;
  const auto set = [&](auto& call, auto answer) {
    if (((absent >> bit++) & 1U) == 0) call = answer;
  };
  nvml::Library library;
  library.init_v2 = init;
  library.count = count;
  library.handle = handle;
  set(library.init_with_flags, init_with_flags);
  set(library.shutdown, shutdown);
  set(library.error_string, words);
  set(library.driver_version, version);
  set(library.uuid, device_text);
  set(library.name, device_text);
  set(library.minor, device_number);
  set(library.persistence, device_number);
  set(library.pci, pci);
  set(library.memory, memory);
  set(library.memory_v2, memory_v2);
  set(library.fields, fields);
  for (auto* calls : {&library.compute, &library.graphics, &library.mps}) {
    set(calls->v1, processes);
    set(calls->v2, processes);
    set(calls->v3, processes);
  }
  return library;
}

void check_gpu(const Gpu& gpu) {
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 50U;
  const auto& amounts = gpu.memory;
  for (const auto* amount : {&amounts.total, &amounts.used, &amounts.reserved, &amounts.free})
    require(!amount->known() || (*amount)->count <= kMost, "sample: no amount that no GPU has");
  require(!amounts.total || !amounts.used || *amounts.used <= *amounts.total, "sample: no more is used than there is");
  require(gpu.uuid.size() <= 96 && gpu.name.size() <= 96, "sample: texts as long as the buffers at most");
  require(gpu.pci.empty() || normalise_pci(gpu.pci) == gpu.pci, "sample: an address in the one form");
  require(!gpu.recovery_action || *gpu.recovery_action <= 255, "sample: an action is a small number");
}

void check_charges(const DriverSample& sample) {
  for (std::size_t i = 0; i < sample.charges.size(); ++i) {
    const auto& charge = sample.charges[i];
    require(!charge.kinds.empty() && std::is_sorted(charge.kinds.begin(), charge.kinds.end()), "sample: kinds sorted");
    if (i == 0) continue;
    const auto& before = sample.charges[i - 1];
    require(std::pair(before.gpu, before.pid) < std::pair(charge.gpu, charge.pid), "sample: one charge a GPU and pid");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  answers = &input;
  nvml::Sampler sampler(take_library());
  const auto sample = sampler.sample();
  require(sample.gpus.empty() || sample.driver.state == DriverState::ok, "sample: GPUs only of a driver that answers");
  for (const auto& gpu : sample.gpus) check_gpu(gpu);
  check_charges(sample);
  check_sample(sample);
  sampler.shut_down();
  return 0;
}
