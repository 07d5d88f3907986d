// SPDX-License-Identifier: Apache-2.0
// The three standard descriptors: what they are, how wide, and writing to them so that a failure is seen. The only
// reader of what the environment says of terminals (NO_COLOR, TERM).
#pragma once

#include <string_view>

#include "base/result.h"
#include "report/render_style.h"

namespace vacate {

/// Opens /dev/null where descriptor 0, 1 or 2 is closed: a file opened later would get its number and our output. Using
/// it fails as using the closed one would.
void open_standard_descriptors() noexcept;

/// The soft limit of descriptors becomes the hard one: every candidate of a scan is pinned by a pidfd, and a busy
/// machine has more of them than the usual 1,024.
void raise_descriptor_limit() noexcept;

[[nodiscard]] bool is_terminal(int descriptor) noexcept;
/// A terminal that takes cursor movements.
[[nodiscard]] bool is_capable_terminal(int descriptor) noexcept;
/// Width and colour for text that goes to `descriptor`: 80 columns and none where it is no terminal.
[[nodiscard]] RenderStyle style_for(int descriptor) noexcept;

/// All of `text`, or why not.
[[nodiscard]] Result<void> write_all(int descriptor, std::string_view text) noexcept;
/// Has the file system taken what was written to `descriptor`?
[[nodiscard]] Result<void> see_to_the_end(int descriptor) noexcept;
/// One line on standard error; where that fails there is nobody left to tell.
void complain(std::string_view line) noexcept;

/// Asks on standard error and reads a line of standard input. Anything but y or yes is no.
[[nodiscard]] bool ask_yes_no(std::string_view question) noexcept;

}  // namespace vacate
