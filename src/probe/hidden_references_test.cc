// SPDX-License-Identifier: Apache-2.0
#include "probe/hidden_references.h"

#include <gmock/gmock.h>

namespace vacate {
namespace {

using ::testing::ElementsAre;

TEST(HiddenReferences, NameTheOwnerAndCountTheFiles) {
  std::vector<Process> processes(2);
  processes[0].key.pid = 50;
  processes[1].key.pid = 60;
  const auto hidden = hidden_references_from(
      {{60, 4, 3}, {70, 5, 1}},
      {{60, 9, "/dev/nvidia0"}, {50, 8, "/dev/nvidiactl"}, {60, 9, "/dev/nvidia0"}, {60, 9, "/dev/nvidia1"}},
      processes);
  EXPECT_THAT(hidden, ElementsAre(HiddenReference{50, HiddenKind::io_uring_file, 8, 1, "/dev/nvidiactl"},
                                  HiddenReference{60, HiddenKind::in_flight, 4, 3, ""},
                                  HiddenReference{60, HiddenKind::io_uring_file, 9, 2, "/dev/nvidia0"},
                                  HiddenReference{60, HiddenKind::io_uring_file, 9, 1, "/dev/nvidia1"}));
}

}  // namespace
}  // namespace vacate
