// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

namespace vacate {

std::string_view run_help() noexcept {
  return R"(Usage: vacate run [OPTION...] -- COMMAND [ARGUMENT...]

Runs COMMAND so that nothing it starts can outlive it. When it has ended, what
is left of it is ended too, wherever it moved and whatever it calls itself, and
the memory of the GPUs that it used is proven to be back. COMMAND has
the terminal, the descriptors, the environment and the signals as if it ran
alone, and its exit code is that of vacate

Options:
  --grace TIME    from TERM to KILL for what is left (10s)
  --timeout TIME  for ending all of it, and again for the memory (1min)
  --gpu LIST      verify these in any case: index, GPU- UUID, PCI bus id, all
  --lock          take turns: wait until no other has the lock of these GPUs
                  (of all without --gpu), and keep it until all is over
  --keep-shm      leave the shared memory that only those left used
  --policy FILE   figures beside those of /etc/vacate/policy.toml
  --scan METHOD   how processes are looked at: auto, procfs or bpf (auto)
  --quiet         say nothing of processes that were left and ended in order
  --json          when all is over, one JSON object (vacate.run/1)
  -h, --help      show this help

Examples:
  vacate run -- python train.py
  vacate run --lock --gpu 0 -- pytest tests/gpu
  vacate run --grace 30s -- torchrun --nproc-per-node 8 train.py

Exit codes: that of COMMAND, 128+N if signal N ended it (vacate ends by the same
signal), 127 not found, 126 not executable, 125 a process is left, memory is
not back, or vacate failed: a line on standard error says which, 2 usage
)";
}

}  // namespace vacate
