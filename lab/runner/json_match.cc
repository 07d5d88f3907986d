// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/json_match.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lab/case/pointer.h"

namespace lab {
namespace {

constexpr std::size_t kBriefBytes = 200;

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Whether a member has the value that a selector names: as a string, or as a number, true, false or null are written.
bool is_selected(const Json& element, const std::string& key, std::string_view wanted) {
  if (!element.is_object()) return false;
  const auto member = element.find(key);
  if (member == element.end()) return false;
  return member->is_string() ? *member->get_ptr<const std::string*>() == wanted : dump(*member) == wanted;
}

const Json* in_array(const Json& array, const std::string& token) {
  if (const auto equals = token.find('='); equals != std::string::npos) {
    const std::string key = token.substr(0, equals);
    const std::string_view wanted = std::string_view(token).substr(equals + 1);
    const auto found =
        std::find_if(array.begin(), array.end(), [&](const Json& e) { return is_selected(e, key, wanted); });
    return found == array.end() ? nullptr : &*found;
  }
  const bool canonical = token == "0" || !token.starts_with('0');  // RFC 6901: no leading zeros
  const auto index = canonical ? vacate::parse_unsigned(token) : std::nullopt;
  return index && *index < array.size() ? &array[*index] : nullptr;
}

const Json* step_into(const Json& value, const std::string& token) {
  if (value.is_array()) return in_array(value, token);
  if (!value.is_object()) return nullptr;
  const auto member = value.find(token);
  return member == value.end() ? nullptr : &*member;
}

bool holds_text(const Json& value, const std::string& text) {
  if (const auto* found = value.get_ptr<const std::string*>()) return found->find(text) != std::string::npos;
  if (!value.is_array()) return false;
  return std::any_of(value.begin(), value.end(), [&](const Json& element) { return holds_text(element, text); });
}

/// One overload a kind of expectation: what was expected, or nothing if `found` is that.
struct Judge {
  const Json& found;

  std::optional<std::string> operator()(const expect::Equal& wanted) const {
    const auto value = parse_json(wanted.value.text);
    // A case can write a pid only inside a string, "{pid:NAME}"; in output it is a number.
    const bool same = value && (*value == found || (found.is_number_integer() && value->is_string() &&
                                                    *value->get_ptr<const std::string*>() == dump(found)));
    return same ? std::nullopt : std::optional(wanted.value.text);
  }
  std::optional<std::string> operator()(const expect::Present&) const {
    return found.is_null() ? std::optional<std::string>("something that is not null") : std::nullopt;
  }
  std::optional<std::string> operator()(const expect::MibOf& wanted) const {
    const std::uint64_t bytes = wanted.mib << 20U;
    return found.is_number() && found == bytes ? std::nullopt
                                               : std::optional(fmt::format("{} ({} MiB)", bytes, wanted.mib));
  }
  std::optional<std::string> operator()(const expect::Between& wanted) const {
    const double number = found.is_number() ? found.get<double>() : 0;
    if (found.is_number() && (!wanted.min || number >= *wanted.min) && (!wanted.max || number <= *wanted.max)) {
      return std::nullopt;
    }
    return fmt::format("a number{}{}", wanted.min ? fmt::format(", at least {}", *wanted.min) : "",
                       wanted.max ? fmt::format(", at most {}", *wanted.max) : "");
  }
  std::optional<std::string> operator()(const expect::Contains& wanted) const {
    return holds_text(found, wanted.text) ? std::nullopt
                                          : std::optional(fmt::format("something with {}", dump(Json(wanted.text))));
  }
  std::optional<std::string> operator()(const expect::Length& wanted) const {
    const auto* text = found.get_ptr<const std::string*>();
    const bool countable = found.is_array() || found.is_object() || text != nullptr;
    const std::size_t length = text != nullptr ? text->size() : found.size();
    if (countable && length == wanted.length) return std::nullopt;
    return countable ? fmt::format("length {} instead of {}", wanted.length, length)
                     : fmt::format("length {}", wanted.length);
  }
};

}  // namespace

std::optional<Json> parse_json(std::string_view text) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return std::nullopt;
  return document;
}

vacate::Result<const Json*> find_json(const Json& document, std::string_view pointer) {
  const auto tokens = parse_pointer(pointer);
  if (!tokens) return tokens.error();
  const Json* value = &document;
  for (const std::string& token : *tokens) {
    const Json* next = step_into(*value, token);
    if (next == nullptr) {
      return vacate::Error{vacate::ErrorCode::gone, fmt::format("no '{}' in {}", token, brief(*value))};
    }
    value = next;
  }
  return value;
}

std::optional<std::string> json_difference(const Json& document, const JsonExpectation& expectation) {
  const auto found = find_json(document, expectation.pointer);
  if (!found) {
    const Json nothing;
    const auto wanted = std::visit(Judge{nothing}, expectation.wanted);
    return fmt::format("{}: expected {}, found {}", expectation.pointer, wanted.value_or("null"),
                       found.error().message);
  }
  const auto wanted = std::visit(Judge{**found}, expectation.wanted);
  if (!wanted) return std::nullopt;
  return fmt::format("{}: expected {}, found {}", expectation.pointer, *wanted, brief(**found));
}

std::string brief(const Json& value) { return vacate::printable(dump(value), kBriefBytes); }

}  // namespace lab
