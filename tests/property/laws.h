// SPDX-License-Identifier: Apache-2.0
// Checks laws one after the other, so that one that is broken hides no other.
#pragma once

#include <rapidcheck.h>

#include <initializer_list>

namespace vacate {

struct Law {
  const char* name;
  void (*check)();
};

/// The exit code of a program that checks them.
inline int check_all(std::initializer_list<Law> laws) {
  bool all = true;
  for (const auto& law : laws) all = rc::check(law.name, law.check) && all;
  return all ? 0 : 1;
}

}  // namespace vacate
