// SPDX-License-Identifier: Apache-2.0
// How text is to look, as plain values. Who asks the terminal is cli/; nothing here reads the environment.
#pragma once

#include <cstddef>

namespace vacate {

enum class Colour { no, yes };

struct RenderStyle {
  std::size_t width = 80;  ///< columns; lines are cut or wrapped to it where that loses nothing that matters
  Colour colour = Colour::no;
};

}  // namespace vacate
