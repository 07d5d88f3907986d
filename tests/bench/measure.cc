// SPDX-License-Identifier: Apache-2.0
// Runs a command and prints what it cost, it and the children that it waited for: wall, user and system seconds, peak
// KiB and exit code, in one line. A program of its own because the kernel counts the peak from before exec, with what
// the caller had.
//
// usage: bench_measure OUTPUT COMMAND [ARGUMENT...]     OUTPUT takes the command's standard output
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

namespace {

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_measure OUTPUT COMMAND [ARGUMENT...]\n");
    return 2;
  }
  const double start = now();
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    const int output = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int null = open("/dev/null", O_RDWR);
    if (output < 0 || null < 0) _exit(126);
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execvp(argv[2], argv + 2);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) return 1;
  std::printf("%.6f %.6f %.6f %ld %d\n", now() - start, seconds(usage.ru_utime), seconds(usage.ru_stime),
              usage.ru_maxrss, WIFEXITED(status) ? WEXITSTATUS(status) : 128);
  return 0;
}
