// SPDX-License-Identifier: Apache-2.0
// /proc/self/mountinfo: a mount point is one word of the text, and only the last /proc counts.
#include "fuzz.h"
#include "os/proc_parse.h"

using namespace vacate;
using namespace vacate::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  const auto point = parse_cgroup2_mount(text);
  require(contains(text, point), "mountinfo: the mount point stands in the text");
  require(point.find_first_of(" \t\n") == std::string::npos, "mountinfo: the mount point is one word");
  require(point.empty() || contains(text, "cgroup2"), "mountinfo: no cgroup2 without its name");

  const auto how = parse_proc_mount(text);
  require((!how.hides_processes && !how.denies_access) || contains(text, "hidepid="), "mountinfo: hiding is an option");
  const auto over = parse_proc_mount(std::string(text) + "\n9 9 0:5 / /proc rw - proc proc rw,hidepid=2");
  require(over.hides_processes && !over.denies_access, "mountinfo: the last /proc counts");
  const auto under = parse_proc_mount(std::string(text) + "\n9 9 0:5 / /proc rw - proc proc rw");
  require(!under.hides_processes && !under.denies_access, "mountinfo: what is covered does not count");
  return 0;
}
