// SPDX-License-Identifier: Apache-2.0
// The management library as a test loads it: by path, one symbol at a time, as any client of it does.
#pragma once

#include <dlfcn.h>

#include <string>

#include "lab/nvml/abi.h"

namespace lab {

class Nvml {
 public:
  using Return = nvml::Return;

  explicit Nvml(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) {}
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  [[nodiscard]] bool loaded() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] bool has(const char* name) const { return dlsym(handle_, name) != nullptr; }
  /// Calls the symbol `name`, which has to exist, with arguments of exactly the types it takes.
  template <class... Arguments>
  Return call(const char* name, Arguments... arguments) const {
    return reinterpret_cast<Return (*)(Arguments...)>(dlsym(handle_, name))(arguments...);
  }
  [[nodiscard]] std::string error_text(Return code) const {
    return reinterpret_cast<const char* (*)(Return)>(dlsym(handle_, "nvmlErrorString"))(code);
  }
  /// The handle of a GPU by index, null where there is none.
  [[nodiscard]] nvml::Device* device(unsigned index) const {
    nvml::Device* device = nullptr;
    static_cast<void>(call("nvmlDeviceGetHandleByIndex_v2", index, &device));
    return device;
  }

 private:
  void* handle_;
};

}  // namespace lab
