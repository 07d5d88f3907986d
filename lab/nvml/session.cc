// SPDX-License-Identifier: Apache-2.0
// The session behind session.h. One mutex guards all of it, but is never held while the driver is asked for something
// that it may leave unanswered.
#include "lab/nvml/session.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace lab::nvml {

namespace {

constexpr std::uint32_t kMaxGpus = 64;
constexpr const char* kControlNode = "/dev/nvidiactl";

struct Session {
  unsigned users = 0;
  bool attach_gpus = true;
  int ctl = -1;
  int gpus[kMaxGpus];
};

Session session;
Device devices[kMaxGpus];
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

class Lock {
 public:
  Lock() { pthread_mutex_lock(&mutex); }
  ~Lock() { pthread_mutex_unlock(&mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

/// The control file, or -1 outside a session. It cannot be closed meanwhile unless the caller shuts down in another
/// thread while it asks, which the real library does not survive either.
int control_file() {
  const Lock lock;
  return session.users > 0 ? session.ctl : -1;
}

[[noreturn]] void hang() {
  for (;;) pause();
}

/// Does what the case wants of this library; only `success` lets it be used.
Return behave(NvmlMode mode, int ctl) {
  switch (mode) {
    case NvmlMode::ok:
      return Return::success;
    case NvmlMode::missing:  // the machine does not show this library then
    case NvmlMode::not_loaded:
      return Return::driver_not_loaded;
    case NvmlMode::mismatch:
      return Return::mismatch;
    case NvmlMode::denied:
      return Return::no_permission;
    case NvmlMode::hang:
      hang();
    case NvmlMode::stuck:
      ioctl(ctl, kNeverAnswered);
      return Return::unknown;  // answered only by the end of the driver
    case NvmlMode::crash:
      abort();
  }
  return Return::unknown;
}

/// Ties the GPU's file to the control file, as the vendor's library does (facts.md 2.2.2).
void register_file(int gpu) {
  TokenReply reply{};
  if (ioctl(session.ctl, kToken, &reply) != 0) return;
  const RegisterRequest request{reply.token};
  ioctl(gpu, kRegister, &request);
}

Return open_gpu(const GpuQuery& gpu, int& file) {
  file = open(NodePath(gpu).text, O_RDWR | O_CLOEXEC);
  if (file < 0) return errno == ENODEV ? Return::gpu_is_lost : meaning_of_open_error(errno);
  register_file(file);
  return Return::success;
}

}  // namespace

NodePath::NodePath(const GpuQuery& gpu) { static_cast<void>(snprintf(text, sizeof text, "/dev/nvidia%u", gpu.minor)); }

Return meaning_of_open_error(int number) {
  switch (number) {
    case ENOENT:
    case ENXIO:
    case ENODEV:
      return Return::driver_not_loaded;
    case EACCES:
      return Return::no_permission;
    default:
      return Return::unknown;  // EPERM: a device cgroup refused, "Unknown Error" in containers
  }
}

Return begin_session(bool attach_gpus) {
  {
    const Lock lock;
    if (session.users > 0) {
      ++session.users;
      return Return::success;
    }
  }
  const int ctl = open(kControlNode, O_RDWR | O_CLOEXEC);
  if (ctl < 0) return meaning_of_open_error(errno);
  SystemReply system{};
  const Return result = ioctl(ctl, kSystem, &system) != 0 ? Return::driver_not_loaded
                                                          : behave(static_cast<NvmlMode>(system.nvml_mode), ctl);
  if (result != Return::success) {
    close(ctl);
    return result;
  }
  const Lock lock;
  if (session.users++ > 0) {  // another thread was faster
    close(ctl);
    return Return::success;
  }
  session.attach_gpus = attach_gpus;
  session.ctl = ctl;
  for (std::uint32_t index = 0; index < kMaxGpus; ++index) {
    session.gpus[index] = -1;
    devices[index].index = index;
  }
  return Return::success;
}

Return end_session() {
  const Lock lock;
  if (session.users == 0) return Return::uninitialized;
  if (--session.users > 0) return Return::success;
  for (int& gpu : session.gpus) {
    if (gpu >= 0) close(gpu);
    gpu = -1;
  }
  close(session.ctl);
  session.ctl = -1;
  return Return::success;
}

Return query_system(SystemReply& reply) {
  const int ctl = control_file();
  if (ctl < 0) return Return::uninitialized;
  return ioctl(ctl, kSystem, &reply) == 0 ? Return::success : Return::unknown;
}

Return query_gpu(std::uint32_t index, GpuQuery& gpu) {
  const int ctl = control_file();
  if (ctl < 0) return Return::uninitialized;
  gpu.index = index;
  if (ioctl(ctl, kGpu, &gpu) != 0) return errno == EINVAL ? Return::invalid_argument : Return::unknown;
  return Return::success;
}

Return query_device(const Device* device, GpuQuery& gpu) {
  if (control_file() < 0) return Return::uninitialized;
  if (device < devices || device >= devices + kMaxGpus) return Return::invalid_argument;
  const Return result = query_gpu(device->index, gpu);
  if (result != Return::success) return result;
  return gpu.state == static_cast<std::uint32_t>(GpuState::lost) ? Return::gpu_is_lost : Return::success;
}

Return query_processes(ProcessPage& page) {
  const int ctl = control_file();
  if (ctl < 0) return Return::uninitialized;
  return ioctl(ctl, kProcesses, &page) == 0 ? Return::success : Return::unknown;
}

Return attach(std::uint32_t index, Device** device) {
  if (control_file() < 0) return Return::uninitialized;
  if (device == nullptr || index >= kMaxGpus) return Return::invalid_argument;
  GpuQuery gpu{};
  Return result = query_gpu(index, gpu);
  if (result != Return::success) return result;
  if (gpu.state == static_cast<std::uint32_t>(GpuState::lost)) return Return::gpu_is_lost;
  const Lock lock;
  if (session.users == 0) return Return::uninitialized;
  if (session.attach_gpus && session.gpus[index] < 0) result = open_gpu(gpu, session.gpus[index]);
  if (result == Return::success) *device = &devices[index];
  return result;
}

}  // namespace lab::nvml
