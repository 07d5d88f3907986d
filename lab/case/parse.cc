// SPDX-License-Identifier: Apache-2.0
#include "lab/case/parse.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "lab/case/read.h"

namespace lab {
namespace {

constexpr std::uintmax_t kMaxFileSize = 4 << 20;

void read_story(TableReader& root, Case& result) {
  if (root.find("title") == nullptr) root.missing("title", "tell the story in a sentence");
  result.title = root.text("title");
  result.report = plain(root.texts("report"));
  result.wrong = root.text("wrong");
}

}  // namespace

vacate::Result<Case> parse_case(std::string_view text, const std::string& path) {
  Complaints complaints(path);
  Case result;
  result.path = path;
  result.name = std::filesystem::path(path).stem().string();
  const TomlNode document = parse_document(text, complaints);
  if (!complaints.empty()) return complaints.error();  // nothing more can be said about what is no TOML
  TableReader root(document, "the case", complaints);
  read_story(root, result);
  read_machine(root, result);
  read_actors(root, result);
  read_services(root, result);
  read_steps(root, result);
  root.finish();
  if (!complaints.empty()) return complaints.error();
  return result;
}

vacate::Result<Case> read_case(const std::string& path) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(path, failure);
  if (failure) return vacate::system_error(path, failure.value());
  if (size > kMaxFileSize) {
    return vacate::Error{vacate::ErrorCode::malformed,
                         fmt::format("{}: has {} bytes, a case has at most {}", path, size, kMaxFileSize)};
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  if (!file || !file.read(text.data(), static_cast<std::streamsize>(size))) return vacate::system_error(path);
  return parse_case(text, path);
}

}  // namespace lab
