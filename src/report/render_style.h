// SPDX-License-Identifier: Apache-2.0
// How text is to look, as plain values. Who asks the terminal is cli/; nothing here reads the environment.
#pragma once

#include <cstddef>

namespace vacate {

enum class Colour { no, yes };

/// What a report is about: the machine it is printed on, or one that was recorded.
enum class Source { machine, recording };

struct RenderStyle {
  std::size_t width = 80;  ///< columns; lines are cut or wrapped to it where that loses nothing that matters
  Colour colour = Colour::no;
};

}  // namespace vacate
