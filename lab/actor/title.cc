// SPDX-License-Identifier: Apache-2.0
// prctl(PR_SET_MM_MAP): points the kernel at memory of our own for the command line. Unlike writing over argv it has
// room for any title, and unlike PR_SET_MM_ARG_START it needs no capability.
#include "lab/actor/title.h"

#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/text.h"

namespace lab {
namespace {

using vacate::Result;
using vacate::system_error;

/// Fields of /proc/self/stat by their number in proc(5).
enum StatField : std::size_t {
  kStartCode = 26,
  kEndCode = 27,
  kStartStack = 28,
  kStartData = 45,
  kEndData = 46,
  kStartBrk = 47,
  kEnvStart = 50,
  kEnvEnd = 51,
};

/// The memory layout as it is now; PR_SET_MM_MAP wants all of it.
Result<prctl_mm_map> read_layout() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t paren = text.rfind(')');
  if (paren == std::string::npos) return vacate::Error{vacate::ErrorCode::io, "cannot read /proc/self/stat"};
  const auto words = vacate::split(vacate::trim(std::string_view(text).substr(paren + 1)), ' ');
  const auto field = [&words](StatField number) -> std::uint64_t {
    return number - 3 < words.size() ? vacate::parse_unsigned(words[number - 3]).value_or(0) : 0;
  };
  prctl_mm_map map{};
  map.start_code = field(kStartCode);
  map.end_code = field(kEndCode);
  map.start_data = field(kStartData);
  map.end_data = field(kEndData);
  map.start_brk = field(kStartBrk);
  map.brk = reinterpret_cast<std::uintptr_t>(sbrk(0));
  map.start_stack = field(kStartStack);
  map.env_start = field(kEnvStart);
  map.env_end = field(kEnvEnd);
  map.exe_fd = static_cast<std::uint32_t>(-1);
  return map;
}

}  // namespace

Result<void> set_cmdline(const std::vector<std::string>& words) {
  std::string bytes;
  for (const std::string& word : words) bytes.append(word).push_back('\0');
  auto map = read_layout();
  if (!map) return map.error();
  // Never freed: it is read for as long as the process lives.
  void* memory = mmap(nullptr, bytes.size() + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error("cannot map the command line");
  std::memcpy(memory, bytes.data(), bytes.size());
  map->arg_start = reinterpret_cast<std::uintptr_t>(memory);
  map->arg_end = map->arg_start + bytes.size();
  if (prctl(PR_SET_MM, PR_SET_MM_MAP, &*map, sizeof *map, 0) != 0) return system_error("cannot set the command line");
  return {};
}

void set_comm(std::string_view name) noexcept {
  const std::string cut(name.substr(0, 15));
  prctl(PR_SET_NAME, cut.c_str());
}

std::string_view base_name(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace lab
