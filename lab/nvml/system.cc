// SPDX-License-Identifier: Apache-2.0
// Entry points about the library and the driver as a whole: init, shutdown, versions, error texts.
#include <cstring>

#include "lab/nvml/era.h"
#include "lab/nvml/session.h"
#include "lab/nvml/text.h"

using lab::nvml::Return;

namespace {

constexpr unsigned kNoAttach = 2;  // facts.md 1.2

}  // namespace

LAB_NVML_API Return nvmlInitWithFlags(unsigned flags) { return lab::nvml::begin_session((flags & kNoAttach) == 0); }
LAB_NVML_API Return nvmlInit_v2() { return lab::nvml::begin_session(true); }
LAB_NVML_API Return nvmlInit() { return lab::nvml::begin_session(true); }
LAB_NVML_API Return nvmlShutdown() { return lab::nvml::end_session(); }

LAB_NVML_API Return nvmlSystemGetDriverVersion(char* version, unsigned length) {
  lab::SystemReply system{};
  const Return result = lab::nvml::query_system(system);
  return result == Return::success ? lab::nvml::give_text(system.driver_version, version, length) : result;
}

/// Documented to work without init.
LAB_NVML_API Return nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return lab::nvml::give_text(lab::nvml::kEra.library_version, version, length);
}

LAB_NVML_API const char* nvmlErrorString(Return code) {
  switch (code) {
    case Return::success:
      return "The operation was successful";
    case Return::uninitialized:
      return "Uninitialized";
    case Return::invalid_argument:
      return "Invalid Argument";
    case Return::not_supported:
      return "Not Supported";
    case Return::no_permission:
      return "Insufficient Permissions";
    case Return::not_found:
      return "Not Found";
    case Return::insufficient_size:
      return "Insufficient Size";
    case Return::driver_not_loaded:
      return "Driver Not Loaded";
    case Return::function_not_found:
      return "Function Not Found";
    case Return::gpu_is_lost:
      return "GPU is lost";
    case Return::reset_required:
      return "GPU requires restart";
    case Return::mismatch:
      return "Driver/library version mismatch";
    case Return::argument_version_mismatch:
      return "Argument version mismatch";
    case Return::unknown:
      break;
  }
  return "Unknown Error";
}
