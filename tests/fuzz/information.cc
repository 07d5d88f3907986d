// SPDX-License-Identifier: Apache-2.0
// What the kernel module says in /proc/driver/nvidia: addresses in one form, no UUID that is none, and a list that
// fills gaps without taking anything away.
#include "fuzz.h"
#include "gpu/proc_driver.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

void check_address(std::string_view text) {
  const auto address = normalise_pci(text);
  if (!address) return;
  require(address->size() == 16, "pci: eight digits of domain, then the rest");
  require(address->find_first_not_of("0123456789ABCDEF:.") == std::string::npos, "pci: upper case");
  require(normalise_pci(*address) == address, "pci: the one form stays as it is");
}

void check_gpu(const Gpu& gpu) {
  check_address(gpu.pci);
  require(!gpu.pci.empty() && normalise_pci(gpu.pci) == gpu.pci, "information: an address in the one form");
  require(gpu.uuid.empty() || (gpu.uuid.starts_with("GPU-") && !contains(gpu.uuid, "?")), "information: a real UUID");
  require(gpu.name.size() <= 96 && gpu.uuid.size() <= 96, "information: short texts");
  require(gpu.state == GpuState::no_answer && !gpu.memory.used.known() && !gpu.memory.total.known(),
          "information: nothing was measured");
}

void check_completion(const std::vector<Gpu>& known) {
  std::vector<Gpu> answered(known.size());
  if (known.empty()) return;
  answered[0].pci = known.back().pci;
  const auto before = answered;
  complete_from(known, answered);
  require(answered.size() == before.size(), "completion: no GPU appears or goes");
  require(answered[0].pci == before[0].pci, "completion: what was known stays");
  for (const auto& gpu : answered) require(!gpu.memory.used.known(), "completion: no figure is made up");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  check_address(text);
  const auto version = parse_module_version(text);
  require(version.size() < 32 && version.find_first_not_of("0123456789.") == std::string::npos, "version: a number");
  std::vector<Gpu> known;
  for (const auto file : split(text, '\0')) {
    const auto gpu = parse_gpu_information(file);
    if (!gpu || known.size() > 32) continue;
    check_gpu(*gpu);
    known.push_back(*gpu);
  }
  check_completion(known);
  return 0;
}
