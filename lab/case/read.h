// SPDX-License-Identifier: Apache-2.0
// The readers of the parts of a case, for parse.cc only: each takes its tables from the root, puts values into the Case
// and complains about what does not fit. They run in the order machine, actors, services, steps, since each may refer
// to what the ones before have read.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/case/case.h"
#include "lab/case/table.h"

namespace lab {

inline constexpr std::int64_t kMaxMib = std::int64_t{1} << 34;  ///< in bytes it still fits everywhere
inline constexpr double kMaxSeconds = 1e6;
inline constexpr double kMaxAge = 1e9;
inline constexpr std::int64_t kMaxCount = 10000;

inline constexpr std::array<std::pair<std::string_view, User>, 3> kUserWords{
    {{"root", User::root}, {"alice", User::alice}, {"bob", User::bob}}};

/// [machine], [[gpu]] and [driver].
void read_machine(TableReader& root, Case& result);
/// [[actor]], with parents before children.
void read_actors(TableReader& root, Case& result);
/// [[unit]], [[mps]] and [[shm]].
void read_services(TableReader& root, Case& result);
/// [[step]]
void read_steps(TableReader& root, Case& result);

/// One entry of `holds` (references are checked by check_references).
[[nodiscard]] HoldSpec read_hold(TableReader& table, const MachineSpec& machine);
/// The expectations of a `run` or `finish` step; `earlier` are the names of the steps before it.
[[nodiscard]] Expectations read_expectations(TableReader& table, const Case& so_far,
                                             const std::vector<std::string>& earlier);
/// The keys that read_expectations() reads.
[[nodiscard]] const std::vector<std::string_view>& expectation_keys();

/// How often a counted entry is to be read, and with which `{i}`: without `count` once and with none.
[[nodiscard]] std::vector<std::optional<int>> instances(const TomlNode& entry, const std::string& where,
                                                        Complaints& complaints);

/// Complains if no GPU has this index.
bool check_gpu(std::int64_t index, const MachineSpec& machine, Position at, Complaints& complaints);
/// Complains if `name` is not exactly an actor's.
bool check_actor(const PlacedText& name, const Case& so_far, Complaints& complaints);
/// Complains about every glob that matches no actor; `NAME+1` is a copy made by on_term = "fork".
void check_globs(const std::vector<PlacedText>& globs, const Case& so_far, Complaints& complaints);
/// The names that the globs match, without repetition; complains about globs that match none.
[[nodiscard]] std::vector<std::string> resolve_globs(const std::vector<PlacedText>& globs, const Case& so_far,
                                                     Complaints& complaints);
/// Complains about a {pid:NAME} in `text` that names no actor.
void check_pid_marks(const PlacedText& text, const Case& so_far, Complaints& complaints);

}  // namespace lab
