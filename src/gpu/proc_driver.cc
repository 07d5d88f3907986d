// SPDX-License-Identifier: Apache-2.0
#include "gpu/proc_driver.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "base/unique_fd.h"
#include "os/procfs.h"

namespace vacate {
namespace {

constexpr const char* kGpus = "/proc/driver/nvidia/gpus";

bool is_plausible_uuid(std::string_view uuid) {
  // Before the first init the module prints question marks.
  return uuid.substr(0, 4) == "GPU-" && uuid.find('?') == std::string_view::npos && uuid.size() < 96;
}

void copy_missing(const Gpu& from, Gpu& to) {
  if (to.uuid.empty()) to.uuid = from.uuid;
  if (to.pci.empty()) to.pci = from.pci;
  if (to.name.empty()) to.name = from.name;
  if (!to.minor.known()) to.minor = from.minor;
  to.unified_memory = to.unified_memory || from.unified_memory;
}

}  // namespace

std::optional<std::string> normalise_pci(std::string_view text) {
  const auto part = split(text, ':');
  if (part.size() != 3) return std::nullopt;
  const auto dot = part[2].find('.');
  const auto domain = parse_hex(part[0]);
  const auto bus = parse_hex(part[1]);
  const auto device = parse_hex(part[2].substr(0, dot));
  const auto function =
      dot == std::string_view::npos ? std::optional<std::uint64_t>(0) : parse_hex(part[2].substr(dot + 1));
  if (!domain || !bus || !device || !function || *domain > 0xFFFFFFFFU || *bus > 0xFF || *device > 0x1F ||
      *function > 7)
    return std::nullopt;
  return fmt::format("{:08X}:{:02X}:{:02X}.{:X}", *domain, *bus, *device, *function);
}

std::optional<Gpu> parse_gpu_information(std::string_view text) {
  Gpu gpu;
  gpu.state = GpuState::no_answer;
  for (const auto line : split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto name = trim(line.substr(0, colon));
    const auto value = trim(line.substr(colon + 1));
    if (name == "Model") gpu.name = std::string(value.substr(0, 96));
    if (name == "GPU UUID" && is_plausible_uuid(value)) gpu.uuid = std::string(value);
    if (name == "Bus Location") gpu.pci = normalise_pci(value).value_or("");
    if (name == "GPU Excluded" && value == "Yes") return std::nullopt;  // the driver does not use it
    const auto minor = name == "Device Minor" ? parse_unsigned(value) : std::nullopt;
    if (minor && *minor <= std::numeric_limits<std::uint32_t>::max()) gpu.minor = static_cast<std::uint32_t>(*minor);
  }
  if (gpu.pci.empty()) return std::nullopt;
  return gpu;
}

std::string parse_module_version(std::string_view text) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ...": the first word that is digits and
  // dots.
  for (const auto word : split(text.substr(0, text.find('\n')), ' ')) {
    const bool numeric = !word.empty() && word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (numeric && word.find('.') != std::string_view::npos && word.size() < 32) return std::string(word);
  }
  return {};
}

ProcDriver read_proc_driver() {
  ProcDriver driver;
  if (const auto version = read_file("/proc/driver/nvidia/version", 4096))
    driver.version = parse_module_version(*version);
  const UniqueFd directory(open(kGpus, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  driver.present = directory || read_identity(AT_FDCWD, "/proc/driver/nvidia").has_value();
  if (!directory) return driver;
  DirectoryReader reader;
  reader.start(directory.get());
  while (const char* name = reader.next()) {
    const auto text = read_file(fmt::format("{}/{}/information", kGpus, name).c_str(), 16384);
    if (!text) continue;
    auto gpu = parse_gpu_information(*text);
    if (!gpu) continue;
    // There only where the GPU's memory is a node of the system's own (nv-procfs.c; facts.md 1.5).
    gpu->unified_memory =
        read_identity(directory.get(), (std::string(name) + "/numa_status").c_str(), Links::keep).has_value();
    driver.gpus.push_back(*std::move(gpu));
  }
  std::sort(driver.gpus.begin(), driver.gpus.end(), [](const Gpu& a, const Gpu& b) { return a.pci < b.pci; });
  for (std::size_t i = 0; i < driver.gpus.size(); ++i) driver.gpus[i].index = static_cast<unsigned>(i);
  return driver;
}

void complete_from(const std::vector<Gpu>& known, std::vector<Gpu>& gpus) {
  std::vector<const Gpu*> unclaimed;
  for (const auto& candidate : known) {
    const auto same = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.pci == candidate.pci; });
    if (same == gpus.end()) {
      unclaimed.push_back(&candidate);
    } else {
      copy_missing(candidate, *same);
    }
  }
  // Those that did not even say their address: what is left over, in the order of addresses that the library numbers
  // in. Only where the counts agree, else it would be a guess.
  const auto nameless = std::count_if(gpus.begin(), gpus.end(), [](const Gpu& gpu) { return gpu.pci.empty(); });
  if (static_cast<std::size_t>(nameless) != unclaimed.size()) return;
  auto next = unclaimed.begin();
  for (auto& gpu : gpus)
    if (gpu.pci.empty()) copy_missing(**next++, gpu);
}

}  // namespace vacate
