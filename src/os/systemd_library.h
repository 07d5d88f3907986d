// SPDX-License-Identifier: Apache-2.0
// libsystemd as it is found at run time: vacate works where it is missing, and says so.
#pragma once

#include <dlfcn.h>

namespace vacate {

constexpr const char* kSystemdLibrary = "libsystemd.so.0";

/// Sets `call` to the function of `name` in a library that dlopen(3) gave; no where it has none.
template <class Call>
[[nodiscard]] bool find_call(void* library, Call& call, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol != nullptr) call = reinterpret_cast<Call>(symbol);  // what POSIX says dlsym is for
  return symbol != nullptr;
}

}  // namespace vacate
