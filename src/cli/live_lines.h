// SPDX-License-Identifier: Apache-2.0
// The lines that move while `free` works: who is still there, and a line a GPU. On a terminal only, on standard error;
// wiped before the outcome is printed.
#pragma once

#include <string>
#include <vector>

#include "execute/executor.h"
#include "report/render_style.h"
#include "verify/watch_release.h"

namespace vacate {

enum class Show { nothing, lines };

class LiveLines final : public ExecutionObserver, public ReleaseObserver {
 public:
  LiveLines(Show show, const RenderStyle& style) noexcept : show_(show), style_(style) {}

  void on_execution(const ExecutionProgress& progress) override;
  void on_release(const std::vector<WatchedGpu>& gpus) override;
  /// These lines in place of those drawn before.
  void draw(const std::vector<std::string>& lines);
  void wipe();

 private:
  Show show_;
  RenderStyle style_;
  std::size_t drawn_ = 0;  ///< lines on the screen now
};

}  // namespace vacate
