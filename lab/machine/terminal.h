// SPDX-License-Identifier: Apache-2.0
// Joins the caller's terminal to one in the machine for an interactive shell. Leaves the caller's as it was.
#pragma once

namespace lab {

/// Copies standard input to `terminal` (a pty master) and its output to standard output, until the process of `pidfd`
/// ends.
void relay_terminal(int terminal, int pidfd);

}  // namespace lab
