// SPDX-License-Identifier: Apache-2.0
// /proc/PID/status: numbers in range; a field that the text does not have is not invented, and a line before the others
// changes nothing: Name is the process's own choice.
#include "fuzz.h"
#include "os/proc_parse.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

bool same(const ProcStatus& a, const ProcStatus& b) {
  return a.effective_uid == b.effective_uid && a.ns_pids == b.ns_pids && a.core_dumping == b.core_dumping &&
         a.effective_capabilities == b.effective_capabilities;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  const auto status = parse_status_fields(text);
  for (const auto pid : status.ns_pids) require(is_pid_or_zero(pid), "status: NSpid holds pids");
  require(status.ns_pids.size() <= text.size(), "status: no more NSpid than there are words");
  require(!status.effective_uid || contains(text, "Uid:"), "status: no uid without its line");
  require(status.ns_pids.empty() || contains(text, "NSpid:"), "status: no pids without their line");
  require(!status.effective_capabilities || contains(text, "CapEff:"), "status: no capabilities without their line");
  require(!status.core_dumping || contains(text, "CoreDumping:"), "status: no dump without its line");
  require(same(parse_status_fields("Name:\tUid: 0 NSpid: 1\\nUid:\t0\n" + std::string(text)), status),
          "status: a name is no field");
  return 0;
}
