// SPDX-License-Identifier: Apache-2.0
// What the programs in the kernel report: cut into the same records whatever pieces it comes in, and nothing is found
// of processes that nobody knows.
#include "probe/bpf_records.h"
#include "fuzz.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

constexpr std::size_t kShort = 24;

struct Cut {
  std::vector<int> numbers;
  bool sound = true;
  bool whole = true;

  bool operator==(const Cut&) const = default;
};

Cut cut_in_pieces(std::string_view bytes, std::size_t piece) {
  BpfRecordStream stream;
  Cut cut;
  const auto take = [&](const BpfRecord& record) { cut.numbers.push_back(record.fd); };
  while (cut.sound && !bytes.empty()) {
    const auto next = bytes.substr(0, piece);
    cut.sound = stream.feed(next, take);
    bytes.remove_prefix(next.size());
  }
  cut.whole = cut.sound && stream.at_boundary();
  return cut;
}

std::vector<Process> known_processes() {
  std::vector<Process> processes(3);
  for (std::size_t n = 0; n < processes.size(); ++n) {
    processes[n].key.pid = static_cast<pid_t>(n + 1);
    processes[n].state = 'S';
    processes[n].threads = 2;
  }
  return processes;
}

void require_known(const BpfFindings& found, std::size_t size) {
  require(found.hits.size() + found.files.size() + found.to_ask.size() <= size / kShort,
          "bpf_records: one row a record");
  const auto is_known = [](pid_t pid) { return pid >= 1 && pid <= 3; };
  for (const auto& hit : found.hits) require(is_known(hit.pid), "bpf_records: a hit of a known process");
  for (const auto& end : found.channels) require(is_known(end.pid), "bpf_records: an end of a known process");
  for (const auto& hit : found.mappings().hits) require(is_known(hit.pid), "bpf_records: a mapping of a known process");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = as_text(data, size);
  const auto whole = cut_in_pieces(bytes, std::max<std::size_t>(size, 1));
  require(whole.numbers.size() <= size / kShort, "bpf_records: a record has its bytes");
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, kShort})
    require(cut_in_pieces(bytes, piece) == whole, "bpf_records: the same from any pieces");
  const auto processes = known_processes();
  const DeviceNodes nodes{{}, {}};
  for (const bool is_watching : {false, true}) {
    BpfFindings found(processes, nodes, is_watching, [](pid_t a, pid_t b) { return ((a ^ b) & 1) == 0; });
    BpfRecordStream stream;
    (void)stream.feed(bytes, [&](const BpfRecord& record) {
      found.take_descriptor(record);
      found.take_mapping(record);
    });
    found.leave_out_restless();
    sort_as_walked(found.hits, found.files);
    require_known(found, size);
  }
  return 0;
}
