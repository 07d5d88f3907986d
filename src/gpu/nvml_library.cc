// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_library.h"

#include <dlfcn.h>

#include <initializer_list>

namespace vacate::nvml {
namespace {

constexpr const char* kName = "libnvidia-ml.so.1";

/// The first of `names` that the library exports, newest first; nullptr if none.
template <class Call>
void find(void* library, Call& call, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    void* symbol = dlsym(library, name);
    if (symbol == nullptr) continue;
    call = reinterpret_cast<Call>(symbol);  // what POSIX says dlsym is for
    return;
  }
}

void find_processes(void* library, ProcessCalls& calls, const std::string& name) {
  find(library, calls.v3, {(name + "_v3").c_str()});
  find(library, calls.v2, {(name + "_v2").c_str()});
  find(library, calls.v1, {name.c_str()});
}

}  // namespace

Result<Library> Library::load() {
  void* library = dlopen(kName, RTLD_LAZY | RTLD_LOCAL);  // kept until the child ends
  if (library == nullptr) {
    const char* why = dlerror();
    return Error{ErrorCode::unsupported, why != nullptr ? why : kName};
  }
  Library calls;
  find(library, calls.init_with_flags, {"nvmlInitWithFlags"});
  find(library, calls.init_v2, {"nvmlInit_v2"});
  find(library, calls.init_v1, {"nvmlInit"});
  find(library, calls.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  find(library, calls.handle, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  find(library, calls.shutdown, {"nvmlShutdown"});
  find(library, calls.error_string, {"nvmlErrorString"});
  find(library, calls.driver_version, {"nvmlSystemGetDriverVersion"});
  find(library, calls.uuid, {"nvmlDeviceGetUUID"});
  find(library, calls.name, {"nvmlDeviceGetName"});
  find(library, calls.minor, {"nvmlDeviceGetMinorNumber"});
  find(library, calls.persistence, {"nvmlDeviceGetPersistenceMode"});
  find(library, calls.pci, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
  find(library, calls.memory, {"nvmlDeviceGetMemoryInfo"});
  find(library, calls.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(library, calls.fields, {"nvmlDeviceGetFieldValues"});
  find(library, calls.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(library, calls.mig_mode, {"nvmlDeviceGetMigMode"});
  find(library, calls.most_instances, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(library, calls.instance, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  find(library, calls.gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
  find_processes(library, calls.compute, "nvmlDeviceGetComputeRunningProcesses");
  find_processes(library, calls.graphics, "nvmlDeviceGetGraphicsRunningProcesses");
  find_processes(library, calls.mps, "nvmlDeviceGetMPSComputeRunningProcesses");
  const bool has_init = calls.init_with_flags != nullptr || calls.init_v2 != nullptr || calls.init_v1 != nullptr;
  if (!has_init || calls.count == nullptr || calls.handle == nullptr)
    return Error{ErrorCode::unsupported, std::string(kName) + ": lacks nvmlInit or the device calls"};
  return calls;
}

Return Library::init() const {
  if (init_with_flags != nullptr) {
    const Return code = init_with_flags(kInitNoGpus);
    if (!is_fallback(code) && code != kInvalidArgument) return code;
  }
  if (init_v2 != nullptr) return init_v2();
  if (init_v1 != nullptr) return init_v1();
  return kFunctionNotFound;
}

std::string Library::describe(Return code) const {
  const char* text = error_string != nullptr ? error_string(code) : nullptr;
  return std::string(text != nullptr ? text : "NVML error") + " (" + std::to_string(code) + ")";
}

}  // namespace vacate::nvml
