// SPDX-License-Identifier: Apache-2.0
// Fills a machine with ordinary processes for tests/bench/scan: a realistic mix of descriptors and mappings. Each
// process opens its descriptors itself, or has them all from its parent, as the workers of one server do. None of them
// has anything to do with a GPU. Prints "ready" when all have what they should, and ends, all of them, when its
// standard input does.
//
// usage: bench_population FOLDER PROCESSES DESCRIPTORS THREADS own|inherited
// FOLDER: an empty one for the files that are opened
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

constexpr int kSharedFiles = 64;
constexpr std::size_t kMappings = 45;  // what a small daemon with a dozen libraries has
constexpr std::size_t kPage = 4096;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

int checked(int descriptor, const char* what) {
  if (descriptor < 0) fail(what);
  return descriptor;
}

/// Opens the next one or two of a mix of twenty: 8 files that other processes have open too (libraries, logs, data), 2
/// of its own, 1 /dev/null, 3 sockets (a pair and one of TCP), 4 ends of pipes, 1 eventfd, 1 epoll; and once a datagram
/// socket, as for the system's log. Returns how many it opened.
int open_next(const std::string& folder, int number) {
  int ends[2];
  switch (number % 20) {
    case 0:
      checked(open("/dev/null", O_RDWR), "/dev/null");
      return 1;
    case 1:
      if (pipe(ends) != 0) fail("pipe");
      return 2;
    case 3:
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail("socketpair");
      return 2;
    case 5:
      checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
      return 1;
    case 6:
      if (number > 20) break;
      checked(socket(AF_UNIX, SOCK_DGRAM, 0), "socket");
      return 1;
    case 7:
      if (pipe(ends) != 0) fail("pipe");
      return 2;
    case 9:
      checked(eventfd(0, 0), "eventfd");
      return 1;
    case 10:
      checked(epoll_create1(0), "epoll");
      return 1;
    case 11:
    case 12: {
      const std::string path = folder + "/own-" + std::to_string(getpid()) + "-" + std::to_string(number);
      checked(open(path.c_str(), O_RDWR | O_CREAT, 0600), path.c_str());
      return 1;
    }
    default:
      break;
  }
  checked(open((folder + "/shared-" + std::to_string(number % kSharedFiles)).c_str(), O_RDONLY), "shared file");
  return 1;
}

std::size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

void add_mappings(const std::string& folder) {
  for (std::size_t have = count_mappings(), i = 0; have < kMappings; ++have, ++i) {
    const int file =
        checked(open((folder + "/shared-" + std::to_string(i % kSharedFiles)).c_str(), O_RDONLY), "shared file");
    const int protection = i % 2 == 0 ? PROT_READ : PROT_READ | PROT_EXEC;  // two that differ do not become one
    if (mmap(nullptr, kPage, protection, MAP_PRIVATE, file, 0) == MAP_FAILED) fail("mmap");
    close(file);
  }
}

[[noreturn]] void wait_for_end() {
  for (;;) pause();
}

/// On top of 0, 1, 2 and the one that tells when all is there.
void open_descriptors(const std::string& folder, int descriptors) {
  for (int have = 4; have + 1 < descriptors;) have += open_next(folder, have);
}

[[noreturn]] void live(const std::string& folder, int descriptors, int threads, int ready) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)prctl(PR_SET_NAME, "bench");
  const int told = dup(ready);
  close(ready);
  add_mappings(folder);
  open_descriptors(folder, descriptors);
  for (int i = 1; i < threads; ++i) std::thread(wait_for_end).detach();
  if (write(told, "r", 1) != 1) fail("write");
  wait_for_end();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: bench_population FOLDER PROCESSES DESCRIPTORS THREADS own|inherited\n");
    return 2;
  }
  const std::string folder = argv[1];
  const int processes = std::atoi(argv[2]);
  const int descriptors = std::atoi(argv[3]);
  const int threads = std::atoi(argv[4]);
  const bool inherited = std::string(argv[5]) == "inherited";
  rlimit most{};
  if (getrlimit(RLIMIT_NOFILE, &most) != 0) fail("getrlimit");
  most.rlim_cur = most.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &most) != 0) fail("setrlimit");
  for (int i = 0; i < kSharedFiles; ++i) {
    const int file = checked(open((folder + "/shared-" + std::to_string(i)).c_str(), O_RDWR | O_CREAT, 0644), argv[1]);
    if (ftruncate(file, kPage) != 0) fail("ftruncate");
    close(file);
  }
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) fail("pipe");
  if (inherited) open_descriptors(folder, descriptors);
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child > 0) continue;
    close(ready[0]);
    live(folder, inherited ? 0 : descriptors, threads, ready[1]);
  }
  close(ready[1]);
  char byte = 0;
  for (int i = 0; i < processes; ++i)
    if (read(ready[0], &byte, 1) != 1) fail("a process ended");
  std::puts("ready");
  std::fflush(stdout);
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
