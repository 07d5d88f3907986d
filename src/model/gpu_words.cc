// SPDX-License-Identifier: Apache-2.0
// Which GPU a person means. Spellings differ between nvidia-smi, lspci and /proc (facts.md 1.3): compared as numbers.
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "model/device.h"

namespace vacate {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

/// domain, bus, device, function; nothing if `text` is no PCI address.
struct PciAddress {
  std::uint64_t domain = 0, bus = 0, device = 0, function = 0;
  bool operator==(const PciAddress&) const = default;
};

/// "00000000:65:00.0", "0000:65:00.0", "65:00.0", "65:00".
std::optional<PciAddress> parse_pci(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  const auto tail = split(parts.back(), '.');
  const auto domain = parts.size() == 3 ? parse_hex(parts[0]) : std::optional<std::uint64_t>(0);
  const auto bus = parse_hex(parts[parts.size() - 2]);
  const auto device = parse_hex(tail[0]);
  const auto function = tail.size() == 2 ? parse_hex(tail[1]) : std::optional<std::uint64_t>(0);
  if (tail.size() > 2 || !domain || !bus || !device || !function) return std::nullopt;
  return PciAddress{*domain, *bus, *device, *function};
}

constexpr std::string_view kUuidPrefix = "gpu-";

}  // namespace

bool is_gpu_word(std::string_view word) {
  const std::string small = lower(word);
  return parse_unsigned(small) || (small.starts_with(kUuidPrefix) && small.size() > kUuidPrefix.size()) ||
         parse_pci(small);
}

bool names_gpu(std::string_view word, const Gpu& gpu) {
  if (const auto index = parse_unsigned(word)) return *index == gpu.index;
  const std::string small = lower(word);
  if (small.starts_with(kUuidPrefix)) return small.size() > kUuidPrefix.size() && lower(gpu.uuid).starts_with(small);
  const auto address = parse_pci(small);
  return address && parse_pci(lower(gpu.pci)) == address;
}

}  // namespace vacate
