// SPDX-License-Identifier: Apache-2.0
#include "app/replay.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/redact.h"
#include "app/version.h"
#include "attribute/attribute.h"
#include "base/text.h"

namespace vacate {

Recording record_of(const Snapshot& snapshot, Redaction redaction) {
  const bool hides = redaction == Redaction::for_the_public;
  return {hides ? redacted(snapshot) : snapshot, std::string(kVersion), hides};
}

Look look_at_recording(Recording recording, const Policy& policy) {
  Look look{{std::move(recording.snapshot), {}}, {}};
  look.attribution = attribute_holders(look.scan.snapshot, policy);
  return look;
}

Result<std::vector<uid_t>> resolve_recorded_users(const std::vector<std::string>& words, const Snapshot& snapshot) {
  std::vector<uid_t> uids;
  for (const auto& word : words) {
    const auto named = std::find_if(snapshot.processes.begin(), snapshot.processes.end(), [&](const Process& process) {
      return process.uid.known() && process.user == word;
    });
    const auto number = parse_unsigned(word);
    if (named != snapshot.processes.end()) {
      uids.push_back(*named->uid);
    } else if (number && *number <= 0xFFFFFFFEU) {
      uids.push_back(static_cast<uid_t>(*number));
    } else {
      return Error{ErrorCode::malformed, fmt::format("--user: nobody in the recording is '{}'; give a name or a number",
                                                     printable(word, 64))};
    }
  }
  return uids;
}

}  // namespace vacate
