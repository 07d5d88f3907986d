// SPDX-License-Identifier: Apache-2.0
// What the control daemon of MPS prints, and the environment that says where it is asked.
#include <algorithm>

#include "fuzz.h"
#include "os/mps_control.h"

using namespace vacate;
using namespace vacate::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  const auto directory = parse_pipe_directory(text);
  require(!directory.empty() && directory.find('\0') == std::string::npos, "mps: a directory is one word");
  require(directory == "/tmp/nvidia-mps" || contains(text, "CUDA_MPS_PIPE_DIRECTORY=" + directory),
          "mps: it stands in the environment");
  const auto pids = parse_pid_lines(text);
  if (!pids) return 0;
  require(std::is_sorted(pids->begin(), pids->end()), "mps: the list is sorted");
  for (const auto pid : *pids)
    require(pid > 0 && contains(text, std::to_string(pid)), "mps: every number stands in the answer");
  return 0;
}
