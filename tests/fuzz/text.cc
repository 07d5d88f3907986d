// SPDX-License-Identifier: Apache-2.0
// Text of strangers made safe to show, and the small values of the command line.
#include "fuzz.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

void check_printable(std::string_view hostile, std::size_t longest) {
  const auto safe = printable(hostile, longest);
  require(is_one_clean_line(safe), "printable: one line of valid UTF-8");
  require(safe.size() <= longest + 3, "printable: cut where it was said");
  require(printable(safe, safe.size() + 1) == safe, "printable: what is safe stays");
  require(
      printable(hostile, hostile.size() * 12) == printable(printable(hostile, hostile.size() * 12), ~std::size_t{0}),
      "printable: doing it twice changes nothing");
}

void check_elided(std::string_view hostile, std::size_t columns) {
  const auto safe = printable(hostile);
  const auto cut = elide_middle(safe, columns);
  require(display_width(cut) <= columns, "elide: no wider than asked");
  require(is_one_clean_line(cut), "elide: still one line of valid UTF-8");
  require(display_width(safe) > columns || cut == safe, "elide: what fits stays");
}

void check_values(std::string_view text) {
  const auto number = parse_unsigned(text);
  require(!number || (text.find_first_not_of("0123456789") == std::string_view::npos && !text.empty()),
          "number: digits");
  const auto duration = parse_duration(text);
  if (duration) require(duration->count() >= 0, "duration: none is negative");
  if (!duration) require(is_one_clean_line(duration.error().message), "duration: the complaint is one line");
  const auto size = parse_size(text);
  if (size) require(size->count <= 1'000'000'000'000'000'000U, "size: none overflows");
  if (!size) require(is_one_clean_line(size.error().message), "size: the complaint is one line");
  require(is_inside(trim(text), text), "trim: a view of the text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto columns = input.below(200);
  const auto separator = input.number<char>();
  const auto text = input.rest();
  check_printable(text, columns * 3);
  check_elided(text, columns);
  check_values(text);
  std::size_t length = 0;
  const auto pieces = split(text, separator);
  for (const auto piece : pieces) length += piece.size();
  require(length + pieces.size() - 1 == text.size(), "split: nothing is lost");
  const auto match = closest_match(text.substr(0, 64), {"status", "free", "--dry-run"});
  require(!match || *match == "status" || *match == "free" || *match == "--dry-run", "match: one of the candidates");
  return 0;
}
