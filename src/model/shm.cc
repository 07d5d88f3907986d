// SPDX-License-Identifier: Apache-2.0
// The words of model/shm.h.
#include "model/shm.h"

namespace vacate {

std::string_view describe(ShmUse how) noexcept {
  switch (how) {
    case ShmUse::mapping:
      return "mapping";
    case ShmUse::descriptor:
      return "descriptor";
    case ShmUse::thread_descriptor:
      return "thread-descriptor";
    case ShmUse::lock:
      return "lock";
    case ShmUse::attachment:
      return "attachment";
  }
  return "mapping";
}

std::string_view describe(ShmVerdict verdict) noexcept {
  switch (verdict) {
    case ShmVerdict::unused:
      return "unused";
    case ShmVerdict::in_use:
      return "in-use";
    case ShmVerdict::too_young:
      return "too-young";
    case ShmVerdict::unknown_family:
      return "unknown-family";
    case ShmVerdict::not_ours:
      return "not-ours";
    case ShmVerdict::cannot_tell:
      return "cannot-tell";
  }
  return "cannot-tell";
}

std::string_view describe(ShmStatus status) noexcept {
  switch (status) {
    case ShmStatus::removed:
      return "removed";
    case ShmStatus::already_gone:
      return "already-gone";
    case ShmStatus::changed:
      return "changed";
    case ShmStatus::in_use:
      return "in-use";
    case ShmStatus::denied:
      return "denied";
    case ShmStatus::cannot_tell:
      return "cannot-tell";
    case ShmStatus::skipped:
      return "skipped";
  }
  return "skipped";
}

std::string_view describe(ShmCommandVerdict verdict) noexcept {
  switch (verdict) {
    case ShmCommandVerdict::listed:
      return "listed";
    case ShmCommandVerdict::removed:
      return "removed";
    case ShmCommandVerdict::nothing_to_do:
      return "nothing-to-do";
    case ShmCommandVerdict::would_remove:
      return "would-remove";
    case ShmCommandVerdict::remain:
      return "remain";
    case ShmCommandVerdict::refused:
      return "refused";
    case ShmCommandVerdict::cannot_tell:
      return "cannot-tell";
  }
  return "cannot-tell";
}

ExitCode exit_code_of(ShmCommandVerdict verdict) noexcept {
  switch (verdict) {
    case ShmCommandVerdict::listed:
    case ShmCommandVerdict::removed:
    case ShmCommandVerdict::nothing_to_do:
      return ExitCode::done;
    case ShmCommandVerdict::would_remove:
    case ShmCommandVerdict::remain:
      return ExitCode::holders_remain;
    case ShmCommandVerdict::refused:
      return ExitCode::refused;
    case ShmCommandVerdict::cannot_tell:
      return ExitCode::cannot_tell;
  }
  return ExitCode::cannot_tell;
}

}  // namespace vacate
