// SPDX-License-Identifier: Apache-2.0
#include "probe/scan_bpf.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "os/mounts.h"
#include "os/system_calls.h"
#include "probe/bpf/holders_loader.h"
#include "probe/bpf_records.h"

namespace vacate {
namespace {

/// As much as the kernel hands over at once.
using Piece = std::array<char, 32768>;

/// What the child says last: none of its bytes can be part of a record.
constexpr std::string_view kWhole = "\xff\xff\xff\xff";

/// The programs give numbers of the namespace in which they are read; /proc has to be of the same one. A filter of
/// system calls may end whoever calls bpf(2), as that of a service does (SystemCallFilter=), and cannot be asked.
Result<void> check_self() {
  static constexpr const char* kElsewhere = "/proc is of another pid namespace than this process";
  const auto root = ProcDirectory::open_root();
  if (!root) return root.error();
  const auto self = root->read_link("self");
  if (!self || *self != std::to_string(getpid())) return Error{ErrorCode::unsupported, kElsewhere};
  const auto process = root->open("self");
  const auto status = process ? process->status() : Result<ProcStatus>(process.error());
  if (!status) return status.error();
  if (status->filters_calls)
    return Error{ErrorCode::unsupported, "this process has a seccomp filter, which may end whoever calls bpf(2)"};
  if (status->ns_pids.size() != 1) return Error{ErrorCode::unsupported, kElsewhere};
  const auto own = root->identity("self/ns/pid");
  const auto of_children = root->identity("self/ns/pid_for_children");
  if (!own || !of_children || own->inode != of_children->inode)
    return Error{ErrorCode::unsupported, "children of this process would be in another pid namespace"};
  return {};
}

/// In the kernel a file is told by its superblock and inode number. File systems of several volumes or layers show
/// others to user space.
Result<void> check_file_systems(const std::vector<std::uint64_t>& devices) {
  static constexpr std::array<std::string_view, 4> kPlain = {"tmpfs", "devtmpfs", "fuse", "ramfs"};
  if (devices.empty()) return {};
  const auto table = read_file("/proc/self/mountinfo", kLargestMounts);
  if (!table) return table.error();
  const auto mounts = parse_mounts(*table);
  for (const auto device : devices) {
    const bool is_plain = std::any_of(mounts.begin(), mounts.end(), [&](const MountLine& mount) {
      const std::string_view type = std::string_view{mount.type}.substr(0, mount.type.find('.'));
      return mount.device == device && std::find(kPlain.begin(), kPlain.end(), type) != kPlain.end();
    });
    if (!is_plain)
      return Error{ErrorCode::unsupported, "a file that is called as a device node lies on no plain file system"};
  }
  return {};
}

bool put_devices(vacate_filter& filter, const std::vector<std::uint64_t>& devices) {
  if (devices.size() > VACATE_MOST_DEVICES) return false;
  std::fill(std::begin(filter.devices), std::end(filter.devices), VACATE_NO_DEVICE);
  std::transform(devices.begin(), devices.end(), std::begin(filter.devices), kernel_device);
  return true;
}

bool put_majors(vacate_filter& filter, const std::vector<std::uint32_t>& majors) {
  static constexpr unsigned kBits = 64;
  for (const auto number : majors) {
    if (number >= VACATE_MAJORS) return false;
    filter.majors[number / kBits] |= 1ULL << number % kBits;
  }
  return true;
}

Result<vacate_filter> filter_for(const DeviceNodes& nodes, const KernelFiles& files,
                                 const std::vector<std::uint64_t>& watched) {
  vacate_filter filter{};
  filter.pipe_device = kernel_device(files.pipe_device);
  filter.anonymous_device = kernel_device(files.anonymous_device);
  filter.anonymous_inode = files.anonymous_inode;
  filter.devices_only = watched.empty() ? 0 : 1;
  if (!files.known) return Error{ErrorCode::unsupported, "no pipe or event could be made to tell others by"};
  const auto node_devices = nodes.file_systems();
  if (const auto plain = check_file_systems(node_devices); !plain) return plain.error();
  if (!put_devices(filter, watched.empty() ? node_devices : watched) || !put_majors(filter, nodes.majors()))
    return Error{ErrorCode::unsupported, "more file systems of nodes than the programs have room for"};
  return filter;
}

struct Iterators {
  UniqueFd files, mappings;
  SharedReport report;
};

Result<Iterators> load(const vacate_filter& filter) {
#if VACATE_HAS_BPF
  vacate_iterators raw{-1, -1, nullptr};
  const int status = vacate_load_holders(&filter, &raw);
  if (status == 0) return Iterators{UniqueFd(raw.files), UniqueFd(raw.mappings), SharedReport(raw.report)};
  auto error = system_error("the kernel takes no BPF programs", -status);
  if (error.code != ErrorCode::denied) error.code = ErrorCode::unsupported;
  return error;
#else
  (void)filter;
  return Error{ErrorCode::unsupported, "this build has no BPF programs"};
#endif
}

/// Reads an iterator to its end and hands over what came. An error: it broke off.
template <class Take>
Result<void> read_to_end(int iterator, const Take& take) {
  Piece piece;
  for (;;) {
    const ssize_t n = read(iterator, piece.data(), piece.size());
    if (n == 0) return {};
    // EAGAIN: it passed a million mappings without anything to report, and goes on from there.
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return system_error("a BPF program's report");
    if (!take(std::string_view(piece.data(), static_cast<std::size_t>(n))))
      return Error{ErrorCode::unsupported, "a BPF program's report is not understood"};
  }
}

/// Takes what the program has put into the report, which empties it.
template <class Take>
Result<void> take_report(vacate_report& report, const Take& take) {
  if (report.used > VACATE_REPORT_SIZE || !take(std::string_view(report.bytes, report.used)))
    return Error{ErrorCode::unsupported, "a BPF program's report is not understood"};
  report.used = 0;
  return {};
}

/// Reads an iterator that gives no bytes of its own to its end, and hands over what its program reports beside it.
template <class Take>
Result<void> read_beside(int iterator, vacate_report& report, const Take& take) {
  // Where there is nothing to report it calls for another round only after tens of thousands of descriptors, or when a
  // table was exchanged while it was looked through.
  static constexpr unsigned kMostEmptyRounds = 1000;
  unsigned empty_rounds = 0;
  for (;;) {
    char none = 0;
    const ssize_t n = read(iterator, &none, sizeof none);
    if (n > 0) return Error{ErrorCode::unsupported, "a BPF program's report is not understood"};
    if (n < 0 && errno != EAGAIN && errno != EINTR) return system_error("a BPF program's report");
    empty_rounds = report.used == 0 ? empty_rounds + 1 : 0;
    if (const auto taken = take_report(report, take); !taken) return taken.error();
    if (n == 0) return {};
    if (empty_rounds > kMostEmptyRounds) return Error{ErrorCode::unsupported, "a BPF program comes to no end"};
  }
}

/// In the child: the walk over mappings waits for a lock of each process, which a stuck one never gives back.
int forward_mappings(int channel, int iterator) {
  const auto whole = read_to_end(iterator, [&](std::string_view piece) { return send_all(channel, piece); });
  return whole && send_all(channel, kWhole) ? 0 : 1;
}

bool share_table(pid_t a, pid_t b) { return compare_tables(a, b) == 0; }

}  // namespace

void UnmapReport::operator()(vacate_report* report) const noexcept { munmap(report, sizeof *report); }

Result<void> check_bpf_scan() {
  if (const auto here = check_self(); !here) return here.error();
  const auto filter = filter_for(DeviceNodes::read(), KernelFiles::read(), {});
  if (!filter) return filter.error();
  const auto loaded = load(*filter);
  return loaded ? Result<void>() : loaded.error();
}

Result<BpfScan> BpfScan::start(Walker& walker, const DeviceNodes& nodes, const std::vector<std::uint64_t>& watched) {
  if (const auto here = check_self(); !here) return here.error();
  const auto filter = filter_for(nodes, walker.kernel_files(), watched);
  if (!filter) return filter.error();
  auto loaded = load(*filter);
  if (!loaded) return loaded.error();
  auto child = Expendable::start_with("vacate-maps", loaded->mappings.get(), forward_mappings);
  if (!child) return child.error();
  return BpfScan(walker, nodes, watched, std::move(loaded->files), std::move(loaded->report), *std::move(child));
}

Result<void> BpfScan::walk_descriptors() {
  Walk& walk = walker_.result();
  BpfFindings found(walk.processes, nodes_, !watched_.empty(), share_table);
  BpfRecordStream stream;
  const auto take = [&](const BpfRecord& record) { found.take_descriptor(record); };
  const auto whole =
      read_beside(files_.get(), *report_, [&](std::string_view piece) { return stream.feed(piece, take); });
  if (!whole) return whole.error();
  if (!stream.at_boundary()) return Error{ErrorCode::unsupported, "a BPF program's report ends too soon"};
  found.leave_out_restless();
  walk.hits = std::move(found.hits);
  walk.channels = std::move(found.channels);
  walk.files = std::move(found.files);
  for (const auto& asked : found.to_ask) walker_.look_at_descriptor(asked.pid, asked.tid, asked.fd);
  look_after_sharers(found);
  for (const auto pid : found.restless) walker_.look_at_process(pid);
  sort_as_walked(walk.hits, walk.files);
  return {};
}

/// The walk passed these threads before the main thread of their process, whose table they had, and so left them out.
/// Did the main thread leave that table before the walk came to it? Then nobody has looked into it.
void BpfScan::look_after_sharers(const BpfFindings& found) {
  for (const auto& [pid, tids] : found.sharers) {
    std::vector<pid_t> apart;
    std::copy_if(tids.begin(), tids.end(), std::back_inserter(apart),
                 [pid = pid](pid_t tid) { return !share_table(pid, tid); });
    if (!apart.empty()) walker_.look_at_threads(pid, apart);
  }
}

Result<Mappings> BpfScan::finish_mappings() {
  static constexpr std::chrono::milliseconds kLongestSilence{2000};
  BpfFindings found(walker_.result().processes, nodes_, !watched_.empty(), share_table);
  BpfRecordStream stream;
  const auto take = [&](const BpfRecord& record) { found.take_mapping(record); };
  Piece piece;
  std::string last;  // what may be the beginning of the end
  for (;;) {
    const auto n = mappings_.read_some(piece.data(), piece.size(), Deadline::after(kLongestSilence));
    if (!n) return n.error();
    if (*n == 0) break;
    last.append(piece.data(), *n);
    const std::size_t certain = last.size() - std::min(last.size(), kWhole.size());
    if (!stream.feed(std::string_view{last}.substr(0, certain), take))
      return Error{ErrorCode::unsupported, "a BPF program's report is not understood"};
    last.erase(0, certain);
  }
  if (last != kWhole || !stream.at_boundary()) return Error{ErrorCode::unsupported, "the walk over mappings broke off"};
  (void)mappings_.wait(Deadline::after(kLongestSilence));
  return found.mappings();
}

}  // namespace vacate
