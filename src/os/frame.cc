// SPDX-License-Identifier: Apache-2.0
#include "os/frame.h"

namespace vacate {

std::optional<std::string> FrameStream::next() {
  std::uint32_t length = 0;
  if (malformed_ || pending_.size() - at_ < sizeof length) return std::nullopt;
  std::memcpy(&length, pending_.data() + at_, sizeof length);
  if (length > largest_) {
    malformed_ = true;
    return std::nullopt;
  }
  if (pending_.size() - at_ - sizeof length < length) return std::nullopt;
  std::string payload = pending_.substr(at_ + sizeof length, length);
  at_ += sizeof length + length;
  return payload;
}

}  // namespace vacate
