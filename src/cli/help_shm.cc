// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

namespace vacate {

std::string_view shm_help() noexcept {
  return R"(Usage: vacate shm [list|clean] [OPTION...]

Shared memory that nobody uses any more. list shows every segment of /dev/shm,
whose it is, who uses it and why it would be kept or removed. clean removes what
is proven unused: everything visible, nobody maps, opens or locks it, its family
is known, it is old enough, and its creator is gone

Options:
  --path DIR         look there as well: a directory of a tmpfs
  --scan METHOD      how processes are looked at: auto, procfs or bpf (auto)
  --json             one JSON object (vacate.shm/1)
  -h, --help         show this help

Of clean:
  --yes              do not ask; needed where there is no terminal
  --dry-run          show the plan, remove nothing
  --older-than TIME  only what was last changed so long ago (10min)
  --family NAME      only these: python, nccl, torch, vllm, openmpi, ...
  --sysv             System V segments as well
  --assume-private   in a container: nobody outside it uses its /dev/shm

Examples:
  vacate shm
  vacate shm clean --family nccl,python --older-than 1h --yes
)";
}

}  // namespace vacate
