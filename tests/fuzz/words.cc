// SPDX-License-Identifier: Apache-2.0
// The small texts of /proc and of the command line: command lines, listening sockets, links of namespaces, keys of
// processes, /etc/shells.
#include "fuzz.h"
#include "model/process.h"
#include "os/host.h"
#include "os/proc_parse.h"
#include "probe/details.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

void check_words(std::string_view text) {
  const auto words = parse_words(text);
  std::string joined;
  for (const auto& word : words) joined += word + '\0';
  const auto last = text.find_last_not_of('\0');
  const auto wanted = last == std::string_view::npos ? std::string() : std::string(text.substr(0, last + 1)) + '\0';
  require(joined == wanted, "words: all of them, without what pads them");
  const auto parent = parse_named_parent(words);
  require(!parent || (*parent > 0 && *parent <= kPidLimit), "words: a parent is a pid");
}

void check_selector(std::string_view text) {
  const auto selector = parse_process_selector(text);
  if (!selector) {
    require(is_one_clean_line(selector.error().message), "selector: the complaint is one line");
    return;
  }
  require(selector->pid > 0 && selector->pid <= kPidLimit, "selector: a pid is a pid");
  if (!selector->start_ticks) return;
  const ProcessKey key{selector->pid, *selector->start_ticks, 0, 0};
  const auto again = parse_process_selector(to_string(key));
  require(again.has_value() && *again == *selector && again->matches(key), "selector: printed it reads the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  check_words(text);
  check_selector(text);
  for (const auto inode : parse_listening_inodes(text)) require(inode != 0, "listening: a socket has a number");
  const auto inode = parse_bracketed_inode(text);
  require(!inode || (contains(text, ":[") && text.back() == ']'), "link: a number in brackets");
  for (const auto& shell : parse_shells(text))
    require(shell.front() == '/' && !contains(shell, "\n") && !contains(shell, "#"), "shells: whole paths");
  (void)parse_frozen(text);
  return 0;
}
