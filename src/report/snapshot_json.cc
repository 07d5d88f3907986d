// SPDX-License-Identifier: Apache-2.0
// Writing and reading of recordings. A string that is valid UTF-8 is itself; any other is {"hex": "..."} of its bytes.
// An unknown figure is {"unknown": "why"}. The reader takes nothing on trust: it measures the shape of the text before
// it builds anything from it, and stops at the first thing that is not as it has to be, naming the place.
#include "report/snapshot_json.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>

#include "report/json_parts.h"
#include "report/json_shape.h"
#include "report/snapshot_fields.h"

namespace vacate {
namespace {

using json::Json;

constexpr std::string_view kSnapshotSchema = "vacate.snapshot/1";

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsReading : std::false_type {};
template <class T>
struct IsReading<Reading<T>> : std::true_type {};

/// Strict: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_utf8(std::string_view text) noexcept {
  static constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || text.size() - i < length) return false;
    std::uint32_t point = length == 1 ? first : first & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0U) != 0x80) return false;
      point = (point << 6U) | (next & 0x3FU);
    }
    if (point < kSmallest.at(length) || (point >= 0xD800 && point < 0xE000) || point > 0x10FFFF) return false;
    i += length;
  }
  return true;
}

// --- writing

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

template <class T>
Json encode(const T& value);

class Writer {
 public:
  template <class T>
  using Access = const T;
  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = encode(value);
  }
  template <class T>
  void added(const char* name, const T& value) {
    (*this)(name, value);
  }
  void descriptor(const char* name, int value) { object_[name] = value; }
  [[nodiscard]] Json take() && { return std::move(object_); }

 private:
  Json object_ = Json::object();
};

template <class T>
Json encode(const T& value) {
  if constexpr (std::is_same_v<T, char>) {
    return encode(std::string(1, value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (std::is_enum_v<T>) {
    return describe(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return is_utf8(value) ? Json(value) : Json{{"hex", to_hex(value)}};
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return value.count;
  } else if constexpr (IsOptional<T>::value) {
    return value ? encode(*value) : Json(nullptr);
  } else if constexpr (IsReading<T>::value) {
    return value.known() ? encode(*value) : Json{{"unknown", describe(value.reason())}};
  } else if constexpr (IsVector<T>::value) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(encode(element));
    return list;
  } else {
    Writer writer;
    json::fields(writer, value);
    return std::move(writer).take();
  }
}

// --- reading

/// Where the reader is, and the first thing that was wrong.
class Place {
 public:
  void enter(std::string step) { path_.push_back(std::move(step)); }
  void leave() { path_.pop_back(); }
  [[nodiscard]] bool failed() const { return !complaint_.empty(); }
  [[nodiscard]] const std::string& complaint() const { return complaint_; }
  void complain(std::string_view what) {
    if (failed()) return;
    for (const auto& step : path_) complaint_ += '/' + step;
    if (path_.empty()) complaint_ = "the whole";
    complaint_ += fmt::format(": {}", what);
  }
  void complain_of(const Json& found, std::string_view wanted) {
    static constexpr std::size_t kMostShown = 40;
    const std::string shown = found.is_structured()
                                  ? found.type_name()
                                  : printable(found.dump(-1, ' ', true, Json::error_handler_t::replace), kMostShown);
    complain(fmt::format("expected {}, found {}", wanted, shown));
  }

 private:
  std::vector<std::string> path_;
  std::string complaint_;
};

template <class T>
void decode(const Json& found, T& value, Place& place);

class Reader {
 public:
  template <class T>
  using Access = T;
  Reader(const Json& object, Place& place) : object_(object), place_(place) {}

  template <class T>
  void operator()(const char* name, T& value) {
    read(name, [&](const Json& found) { decode(found, value, place_); });
  }
  /// One that older recordings lack.
  template <class T>
  void added(const char* name, T& value) {
    if (object_.contains(name)) (*this)(name, value);
  }
  /// A descriptor's number, -1 for none.
  void descriptor(const char* name, int& value) {
    read(name, [&](const Json& found) {
      if (found == -1) {
        value = -1;
      } else {
        decode(found, value, place_);
      }
    });
  }
  void end() {
    if (place_.failed() || object_.size() == names_.size()) return;
    for (const auto& [name, ignored] : object_.items()) {
      if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
        place_.complain(fmt::format("unknown key '{}'; a newer vacate may have written it", printable(name, 64)));
        return;
      }
    }
  }

 private:
  template <class Read>
  void read(const char* name, Read how) {
    if (place_.failed()) return;
    names_.emplace_back(name);
    place_.enter(name);
    const auto at = object_.find(name);
    if (at == object_.end()) {
      place_.complain("is missing");
    } else {
      how(*at);
    }
    place_.leave();
  }

  const Json& object_;
  Place& place_;
  std::vector<std::string_view> names_;
};

template <class T>
void decode_number(const Json& found, T& value, Place& place) {
  static constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  if (found.is_number_unsigned() && found.get<std::uint64_t>() <= kMost) {
    value = static_cast<T>(found.get<std::uint64_t>());
  } else {
    place.complain_of(found, fmt::format("a number from 0 to {}", kMost));
  }
}

/// The words are those of the model; an enumerator that is added needs nothing here.
template <class T>
void decode_word(const Json& found, T& value, Place& place) {
  static constexpr int kMostEnumerators = 32;
  const auto* word = found.get_ptr<const std::string*>();
  for (int i = 0; word != nullptr && i < kMostEnumerators; ++i) {
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): a number that is no enumerator has no new word
    if (const auto candidate = static_cast<T>(i); describe(candidate) == *word) {
      value = candidate;
      return;
    }
  }
  place.complain_of(found, "one of its words");
}

std::optional<std::string> from_hex(std::string_view hex) {
  std::string bytes;
  if (hex.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const auto byte = parse_hex(hex.substr(i, 2));
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

void decode_text(const Json& found, std::string& value, Place& place) {
  if (const auto* text = found.get_ptr<const std::string*>()) {
    value = *text;
    return;
  }
  if (found.is_object() && found.size() == 1 && found.contains("hex")) {
    const auto* hex = found["hex"].get_ptr<const std::string*>();
    auto bytes = hex != nullptr ? from_hex(*hex) : std::nullopt;
    if (bytes && !is_utf8(*bytes)) {
      value = std::move(*bytes);
      return;
    }
  }
  place.complain_of(found, "a text, or its bytes in hex where it is none");
}

template <class T>
void decode_reading(const Json& found, Reading<T>& value, Place& place) {
  if (found.is_object() && found.contains("unknown")) {
    Unknown reason{};
    place.enter("unknown");
    if (found.size() == 1) {
      decode(found["unknown"], reason, place);
    } else {
      place.complain("has company");
    }
    place.leave();
    value = reason;
    return;
  }
  T known{};
  decode(found, known, place);
  value = std::move(known);
}

template <class T>
void decode_list(const Json& found, std::vector<T>& value, Place& place) {
  if (!found.is_array()) return place.complain_of(found, "a list");
  value.clear();
  value.reserve(found.size());
  for (std::size_t i = 0; i < found.size() && !place.failed(); ++i) {
    place.enter(std::to_string(i));
    T element{};
    decode(found[i], element, place);
    value.push_back(std::move(element));
    place.leave();
  }
}

template <class T>
void decode(const Json& found, T& value, Place& place) {
  if constexpr (std::is_same_v<T, bool>) {
    found.is_boolean() ? void(value = found.get<bool>()) : place.complain_of(found, "true or false");
  } else if constexpr (std::is_same_v<T, char>) {
    std::string text;
    decode_text(found, text, place);
    text.size() == 1 ? void(value = text.front()) : place.complain_of(found, "one character");
  } else if constexpr (std::is_same_v<T, double>) {
    found.is_number() ? void(value = found.get<double>()) : place.complain_of(found, "a number");
  } else if constexpr (std::is_integral_v<T>) {
    decode_number(found, value, place);
  } else if constexpr (std::is_enum_v<T>) {
    decode_word(found, value, place);
  } else if constexpr (std::is_same_v<T, std::string>) {
    decode_text(found, value, place);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    decode_number(found, value.count, place);
  } else if constexpr (IsOptional<T>::value) {
    value.reset();
    if (!found.is_null()) decode(found, value.emplace(), place);
  } else if constexpr (IsReading<T>::value) {
    decode_reading(found, value, place);
  } else if constexpr (IsVector<T>::value) {
    decode_list(found, value, place);
  } else {
    if (!found.is_object()) return place.complain_of(found, "an object");
    Reader reader(found, place);
    json::fields(reader, value);
    reader.end();
  }
}

// --- what the pure stages rely on

/// Sorted by `key`; `Compare` less: equal neighbours are fine, less_equal: they are not.
template <class Compare, class Values, class Key>
void check_order(const Values& values, std::string_view name, Key key, Place& place) {
  place.enter(std::string(name));
  for (std::size_t i = 1; i < values.size() && !place.failed(); ++i) {
    place.enter(std::to_string(i));
    if (Compare{}(key(values[i]), key(values[i - 1]))) place.complain("is out of order");
    place.leave();
  }
  place.leave();
}

using MayRepeat = std::less<>;
using MustDiffer = std::less_equal<>;

template <class Values>
void check_sorted(const Values& values, std::string_view name, Place& place) {
  check_order<MustDiffer>(values, name, std::identity{}, place);
}

void check_process(const Process& process, Place& place) {
  check_order<MayRepeat>(
      process.pipes, "pipes", [](const PipeEnd& pipe) { return pipe.fd; }, place);
  for (const auto& pipe : process.pipes)
    if (pipe.other_end.known()) check_sorted(*pipe.other_end, "pipes/*/other_end", place);
}

void check_processes(const Snapshot& snapshot, Place& place) {
  check_order<MustDiffer>(
      snapshot.processes, "processes", [](const Process& p) { return p.key.pid; }, place);
  place.enter("processes");
  for (std::size_t i = 0; i < snapshot.processes.size() && !place.failed(); ++i) {
    place.enter(std::to_string(i));
    if (snapshot.processes[i].key.pid < 1) place.complain("a process has a number above 0");
    check_process(snapshot.processes[i], place);
    place.leave();
  }
  place.leave();
}

void check_references(const Snapshot& snapshot, Place& place) {
  check_order<MayRepeat>(
      snapshot.references, "references", [](const Reference& r) { return std::tuple(r.pid, r.node, r.kind); }, place);
  for (std::size_t i = 0; i < snapshot.references.size(); ++i) {
    if (snapshot.references[i].node < snapshot.nodes.size()) continue;
    place.enter(fmt::format("references/{}/node", i));
    place.complain("there is no such node");
    place.leave();
  }
}

void check_clients(const Snapshot& snapshot, Place& place) {
  check_sorted(snapshot.shared_clients, "shared_clients", place);
  for (std::size_t i = 0; i < snapshot.shared_clients.size(); ++i) {
    const auto& members = snapshot.shared_clients[i];
    const auto name = fmt::format("shared_clients/{}", i);
    check_sorted(members, name, place);
    place.enter(name);
    if (members.size() < 2) place.complain("needs two members at least");
    place.leave();
  }
}

void check_charges(const Snapshot& snapshot, Place& place) {
  check_order<MayRepeat>(
      snapshot.charges, "charges", [](const DriverCharge& c) { return std::tuple(c.gpu, c.pid); }, place);
  for (std::size_t i = 0; i < snapshot.charges.size() && !place.failed(); ++i) {
    check_sorted(snapshot.charges[i].kinds, fmt::format("charges/{}/kinds", i), place);
    check_order<MayRepeat>(snapshot.charges[i].instances, fmt::format("charges/{}/instances", i), std::identity{},
                           place);
  }
}

void check_relations(const Snapshot& snapshot, Place& place) {
  check_order<MustDiffer>(
      snapshot.gpus, "gpus", [](const Gpu& gpu) { return gpu.index; }, place);
  check_charges(snapshot, place);
  check_processes(snapshot, place);
  check_references(snapshot, place);
  check_clients(snapshot, place);
  check_order<MayRepeat>(
      snapshot.hidden_references, "hidden_references",
      [](const HiddenReference& h) { return std::tuple(h.pid, h.kind, h.fd); }, place);
  check_order<MayRepeat>(
      snapshot.services.units, "services/units", [](const ServiceUnit& u) { return u.name; }, place);
  check_order<MayRepeat>(
      snapshot.containers, "containers", [](const Existence& e) { return e.id; }, place);
  check_order<MayRepeat>(
      snapshot.jobs, "jobs", [](const Existence& e) { return e.id; }, place);
  check_order<MayRepeat>(snapshot.visibility.blind_spots, "visibility/blind_spots", std::identity{}, place);
}

Error malformed_recording(std::string_view what) {
  return Error{ErrorCode::malformed, fmt::format("not a recording of vacate: {}", what)};
}

}  // namespace

std::string render_snapshot_json(const Recording& recording) {
  Json object;
  object["schema"] = kSnapshotSchema;
  object["version"] = encode(recording.version);
  object["redacted"] = recording.redacted;
  object["snapshot"] = encode(recording.snapshot);
  return object.dump(1, ' ', true) + '\n';
}

Result<Recording> parse_snapshot_json(std::string_view text) {
  if (text.size() > kLargestRecording) return malformed_recording("it has more than 64 MiB");
  if (const auto excess = json::excess_of(text)) return malformed_recording("it " + *excess);
  const Json found = Json::parse(text.begin(), text.end(), nullptr, false);
  if (found.is_discarded()) return malformed_recording("it " + json::why_no_json(text));
  if (!found.is_object()) return malformed_recording("it is no object");
  Recording recording;
  Place place;
  std::string schema;
  Reader reader(found, place);
  reader("schema", schema);
  if (!place.failed() && schema != kSnapshotSchema)
    return malformed_recording(fmt::format("its schema is '{}', not {}", printable(schema, 64), kSnapshotSchema));
  reader("version", recording.version);
  reader("redacted", recording.redacted);
  reader("snapshot", recording.snapshot);
  reader.end();
  if (!place.failed()) {
    place.enter("snapshot");
    check_relations(recording.snapshot, place);
    place.leave();
  }
  if (place.failed()) return malformed_recording(place.complaint());
  return recording;
}

}  // namespace vacate
