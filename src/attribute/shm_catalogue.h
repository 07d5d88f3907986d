// SPDX-License-Identifier: Apache-2.0
// Whose a name in /dev/shm is, by its form alone, and what the form says. A name proves nothing about use: a known
// family only makes a segment one that may be removed once its disuse is proven. Pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vacate {

enum class ShmTreatment {
  removable,
  listed_only,  ///< known, but nothing is known about who answers for it
  never,        ///< somebody else's, or made to stay
};

/// What a name says.
struct ShmName {
  std::string_view family;    ///< "python", "nccl", ...: the word of --family
  std::string_view software;  ///< for people
  ShmTreatment treatment = ShmTreatment::removable;
  std::string_view note;             ///< why it is not removable, for people
  std::vector<std::string> encodes;  ///< "creator pid 4711", "uid 1000", "job 3fa20001"
  std::optional<pid_t> creator;      ///< in the creator's own pid namespace: may veto, never prove
  std::string set;                   ///< segments of one set stand or fall together; empty: it stands alone
  bool is_folder = false;            ///< of a directory whose files are segments
  bool by_resource_tracker = false;  ///< Python's resource tracker unlinks it when its clients have ended
};

/// Nothing: no known family. `name` is hostile bytes; of a path of two parts the first is that of a folder whose makers
/// write files of the form of the second, or nothing.
[[nodiscard]] std::optional<ShmName> recognise_shm(std::string_view name);
/// The same for a file of a hugetlbfs.
[[nodiscard]] std::optional<ShmName> recognise_huge_page_file(std::string_view name);

/// Every word that --family takes, sorted.
[[nodiscard]] std::vector<std::string> shm_families();

/// Does `name` have the form of `pattern`? Plain characters stand for themselves; "%d" decimal digits, "%x" hex digits,
/// "%h" hex digits in lower case, "%a" letters and digits, "%w" those and '_', "%l" those in lower case, "%n" those of
/// "%w", '-' and '.', "%i" a UUID, "%s" anything at all of one character or more, "%p" and "%P" a pid in decimal and
/// hex as the kernel gives them (1 to 2^22, without leading zeros), "%u" and "%U" a uid; a number after '%' asks for
/// exactly so many characters. `pieces` is what the places matched, in order.
[[nodiscard]] bool matches_shm_pattern(std::string_view pattern, std::string_view name,
                                       std::vector<std::string_view>& pieces);

}  // namespace vacate
