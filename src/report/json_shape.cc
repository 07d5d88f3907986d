// SPDX-License-Identifier: Apache-2.0
#include "report/json_shape.h"

#include <vector>

#include <fmt/format.h>

#include "report/json_parts.h"

namespace vacate::json {

std::optional<std::string> excess_of(std::string_view text) {
  static constexpr std::size_t kDeepest = 16;
  static constexpr std::size_t kMostKeys = 64;
  static constexpr std::size_t kMostValues = 8'000'000;
  struct Open {
    char kind;
    std::size_t commas;
  };
  std::vector<Open> open;
  std::size_t values = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      open.push_back({c, 0});
      if (open.size() > kDeepest) return fmt::format("is nested too deeply at byte {}", i);
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    } else if (c == ',' && !open.empty() && ++open.back().commas >= kMostKeys && open.back().kind == '{') {
      return fmt::format("has an object with too many keys at byte {}", i);
    }
    if ((c == ',' || c == '{' || c == '[') && !in_text && ++values > kMostValues) return "has too many values";
  }
  return std::nullopt;
}

namespace {

/// Says where a text stops being JSON.
class ErrorPlace : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    position_ = position;
    return false;
  }
  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  std::size_t position_ = 0;
};

}  // namespace

std::string why_no_json(std::string_view text) {
  ErrorPlace place;
  static_cast<void>(Json::sax_parse(text.begin(), text.end(), &place));
  return fmt::format("is not JSON from byte {} on", place.position());
}

}  // namespace vacate::json
