// SPDX-License-Identifier: Apache-2.0
// The shared memory that one actor uses: mappings without a descriptor, descriptors, locks, System V attachments.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "lab/actor/plan.h"

namespace lab {

class ShmHoldings {
 public:
  [[nodiscard]] vacate::Result<void> acquire(const ShmPlan& plan);
  /// In a fork without exec: nothing of the parent's is kept.
  void drop() noexcept;

 private:
  struct Mapped {
    void* memory = nullptr;
    std::size_t size = 0;
  };
  std::vector<vacate::UniqueFd> files_;
  std::vector<Mapped> mappings_;
  std::vector<void*> attached_;
};

}  // namespace lab
