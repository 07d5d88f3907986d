// SPDX-License-Identifier: Apache-2.0
// What runs in the containers of tests: an inference server as incident 1 had it, and the first process of a container
// that has nothing else.
#pragma once

namespace lab {

/// The API server of a process tree: an engine below it, and below that a worker a GPU, which holds kWorkerMib of it.
/// Each takes signals as any process does that handles none: who ends the server leaves the others. Does not return.
[[noreturn]] void be_server(unsigned gpus);

/// The container's pid 1: starts the server, starts another one at every SIGUSR1, adopts and reaps what is left to it,
/// ends at SIGTERM. Each server is a process group of its own. Does not return.
[[noreturn]] void be_container_init(unsigned gpus);

inline constexpr unsigned kWorkerMib = 96619;
/// Holds the pid of the newest API server, as the container numbers it.
inline constexpr const char* kServerPidFile = "/run/gpu-server.pid";

}  // namespace lab
