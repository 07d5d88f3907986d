// SPDX-License-Identifier: Apache-2.0
// The client side of driver.h: reads and uses the lab's own `control` file of a mounted driver.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lab/driver/driver.h"

namespace lab {

using nlohmann::json;
using vacate::Bytes;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

namespace {

Result<UniqueFd> open_control(const std::string& mount_dir) {
  const std::string path = mount_dir + "/control";
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error(fmt::format("open {}", path));
  return file;
}

Result<std::string> read_all(int fd) {
  std::string text;
  std::array<char, 65536> piece{};
  for (;;) {
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read control");
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

GpuUsage gpu_of(const json& from) {
  return {.index = from.at("index"),
          .minor = from.at("minor"),
          .state = static_cast<GpuState>(from.at("state").get<std::uint32_t>()),
          .total = Bytes{from.at("total")},
          .reserved = Bytes{from.at("reserved")},
          .used = Bytes{from.at("used")},
          .falling = Bytes{from.at("falling")},
          .last_release_ns = from.at("last_release_ns")};
}

ClientState client_of(const json& from) {
  ClientState client;
  client.token = from.at("token");
  client.ns_pids = from.at("ns_pids").get<std::vector<pid_t>>();
  client.opener = client.ns_pids.at(0);
  client.references = from.at("references");
  for (const json& part : from.at("memory")) {
    client.memory.push_back({.gpu = part.at("gpu"),
                             .list = static_cast<ListKind>(part.at("list").get<std::uint32_t>()),
                             .bytes = Bytes{part.at("bytes")}});
  }
  return client;
}

}  // namespace

Result<DriverState> read_driver_state(const std::string& mount_dir) {
  auto file = open_control(mount_dir);
  if (!file) return file.error();
  auto text = read_all(file->get());
  if (!text) return text.error();
  try {
    const json parsed = json::parse(*text);
    DriverState state;
    for (const json& gpu : parsed.at("gpus")) state.gpus.push_back(gpu_of(gpu));
    for (const json& client : parsed.at("clients")) state.clients.push_back(client_of(client));
    return state;
  } catch (const std::exception& defect) {  // the writer is ours, so this is a defect of the lab
    return Error{ErrorCode::bug, fmt::format("driver state: {}", defect.what())};
  }
}

Result<void> set_gpu_state(const std::string& mount_dir, std::uint32_t gpu_index, GpuState state) {
  auto file = open_control(mount_dir);
  if (!file) return file.error();
  const GpuStateRequest request{.gpu_index = gpu_index, .state = static_cast<std::uint32_t>(state)};
  if (ioctl(file->get(), kSetGpuState, &request) != 0)
    return system_error(fmt::format("set the state of gpu {}", gpu_index));
  return {};
}

}  // namespace lab
