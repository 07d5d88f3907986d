// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

namespace vacate {

std::string_view general_help() noexcept {
  return R"(Usage: vacate [COMMAND] [OPTION...]

Gets GPU memory back and proves it. Without a command it looks and changes
nothing

Commands:
  status   what holds each GPU, since when, and why it is still there (default)
  free     end leftovers, prove that the memory came back
  wait     block until GPUs are free: for services, jobs, CI
  run      run a command so that nothing it starts outlives it
  why      the evidence and the reasoning about a process or a GPU
  doctor   what this machine lets vacate see and do, and how to improve it
  shm      shared memory that nobody uses any more: list it, remove it
  unit     systemd units that start and stop GPU services safely
  log      what vacate did on this machine: when, why, what came of it
  record   write what was seen to a file, for a bug report

Options:
  -h, --help   show this help; 'vacate COMMAND --help' or 'vacate help COMMAND'
               shows that of a command
  --version    show the version

Examples:
  vacate             who holds what, and the command that would help
  vacate free        show what would be ended, ask, end it and verify

Exit codes: 0 done, 1 holders remain, 2 usage, 3 refused, 4 cannot tell,
5 memory is held by no process, 70 a defect of vacate, 128+N ended by signal N
)";
}

std::string_view status_help() noexcept {
  return R"(Usage: vacate status [OPTION...]

Shows what holds each GPU, since when, and why it is still there. Changes
nothing

Options:
  --gpu LIST    only these: index, GPU- UUID or its beginning, PCI bus id, all
  --pid LIST    only these holders: PID or PID@START
  --user LIST   only holders of these users: names or numbers
  --unit LIST   only those of these units: llm or llm.service, session-3.scope
  --container LIST
                only those in these containers: id, its first 12 digits or
                more, or the name of a machine or LXC container
  --job LIST    only those of these batch jobs: numbers
  --cgroup LIST only those in these control groups and below: paths
  --policy FILE rules and figures beside those of /etc/vacate/policy.toml
  --scan METHOD how processes are looked at: auto, procfs or bpf (auto)
  --watch       redraw every two seconds until interrupted
  --replay FILE read a recorded machine instead of this one
  --json        one JSON object (vacate.status/1)
  -h, --help    show this help

Examples:
  vacate status --gpu 0,1
  vacate status --json | jq '.holders[] | select(.standing == "leftover")'
)";
}

std::string_view free_help() noexcept {
  return R"(Usage: vacate free [OPTION...]

Ends leftovers, processes that hold GPU memory and whose owner is gone, and
proves GPU by GPU that the memory came back

Who:
  --leftovers     leftovers only (default)
  --unsure        also holders that may be leftovers, which nothing proves
  --all           every holder of memory, live ones too; who has device files
                  open only, or imports what a live one made: by --pid; live
                  ones of another user, container or job: only with --user,
                  --container, --job or --pid beside it
  --gpu LIST      on these: index, GPU- UUID or its beginning, PCI bus id, all
  --pid LIST      these, whatever their standing: PID or PID@START
  --user LIST     only of these users: names or numbers
  --unit LIST     only of these units: llm or llm.service, session-3.scope
  --container LIST
                  only in these containers: id, its first 12 digits or more,
                  or the name of a machine or LXC container
  --job LIST      only of these batch jobs: numbers
  --cgroup LIST   only in these control groups and below: paths
  --even LIST     protected holders that are meant all the same: PID or
                  PID@START

How:
  --yes           do not ask; needed where there is no terminal
  --dry-run       show the plan, send nothing
  --plan FILE     do what this plan (--dry-run --json) and a fresh one have in
                  common; repeat the options that it was made with
  --replay FILE   with --dry-run: plan for a recorded machine
  --grace TIME    from TERM to KILL (10s)
  --timeout TIME  for the whole command (1min, and 1s for each 4GiB of host
                  memory that those ended have pinned)
  --term-only     never KILL
  --stop-units    stop a service that would start its process again, through
                  the service manager, if everything in it is meant
  --thaw          thaw frozen control groups all of whose processes are ended
  --policy FILE   rules and figures beside those of /etc/vacate/policy.toml
  --scan METHOD   how processes are looked at: auto, procfs or bpf (auto)
  --keep-shm      leave the shared memory that only those ended used

Output:
  --json          one JSON object (vacate.free/1)
  --quiet         no live lines while it works
  -h, --help      show this help

Examples:
  vacate free --dry-run
  vacate free --gpu 0,1 --yes --grace 30s
)";
}

std::string_view why_help() noexcept {
  return R"(Usage: vacate why PID|PID@START|gpu:N|GPU-UUID... [OPTION...]

Says in sentences what a process or a GPU is, on what evidence, whose it is,
and what would free its memory and what would not. Changes nothing

Options:
  --gpu LIST    these GPUs: index, GPU- UUID or its beginning, PCI bus id, all
  --pid LIST    these processes: PID or PID@START
  --user LIST   the holders of these users: names or numbers
  --unit LIST   those of these units: llm or llm.service, session-3.scope
  --container LIST
                those of these containers: id, 12 digits of it, or name
  --job LIST    those of these batch jobs: numbers
  --cgroup LIST those in these control groups and below: paths
  --replay FILE read a recorded machine instead of this one
  --policy FILE rules and figures beside those of /etc/vacate/policy.toml
  --scan METHOD how processes are looked at: auto, procfs or bpf (auto)
  --json        one JSON object (vacate.why/1)
  -h, --help    show this help

Examples:
  vacate why 4711
  vacate why gpu:0 --json
)";
}

std::string_view doctor_help() noexcept {
  return R"(Usage: vacate doctor [OPTION...]

Shows what this machine lets vacate see and do, what each gap costs, and how to
close it. Changes nothing

Options:
  --scan METHOD how processes are looked at: auto, procfs or bpf (auto)
  --json        one JSON object (vacate.doctor/1)
  -h, --help    show this help

Examples:
  vacate doctor
  sudo vacate doctor --json | jq '.checks[] | select(.state != "good")'
)";
}

std::string_view record_help() noexcept {
  return R"(Usage: vacate record [FILE] [OPTION...]

Writes everything that one scan saw as JSON (vacate.snapshot/1), to standard
output without FILE. --replay FILE of status, free --dry-run and why reads it,
here or elsewhere. It has command lines, paths and user names in it: FILE is
readable by you alone. A file of yours is replaced; a link or anything else
that bears the name stays as it is, and nothing is written

Options:
  --redact      put stand-ins in the place of names, paths, users and ids;
                what vacate concludes from the recording stays the same
  --scan METHOD how processes are looked at: auto, procfs or bpf (auto)
  -h, --help    show this help

Examples:
  vacate record --redact machine.json
  vacate status --replay machine.json
)";
}

}  // namespace vacate
