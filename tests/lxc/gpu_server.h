// SPDX-License-Identifier: Apache-2.0
// What runs in the container of the test: an inference server as incident 1 had it, and the container's first process.
#pragma once

namespace lab {

/// The container's pid 1: starts the server, starts another one at every SIGUSR1, adopts and reaps what is left to it,
/// ends at SIGTERM. Each server is a process group of its own: an API server, its engine, and a worker a GPU that holds
/// kWorkerMib of it. Does not return.
[[noreturn]] void be_container_init(unsigned gpus);

inline constexpr unsigned kWorkerMib = 96619;
/// Holds the pid of the newest API server, as the container numbers it.
inline constexpr const char* kServerPidFile = "/run/gpu-server.pid";

}  // namespace lab
