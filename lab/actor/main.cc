// SPDX-License-Identifier: Apache-2.0
// vacate-lab-actor: a process of a simulated machine. Started only by the lab, which leaves it the board; without it,
// it is the MPS control program of the machine if it is called like that.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "lab/actor/actor.h"
#include "lab/actor/mps_client.h"

int main(int argc, char** argv) {
  const off_t slot = lseek(lab::kBoardFd, 0, SEEK_CUR);
  const auto board = lab::Board::map(lab::kBoardFd);
  if (slot < 0 && argc > 0 && lab::is_mps_control(argv[0])) return lab::ask_mps_daemon();
  if (slot < 0 || slot >= static_cast<off_t>(lab::kMaxSlots) || !board) {
    std::fputs("vacate-lab-actor: is started by vacate-lab, which gives it its part\n", stderr);
    return 2;
  }
  close(lab::kBoardFd);
  lab::run_actor(*board, static_cast<std::uint32_t>(slot));
}
