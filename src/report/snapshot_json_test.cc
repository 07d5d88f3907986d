// SPDX-License-Identifier: Apache-2.0
#include "report/snapshot_json.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace vacate {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

/// One of everything.
Snapshot machine() {
  Snapshot s;
  s.host = {"b0071d", "6.1.0", "node7", 4026531836, true};
  s.caller = {{90, 900, 7, 4026531836}, {80, 1}, 80, 1000, false, {"/user.slice/session-2.scope"}};
  s.driver = {"nvidia", "580.95.05", DriverState::ok, ""};
  s.time = 1700000000.125;
  s.nodes = {{NodeRole::ctl, "/dev/nvidiactl", {}, 49919, 0, 0}, {NodeRole::gpu, "/dev/nvidia1", 1, {}, 5, 77}};
  Gpu gpu;
  gpu.uuid = "GPU-1";
  gpu.minor = 1U;
  gpu.memory = {gibibytes(80), Unknown::timed_out, Unknown::not_supported, Bytes{~std::uint64_t{0}}};
  gpu.persistence = true;
  gpu.recovery_action = 2U;
  s.gpus = {gpu};
  s.charges = {{0, 70, mebibytes(100), {ContextKind::compute, ContextKind::mps}, {1, 2}}, {0, 71, Unknown::failed, {}}};
  Process process;
  process.key = {70, 700, 0, 4026531836};
  process.comm = "py\"thon\x1b";
  process.state = 'S';
  process.exe = std::string("/opt/\xff\xfe/python");
  process.argv = std::vector<std::string>{"", std::string("a\0b", 3), "\xe2\x80\xae"};
  process.uid = uid_t{4294967294U};
  process.started = 0.1 + 0.2;
  process.named_parent = 5;
  process.ns_pids = {70, 1};
  process.pipes = {{3, 11, true, true, -1e-17, std::vector<pid_t>{70, 90}, false}, {-1, 12, false, false, {}, {}}};
  std::swap(process.pipes[0], process.pipes[1]);
  process.login_uid = 1000;
  s.processes = {process};
  s.references = {{70, EvidenceKind::mapping, 1, 2, "fd 12"}};
  s.shared_clients = {{70, 90}};
  s.hidden_references = {{70, HiddenKind::io_uring_file, 9, 1, "/dev/nvidia\xc3\x28"}};
  s.services = {true, {{"llm.service", "active", "running", 70, "always", 12.5}}};
  s.containers = {{"abc", Unknown::no_permission, "nobody"}};
  s.jobs = {{"123", false, "slurm"}};
  s.shells = {"/bin/sh", "/bin/bash"};
  s.visibility = {{{"fd-denied", "3 processes"}}, false};
  return s;
}

std::string recording_complaint(const std::string& text) {
  const auto parsed = parse_snapshot_json(text);
  return parsed ? "" : parsed.error().message;
}

TEST(SnapshotJson, ComesBackBitForBit) {
  const Recording recording{machine(), "0.1.0", true};
  const std::string text = render_snapshot_json(recording);
  const auto read = parse_snapshot_json(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, recording);
  EXPECT_EQ(render_snapshot_json(*read), text);
  EXPECT_EQ(*parse_snapshot_json(render_snapshot_json(Recording{})), Recording{});
}

TEST(SnapshotJson, IsSafeToLookThroughOnATerminal) {
  for (const char c : render_snapshot_json({machine(), "", false})) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7F));
}

TEST(SnapshotJson, WhatIsWrongIsSaidWithItsPlace) {
  const std::string good = render_snapshot_json({machine(), "0.1.0", false});
  const struct {
    const char *what, *with, *says;
  } kTable[] = {
      {"vacate.snapshot/1", "vacate.snapshot/2", "schema"},
      {"\"time\": 1700000000.125", "\"time\": \"now\"", "/snapshot/time: expected a number"},
      {"\"time\": 1700000000.125", "\"time\": 1e999", "not JSON from byte"},
      {"\"ppid\": 0", "\"ppid\": -1", "/snapshot/processes/0/ppid: expected a number from 0 to 2147483647, found -1"},
      {"\"ppid\": 0", "\"ppid\": 2147483648", "/snapshot/processes/0/ppid"},
      {"\"ppid\": 0", "\"ppid\": 1.0", "/snapshot/processes/0/ppid"},
      {"\"ppid\": 0,", "", "/snapshot/processes/0/ppid: is missing"},
      {"\"ppid\": 0", "\"ppid\": 0, \"pp\\u001bid\": 0", "unknown key 'pp\\x1bid'"},
      {"\"role\": \"ctl\"", "\"role\": \"controller\"", "/snapshot/nodes/0/role: expected one of its words"},
      {"\"role\": \"ctl\"", "\"role\": 1", "/snapshot/nodes/0/role"},
      {"\"unknown\": \"timed out\"", "\"unknown\": \"dunno\"", "/snapshot/gpus/0/memory/used/unknown"},
      {"\"node\": 1", "\"node\": 2", "/snapshot/references/0/node: there is no such node"},
      {"\"state\": \"S\"", "\"state\": \"SS\"", "/snapshot/processes/0/state: expected one character"},
      {"\"hex\": \"2f", "\"hex\": \"2", "exe"},
      {"\"whole_host\": true", "\"whole_host\": null", "/snapshot/host/whole_host: expected true or false, found null"},
      {"\"shells\": [", "\"shells\": [[[[[[[[[[[[[[[[[[[[[", "nested too deeply"},
      {"\"redacted\"", "\xff", "not JSON"},
  };
  for (const auto& row : kTable) {
    const std::string message = recording_complaint(replaced(good, row.what, row.with));
    EXPECT_NE(message.find(row.says), std::string::npos) << row.with << ": " << message;
    EXPECT_EQ(printable(message), message);
  }
}

TEST(SnapshotJson, AnOlderRecordingLacksWhatWasAddedSince) {
  const std::string text = render_snapshot_json({machine(), "0.1.0", false});
  const auto read = parse_snapshot_json(replaced(text, ",\n    \"login_user\": \"\"", ""));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->snapshot, machine());
}

TEST(SnapshotJson, ListsHaveToBeInOrder) {
  const auto refused = [](void (*spoil)(Snapshot&)) {
    Snapshot s = machine();
    spoil(s);
    return recording_complaint(render_snapshot_json({s, "", false}));
  };
  EXPECT_NE(refused([](Snapshot& s) { s.processes.push_back(s.processes[0]); }).find("/snapshot/processes/1"),
            std::string::npos);
  EXPECT_NE(refused([](Snapshot& s) { s.processes[0].key.pid = 0; }).find("/snapshot/processes/0"), std::string::npos);
  EXPECT_NE(refused([](Snapshot& s) { std::swap(s.charges[0], s.charges[1]); }).find("/snapshot/charges/1"),
            std::string::npos);
  EXPECT_NE(refused([](Snapshot& s) { s.shared_clients[0] = {70}; }).find("two members"), std::string::npos);
  EXPECT_NE(refused([](Snapshot& s) {
              s.shared_clients[0] = {90, 70};
            }).find("/snapshot/shared_clients/0/1"),
            std::string::npos);
  EXPECT_NE(refused([](Snapshot& s) { std::swap(s.processes[0].pipes[0], s.processes[0].pipes[1]); }).find("pipes"),
            std::string::npos);
  EXPECT_NE(refused([](Snapshot& s) { s.gpus.push_back(s.gpus[0]); }).find("/snapshot/gpus/1"), std::string::npos);
}

TEST(SnapshotJson, AnyBytesGiveAnAnswer) {
  const std::string good = render_snapshot_json({machine(), "0.1.0", false});
  for (const auto& text :
       {std::string(), std::string("\0", 1), std::string("{"), std::string("[]"), std::string("null"),
        std::string(100000, '['), std::string(100000, '{'), "{\"schema\":\"" + std::string(1000, 'x')})
    EXPECT_FALSE(recording_complaint(text).empty()) << text.substr(0, 20);
  ASSERT_EQ(good.back(), '\n');  // which a recording may lack
  for (std::size_t i = 0; i + 1 < good.size(); i += 7) EXPECT_FALSE(parse_snapshot_json(good.substr(0, i)));
  std::string keys = "{\"a\":0";
  for (int i = 0; i < 100; ++i) keys += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_NE(recording_complaint(keys + "}").find("too many keys"), std::string::npos);
  EXPECT_NE(recording_complaint(std::string(kLargestRecording + 1, ' ')).find("64 MiB"), std::string::npos);
}

}  // namespace
}  // namespace vacate
