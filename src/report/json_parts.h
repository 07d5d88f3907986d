// SPDX-License-Identifier: Apache-2.0
// What the JSON of vacate is made of, for the files of report/ that make it and for nobody else: they alone include the
// JSON library, without its exceptions. Strings pass printable(), so that the bytes are valid UTF-8 whatever a process
// calls itself.
#pragma once

#ifndef JSON_NOEXCEPTION
#define JSON_NOEXCEPTION
#endif
#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/reading.h"
#include "base/text.h"
#include "model/action_record.h"
#include "model/holder.h"
#include "model/outcome.h"
#include "model/plan.h"
#include "model/shm.h"
#include "model/snapshot.h"
#include "report/advice.h"

namespace vacate::json {

using Json = nlohmann::ordered_json;

inline Json safe(std::string_view text) { return printable(text); }

inline Json json_of(Bytes amount) { return amount.count; }
inline Json json_of(const std::string& text) { return safe(text); }
template <class T>
Json json_of(const T& value) {
  return value;
}

/// Times are shown to the millisecond: more digits would be noise that pretends to be a measurement.
inline Json seconds_of(double seconds) { return std::round(seconds * 1000) / 1000; }

/// `key`: the value, or null with the reason in the sibling `key`_unknown.
template <class T>
void put(Json& object, const std::string& key, const Reading<T>& reading) {
  if (reading.known()) {
    object[key] = json_of(*reading);
    return;
  }
  object[key] = nullptr;
  object[key + "_unknown"] = describe(reading.reason());
}

/// A text that is empty where nobody said it.
inline void put_text(Json& object, const std::string& key, const std::string& text, std::string_view why_empty) {
  if (!text.empty()) {
    object[key] = safe(text);
    return;
  }
  object[key] = nullptr;
  object[key + "_unknown"] = why_empty;
}

inline Json optional_text(const std::optional<std::string>& text) { return text ? safe(*text) : Json(nullptr); }

inline Json texts(const std::vector<std::string>& lines) {
  Json list = Json::array();
  for (const auto& line : lines) list.push_back(safe(line));
  return list;
}

template <class T>
Json numbers(const std::vector<T>& values) {
  Json list = Json::array();
  for (const auto value : values) list.push_back(value);
  return list;
}

template <class Values, class Convert>
Json list_of(const Values& values, Convert convert) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(convert(value));
  return list;
}

/// What became of a process: the members that every list of results has.
template <class Result>
void put_ending(Json& object, const Result& result) {
  object["result"] = describe(result.status);
  object["signals"] = texts(result.signals);
  object["seconds"] = seconds_of(result.seconds);
  object["detail"] = safe(result.detail);
}

inline std::string one_line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

// Objects of vacate.status/1 and vacate.free/1 that other answers have as well (json.cc).
[[nodiscard]] Json host_json(const Host& host);
[[nodiscard]] Json driver_json(const Driver& driver);
[[nodiscard]] Json visibility_json(const Visibility& visibility);
[[nodiscard]] Json gpu_json(const Gpu& gpu, const GpuAccount& account);
[[nodiscard]] Json holder_json(const Holder& holder, const Snapshot& snapshot);
[[nodiscard]] Json group_json(const Group& group, const Snapshot& snapshot);
[[nodiscard]] Json plan_json(const Plan& plan);
[[nodiscard]] Json step_result_json(const StepResult& result);
[[nodiscard]] Json release_json(const GpuOutcome& gpu);
[[nodiscard]] Json shm_cleanup_json(const ShmCleanup& cleanup);
[[nodiscard]] Json advice_json(const std::vector<Advice>& advice);
[[nodiscard]] Json record_json(const std::optional<RecordOutcome>& record);

}  // namespace vacate::json
