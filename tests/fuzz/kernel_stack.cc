// SPDX-License-Identifier: Apache-2.0
// /proc/PID/stack: frames that the text holds, and a verdict that rests on them alone. Names of modules are root's
// choice, not the process's, but nothing is taken on trust.
#include "fuzz.h"
#include "os/proc_parse.h"

using namespace vacate;
using namespace vacate::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  const auto frames = parse_kernel_stack(text);
  require(frames.size() <= 64, "stack: a stack is not that deep");
  for (const auto& frame : frames) {
    require(!frame.function.empty() && contains(text, frame.function), "stack: a function stands in the text");
    require(contains(text, frame.module), "stack: a module stands in the text");
    require(!contains(frame.function, "\n") && !contains(frame.module, "\n"), "stack: a frame is a line");
  }
  const auto where = classify_kernel_stack(frames);
  require(!frames.empty() || where == StuckIn::unknown, "stack: no frame tells nothing");
  require(where == classify_kernel_stack(parse_kernel_stack(std::string(text) + "\n")),
          "stack: a line end adds nothing");
  const auto login = parse_login_uid(text);
  require(!login || contains(text, std::to_string(*login)) || contains(text, "0"), "loginuid: a number of the text");
  return 0;
}
