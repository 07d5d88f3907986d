// SPDX-License-Identifier: Apache-2.0
// The command line, words parted by line ends: any words give options in range or one line that says what is wrong.
#include "cli/parse_options.h"
#include "fuzz.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

void check_pids(const std::vector<ProcessSelector>& pids) {
  for (const auto& pid : pids) require(pid.pid > 0 && pid.pid <= kPidLimit, "options: a pid is a pid");
}

void check_options(const Options& options) {
  if (const auto* status = std::get_if<StatusOptions>(&options)) check_pids(status->pids);
  if (const auto* text = std::get_if<ShowText>(&options))
    require(!text->text.empty(), "options: a text says something");
  const auto* free = std::get_if<FreeOptions>(&options);
  if (free == nullptr) return;
  check_pids(free->request.selection.pids);
  check_pids(free->request.even);
  require(free->request.grace.count() >= 0 && free->request.timeout.count() >= 0, "options: no time is negative");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> arguments;
  const auto text = as_text(data, size);
  if (!text.empty()) {
    for (const auto word : split(text, '\n')) arguments.emplace_back(word);
  }
  const auto parsed = parse_options(arguments);
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    require(!error->message.empty() && is_one_clean_line(error->message), "options: a complaint is one line");
    require(error->try_command.starts_with("vacate"), "options: a complaint says where to look");
  } else {
    check_options(std::get<Options>(parsed));
  }
  return 0;
}
