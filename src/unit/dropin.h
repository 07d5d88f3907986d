// SPDX-License-Identifier: Apache-2.0
// The drop-in that makes a service wait for its GPUs and leave none behind. It has no shell in it, nothing that systemd
// would replace, and changes no setting of the unit that is good already. Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "unit/unit_name.h"
#include "unit/unit_text.h"

namespace vacate {

/// How the first line of every drop-in of ours begins: a file without it is somebody else's.
inline constexpr std::string_view kDropinMark = "# made by 'vacate unit dropin";

struct DropinRequest {
  ServiceName name;
  std::string program;                      ///< absolute path of vacate
  std::vector<std::string> gpus;            ///< words of --gpu as they are to be written
  std::string gpus_remark;                  ///< one line on where they come from; empty: none
  std::chrono::milliseconds wait{300'000};  ///< 0: for ever
};

/// `present`: the unit's own settings without an earlier drop-in of ours. malformed, refused: the name is a template's,
/// or a word or the path has characters that would need quoting.
[[nodiscard]] Result<std::string> render_dropin(const DropinRequest& request, const UnitSettings& present);

}  // namespace vacate
