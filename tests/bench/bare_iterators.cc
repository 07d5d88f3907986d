// SPDX-License-Identifier: Apache-2.0
// What the kernel's own iterators over descriptors and mappings cost, with programs that do nothing (bare.bpf.c),
// beside vacate's scan by BPF on the same machine at the same time. Prints one JSON object, medians in milliseconds;
// loading the programs is counted apart. Exits 1 where BPF cannot be used here, and says why.
//
// usage: bench_bare_iterators [RUNS]
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "bare_loader.h"
#include "probe/scan_bpf.h"

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double cpu_milliseconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  }
  return sum;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void read_to_end(int iterator) {
  static std::array<char, 65536> piece;
  for (;;) {
    const ssize_t n = read(iterator, piece.data(), piece.size());
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
  }
  close(iterator);
}

struct Times {
  std::vector<double> load, files, mappings, wall, cpu;
};

bool run_bare(Times& times) {
  bare_iterators iterators{-1, -1};
  const auto start = Clock::now();
  if (load_bare(&iterators) != 0) return false;
  times.load.push_back(milliseconds_since(start));
  const double cpu = cpu_milliseconds();
  const auto files = Clock::now();
  read_to_end(iterators.files);
  times.files.push_back(milliseconds_since(files));
  const auto mappings = Clock::now();
  read_to_end(iterators.mappings);
  times.mappings.push_back(milliseconds_since(mappings));
  times.wall.push_back(milliseconds_since(files));
  times.cpu.push_back(cpu_milliseconds() - cpu);
  return true;
}

bool run_scan(Times& times) {
  const auto root = vacate::ProcDirectory::open_root();
  if (!root) return false;
  const auto nodes = vacate::DeviceNodes::read();
  const std::vector<std::uint64_t> watched;
  vacate::Walker walker(*root, nodes, 0, watched);
  if (!walker.list_processes()) return false;
  const auto start = Clock::now();
  auto scan = vacate::BpfScan::start(walker, nodes, watched);
  if (!scan) return false;
  times.load.push_back(milliseconds_since(start));
  const double cpu = cpu_milliseconds();
  const auto walk = Clock::now();
  if (!scan->walk_descriptors() || !scan->finish_mappings()) return false;
  times.wall.push_back(milliseconds_since(walk));
  times.cpu.push_back(cpu_milliseconds() - cpu);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const long runs = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 9;
  if (const auto works = vacate::check_bpf_scan(); !works) {
    fmt::print(stderr, "bench_bare_iterators: {}\n", works.error().message);
    return 1;
  }
  Times bare;
  Times scan;
  for (long run = 0; run < std::max(1L, runs); ++run) {  // in turn, so that a busy moment is both's
    if (!run_bare(bare) || !run_scan(scan)) {
      fmt::print(stderr, "bench_bare_iterators: a run broke off\n");
      return 1;
    }
  }
  fmt::print(
      "{{\"bare\": {{\"load\": {:.2f}, \"files\": {:.2f}, \"mappings\": {:.2f}, \"wall\": {:.2f}, \"cpu\": {:.2f}}}, "
      "\"scan\": {{\"load\": {:.2f}, \"wall\": {:.2f}, \"cpu\": {:.2f}}}, \"wall_ratio\": {:.3f}, "
      "\"cpu_ratio\": {:.3f}}}\n",
      median(bare.load), median(bare.files), median(bare.mappings), median(bare.wall), median(bare.cpu),
      median(scan.load), median(scan.wall), median(scan.cpu), median(scan.wall) / median(bare.wall),
      median(scan.cpu) / median(bare.cpu));
  return 0;
}
