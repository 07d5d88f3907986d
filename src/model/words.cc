// SPDX-License-Identifier: Apache-2.0
// The word for each enumerator, once: text, JSON and messages all use these.
#include "model/device.h"
#include "model/evidence.h"
#include "model/holder.h"
#include "model/outcome.h"
#include "model/plan.h"
#include "model/process.h"

namespace vacate {

std::string_view describe(NodeRole role) noexcept {
  switch (role) {
    case NodeRole::gpu:
      return "gpu";
    case NodeRole::ctl:
      return "ctl";
    case NodeRole::uvm:
      return "uvm";
    case NodeRole::uvm_tools:
      return "uvm-tools";
    case NodeRole::modeset:
      return "modeset";
    case NodeRole::caps:
      return "caps";
    case NodeRole::nvswitch:
      return "nvswitch";
    case NodeRole::nvlink:
      return "nvlink";
    case NodeRole::imex:
      return "imex-channel";
    case NodeRole::gdrcopy:
      return "gdrcopy";
    case NodeRole::storage:
      return "gpudirect-storage";
    case NodeRole::rdma:
      return "rdma-verbs";
    case NodeRole::dma_buf:
      return "dma-buf";
    case NodeRole::other:
      return "other";
  }
  return "other";
}

bool pins_memory(NodeRole role) noexcept {
  switch (role) {
    case NodeRole::gpu:
    case NodeRole::ctl:
    case NodeRole::uvm:
    case NodeRole::dma_buf:  // facts.md 2.2.1 to 2.2.7
    case NodeRole::modeset:  // a kernel client holds what was registered through it (facts.md 2.2.10)
    case NodeRole::gdrcopy:
    case NodeRole::storage:  // both pin pages of a client while open, and block a reset (facts.md 2.6)
      return true;
    case NodeRole::rdma:  // every rank of MPI on an InfiniBand machine has one, with or without pages of a GPU
    case NodeRole::uvm_tools:
    case NodeRole::caps:
    case NodeRole::imex:  // permissions, no memory
    case NodeRole::nvswitch:
    case NodeRole::nvlink:  // the fabric manager's
    case NodeRole::other:
      return false;
  }
  return false;
}

std::string_view describe(HiddenKind kind) noexcept {
  switch (kind) {
    case HiddenKind::in_flight:
      return "in-flight";
    case HiddenKind::io_uring_file:
      return "io-uring-file";
  }
  return "in-flight";
}

std::string_view describe(StuckIn where) noexcept {
  switch (where) {
    case StuckIn::unknown:
      return "unknown";
    case StuckIn::gpu_driver:
      return "gpu-driver";
    case StuckIn::fuse:
      return "fuse";
    case StuckIn::nfs:
      return "nfs";
    case StuckIn::other_module:
      return "module";
    case StuckIn::kernel:
      return "kernel";
  }
  return "unknown";
}

std::string_view describe(GpuState state) noexcept {
  switch (state) {
    case GpuState::ok:
      return "ok";
    case GpuState::lost:
      return "lost";
    case GpuState::reset_required:
      return "reset-required";
    case GpuState::no_answer:
      return "no-answer";
  }
  return "no-answer";
}

std::string_view describe(DriverState state) noexcept {
  switch (state) {
    case DriverState::ok:
      return "ok";
    case DriverState::absent:
      return "absent";
    case DriverState::not_loaded:
      return "not-loaded";
    case DriverState::mismatch:
      return "mismatch";
    case DriverState::denied:
      return "denied";
    case DriverState::no_answer:
      return "no-answer";
  }
  return "no-answer";
}

std::string_view describe(ContextKind kind) noexcept {
  switch (kind) {
    case ContextKind::compute:
      return "compute";
    case ContextKind::graphics:
      return "graphics";
    case ContextKind::mps:
      return "mps";
  }
  return "compute";
}

std::string_view describe(Condition condition) noexcept {
  switch (condition) {
    case Condition::running:
      return "running";
    case Condition::stopped:
      return "stopped";
    case Condition::traced:
      return "traced";
    case Condition::frozen:
      return "frozen";
    case Condition::exiting:
      return "exiting";
    case Condition::stuck:
      return "stuck";
    case Condition::zombie:
      return "zombie";
    case Condition::zombie_leader:
      return "zombie-leader";
    case Condition::dumping_core:
      return "dumping-core";
  }
  return "running";
}

std::string_view describe(EvidenceKind kind) noexcept {
  switch (kind) {
    case EvidenceKind::descriptor:
      return "descriptor";
    case EvidenceKind::thread_descriptor:
      return "thread-descriptor";
    case EvidenceKind::mapping:
      return "mapping";
    case EvidenceKind::inherited_client:
      return "inherited-client";
  }
  return "descriptor";
}

std::string_view describe(Standing standing) noexcept {
  switch (standing) {
    case Standing::leftover:
      return "leftover";
    case Standing::live:
      return "live";
    case Standing::unsure:
      return "unsure";
    case Standing::foreign:
      return "foreign";
  }
  return "unsure";
}

std::string_view describe(HolderRole role) noexcept {
  switch (role) {
    case HolderRole::context:
      return "context";
    case HolderRole::inheritor:
      return "inheritor";
    case HolderRole::mapped:
      return "mapped";
    case HolderRole::files:
      return "files";
    case HolderRole::importer:
      return "importer";
    case HolderRole::unresolved:
      return "unresolved";
  }
  return "unresolved";
}

std::string_view describe(Freezer freezer) noexcept {
  switch (freezer) {
    case Freezer::v1:
      return "v1";
    case Freezer::v2:
      return "v2";
  }
  return "v2";
}

std::string_view describe(Action action) noexcept {
  switch (action) {
    case Action::signal:
      return "signal";
    case Action::terminate_client:
      return "terminate-client";
    case Action::stop_unit:
      return "stop-unit";
    case Action::unlink:
      return "unlink";
    case Action::refuse:
      return "refuse";
  }
  return "refuse";
}

std::string_view describe(Ask ask) noexcept {
  switch (ask) {
    case Ask::at_once:
      return "at-once";
    case Ask::at_half_grace:
      return "at-half-grace";
    case Ask::after_others:
      return "after-others";
  }
  return "at-once";
}

std::string_view describe(StepStatus status) noexcept {
  switch (status) {
    case StepStatus::gone:
      return "gone";
    case StepStatus::already_gone:
      return "already-gone";
    case StepStatus::identity_changed:
      return "identity-changed";
    case StepStatus::denied:
      return "denied";
    case StepStatus::timed_out:
      return "timed-out";
    case StepStatus::stuck:
      return "stuck";
    case StepStatus::refused:
      return "refused";
    case StepStatus::skipped:
      return "skipped";
  }
  return "skipped";
}

std::string_view describe(GpuVerdict verdict) noexcept {
  switch (verdict) {
    case GpuVerdict::released:
      return "released";
    case GpuVerdict::in_use:
      return "in-use";
    case GpuVerdict::releasing:
      return "releasing";
    case GpuVerdict::held_by_nobody:
      return "held-by-nobody";
    case GpuVerdict::cannot_tell:
      return "cannot-tell";
  }
  return "cannot-tell";
}

std::string_view describe(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::released:
      return "released";
    case Verdict::nothing_to_do:
      return "nothing-to-do";
    case Verdict::holders_remain:
      return "holders-remain";
    case Verdict::releasing:
      return "releasing";
    case Verdict::refused:
      return "refused";
    case Verdict::cannot_tell:
      return "cannot-tell";
    case Verdict::held_by_nobody:
      return "held-by-nobody";
  }
  return "cannot-tell";
}

}  // namespace vacate
