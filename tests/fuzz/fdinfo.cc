// SPDX-License-Identifier: Apache-2.0
// /proc/PID/fdinfo/N: nothing without flags, and no file of a ring that the text does not name.
#include "fuzz.h"
#include "os/proc_parse.h"

using namespace vacate;
using namespace vacate::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  const auto info = parse_fdinfo(text);
  if (!info) return 0;
  require(contains(text, "flags"), "fdinfo: no answer without flags");
  require(info->scm_fds == 0 || contains(text, "scm_fds"), "fdinfo: nothing in flight without its line");
  require(info->user_files.empty() || contains(text, "UserFiles"), "fdinfo: no ring without its line");
  require(contains(text, info->exporter) && !contains(info->exporter, "\n"), "fdinfo: the exporter is one line of it");
  require(info->user_files.size() <= text.size(), "fdinfo: a registered file is a line");
  for (const auto& file : info->user_files) require(contains(text, file), "fdinfo: registered files stand in the text");
  return 0;
}
