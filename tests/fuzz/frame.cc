// SPDX-License-Identifier: Apache-2.0
// Frames of expendable children: cut anywhere they come out whole, and values that were written read the same.
#include <algorithm>
#include <vector>

#include "fuzz.h"
#include "os/frame.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

constexpr std::size_t kLargest = 64;

struct Frames {
  std::vector<std::string> whole;
  bool malformed = false;
  bool operator==(const Frames&) const = default;
};

Frames frames_of(std::string_view text, std::size_t piece) {
  FrameStream stream(kLargest);
  Frames frames;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    stream.feed(text.substr(0, piece));
    while (auto frame = stream.next()) frames.whole.push_back(*std::move(frame));
  }
  frames.malformed = stream.malformed();
  require(!frames.malformed || !stream.next(), "frame: after a bad length nothing comes");
  return frames;
}

void check_reader(std::string_view bytes) {
  FrameReader reader(bytes);
  const auto count = reader.count(3);
  require(std::size_t{count} * 3 <= bytes.size(), "frame: a count that can be true");
  (void)reader.number<std::uint64_t>();
  require(is_inside(reader.text(), bytes), "frame: a text is inside");
  require(!reader.complete() || !reader.failed(), "frame: what failed is not complete");
}

void check_round_trip(std::string_view text) {
  FrameWriter writer;
  writer.number(static_cast<std::uint32_t>(text.size()));
  writer.text(text);
  writer.number(std::int64_t{-7});
  FrameReader reader(writer.bytes());
  require(reader.number<std::uint32_t>() == text.size() && reader.text() == text, "frame: values come back");
  require(reader.number<std::int64_t>() == -7 && reader.complete(), "frame: all of them");
  FrameReader shorter(std::string_view(writer.bytes()).substr(0, writer.bytes().size() - 1));
  (void)shorter.number<std::uint32_t>();
  (void)shorter.text();
  require(shorter.number<std::int64_t>() == 0 && shorter.failed() && !shorter.complete(),
          "frame: a missing byte shows");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  const auto whole = frames_of(text, text.size() + 1);
  for (const auto& frame : whole.whole) require(frame.size() <= kLargest, "frame: none beyond the largest");
  require(frames_of(text, 1) == whole && frames_of(text, 5) == whole, "frame: pieces give what the whole gives");
  check_reader(text);
  check_round_trip(text);
  return 0;
}
