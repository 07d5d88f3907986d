// SPDX-License-Identifier: Apache-2.0
#include "gpu/sample_codec.h"

#include <algorithm>

#include "model/process.h"
#include "os/frame.h"

namespace vacate {
namespace {

constexpr std::uint32_t kMagic =
    0x76616331;  // "vac1": guards against bytes of a library that writes where it should not
constexpr std::size_t kMostText = 4096;
constexpr unsigned kMostGpus = 4096;
constexpr unsigned kMostInstances = 64;
constexpr std::uint8_t kKnown = 255;

template <class E>
void put_enum(FrameWriter& out, E value) {
  out.number(static_cast<std::uint8_t>(value));
}

template <class E>
E take_enum(FrameReader& in, E last, bool& valid) {
  const auto value = in.number<std::uint8_t>();
  valid = valid && value <= static_cast<std::uint8_t>(last);
  return valid ? static_cast<E>(value) : E{};
}

template <class T, class Value>
void put_reading(FrameWriter& out, const Reading<T>& reading, Value value_of) {
  out.number(reading.known() ? kKnown : static_cast<std::uint8_t>(reading.reason()));
  out.number(reading.known() ? static_cast<std::uint64_t>(value_of(*reading)) : std::uint64_t{0});
}

template <class T, class Make>
Reading<T> take_reading(FrameReader& in, bool& valid, Make make) {
  const auto tag = in.number<std::uint8_t>();
  const auto value = in.number<std::uint64_t>();
  if (tag == kKnown) return make(value);
  valid = valid && tag <= static_cast<std::uint8_t>(Unknown::failed);
  return valid ? static_cast<Unknown>(tag) : Unknown::failed;
}

std::uint64_t count_of(Bytes bytes) { return bytes.count; }
template <class T>
T as_is(T value) {
  return value;
}
Reading<Bytes> make_bytes(std::uint64_t value) { return Bytes{value}; }
Reading<bool> make_bool(std::uint64_t value) { return value != 0; }
Reading<std::uint32_t> make_number(std::uint64_t value) {
  if (value > 0xFFFFFFFFU) return Unknown::implausible;
  return static_cast<std::uint32_t>(value);
}

std::string take_text(FrameReader& in, bool& valid) {
  const auto text = in.text();
  valid = valid && text.size() <= kMostText;
  return std::string(text.substr(0, kMostText));
}

void put_gpu(FrameWriter& out, const Gpu& gpu) {
  out.text(gpu.uuid);
  out.text(gpu.pci);
  out.text(gpu.name);
  put_enum(out, gpu.state);
  put_reading(out, gpu.minor, as_is<std::uint32_t>);
  for (const auto* amount : {&gpu.memory.total, &gpu.memory.used, &gpu.memory.reserved, &gpu.memory.free})
    put_reading(out, *amount, count_of);
  put_reading(out, gpu.persistence, as_is<bool>);
  put_reading(out, gpu.recovery_action, as_is<std::uint32_t>);
  put_reading(out, gpu.utilization, as_is<std::uint32_t>);
  put_reading(out, gpu.mig, as_is<bool>);
  out.number(static_cast<std::uint8_t>(gpu.unified_memory));
}

Gpu take_gpu(FrameReader& in, unsigned index, bool& valid) {
  Gpu gpu;
  gpu.index = index;
  gpu.uuid = take_text(in, valid);
  gpu.pci = take_text(in, valid);
  gpu.name = take_text(in, valid);
  gpu.state = take_enum(in, GpuState::no_answer, valid);
  gpu.minor = take_reading<std::uint32_t>(in, valid, make_number);
  for (auto* amount : {&gpu.memory.total, &gpu.memory.used, &gpu.memory.reserved, &gpu.memory.free})
    *amount = take_reading<Bytes>(in, valid, make_bytes);
  gpu.persistence = take_reading<bool>(in, valid, make_bool);
  gpu.recovery_action = take_reading<std::uint32_t>(in, valid, make_number);
  gpu.utilization = take_reading<std::uint32_t>(in, valid, make_number);
  gpu.mig = take_reading<bool>(in, valid, make_bool);
  const auto unified = in.number<std::uint8_t>();
  gpu.unified_memory = unified == 1;
  valid = valid && unified <= 1;
  return gpu;
}

void put_charge(FrameWriter& out, const DriverCharge& charge) {
  out.number(static_cast<std::uint32_t>(charge.gpu));
  out.number(charge.pid);
  put_reading(out, charge.memory, count_of);
  std::uint8_t kinds = 0;
  for (const auto kind : charge.kinds) kinds = static_cast<std::uint8_t>(kinds | 1U << static_cast<unsigned>(kind));
  out.number(kinds);
  out.number(static_cast<std::uint32_t>(charge.instances.size()));
  for (const auto instance : charge.instances) out.number(instance);
}

DriverCharge take_charge(FrameReader& in, std::size_t gpus, bool& valid) {
  DriverCharge charge;
  charge.gpu = in.number<std::uint32_t>();
  charge.pid = in.number<std::int32_t>();
  charge.memory = take_reading<Bytes>(in, valid, make_bytes);
  const auto kinds = in.number<std::uint8_t>();
  for (const auto kind : {ContextKind::compute, ContextKind::graphics, ContextKind::mps})
    if ((kinds & 1U << static_cast<unsigned>(kind)) != 0) charge.kinds.push_back(kind);
  const auto instances = in.count(sizeof(std::uint32_t));
  valid = valid && instances <= kMostInstances;
  for (unsigned i = 0; valid && i < instances; ++i) charge.instances.push_back(in.number<std::uint32_t>());
  valid = valid && std::is_sorted(charge.instances.begin(), charge.instances.end());
  valid = valid && charge.gpu < gpus && charge.pid > 0 && charge.pid <= kLargestPid && kinds < 8;
  return charge;
}

}  // namespace

std::string encode_sample(const DriverSample& sample) {
  FrameWriter out;
  out.number(kMagic);
  out.text(sample.driver.version);
  put_enum(out, sample.driver.state);
  out.text(sample.driver.detail);
  out.number(static_cast<std::uint32_t>(sample.gpus.size()));
  for (const auto& gpu : sample.gpus) put_gpu(out, gpu);
  out.number(static_cast<std::uint32_t>(sample.charges.size()));
  for (const auto& charge : sample.charges) put_charge(out, charge);
  out.number(static_cast<std::uint32_t>(sample.blind_spots.size()));
  for (const auto& spot : sample.blind_spots) {
    out.text(spot.code);
    out.text(spot.detail);
  }
  return out.bytes();
}

Result<DriverSample> decode_sample(std::string_view bytes) {
  static constexpr std::size_t kSmallestGpu = 16, kSmallestCharge = 22, kSmallestSpot = 8;
  DriverSample sample;
  FrameReader in(bytes);
  bool valid = in.number<std::uint32_t>() == kMagic;
  sample.driver.version = take_text(in, valid);
  sample.driver.state = take_enum(in, DriverState::no_answer, valid);
  sample.driver.detail = take_text(in, valid);
  const auto gpus = in.count(kSmallestGpu);
  valid = valid && gpus <= kMostGpus;
  for (unsigned i = 0; valid && i < gpus; ++i) sample.gpus.push_back(take_gpu(in, i, valid));
  const auto charges = valid ? in.count(kSmallestCharge) : 0;
  for (unsigned i = 0; valid && i < charges; ++i) sample.charges.push_back(take_charge(in, sample.gpus.size(), valid));
  const auto spots = valid ? in.count(kSmallestSpot) : 0;
  for (unsigned i = 0; valid && i < spots; ++i) {
    auto code = take_text(in, valid);
    sample.blind_spots.push_back(BlindSpot{std::move(code), take_text(in, valid)});
  }
  if (!valid || !in.complete()) return Error{ErrorCode::malformed, "the driver child sent bytes that make no sense"};
  return sample;
}

}  // namespace vacate
