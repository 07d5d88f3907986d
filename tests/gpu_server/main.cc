// SPDX-License-Identifier: Apache-2.0
// The server as a program of its own, for a unit's ExecStart: gpu-server GPUS. It needs nothing but the C library.
#include <cstdio>
#include <cstdlib>

#include "tests/gpu_server/gpu_server.h"

int main(int argc, char** argv) {
  const unsigned long gpus = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (gpus == 0 || gpus > 64) {
    std::fputs("usage: gpu-server GPUS\n", stderr);
    return 2;
  }
  lab::be_server(static_cast<unsigned>(gpus));
}
