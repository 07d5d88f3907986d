// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/text.h"

namespace lab {
namespace {

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

/// printable() leaves valid UTF-8 without control characters, all of which XML can hold.
std::string attribute(std::string_view text) { return escape(vacate::printable(text)); }

std::string content(std::string_view text) {
  std::string lines;
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (const std::string_view line : vacate::split(text, '\n')) lines += vacate::printable(line, 8192) + "\n";
  return escape(lines);
}

std::string testcase(const CaseResult& result) {
  std::string text = fmt::format("  <testcase name=\"{}\" classname=\"lab\" file=\"{}\" time=\"{:.3f}\"",
                                 attribute(result.name), attribute(result.path), result.seconds);
  switch (result.verdict) {
    case Verdict::passed:
      return text + "/>\n";
    case Verdict::skipped:
      return text + fmt::format("><skipped message=\"{}\"/></testcase>\n", attribute(result.details));
    case Verdict::failed:
      break;
  }
  return text + fmt::format("><failure message=\"{}\">{}</failure></testcase>\n", attribute(result.title),
                            content(result.details));
}

}  // namespace

std::string junit_text(const std::vector<CaseResult>& results) {
  const auto count = [&](Verdict verdict) {
    return std::count_if(results.begin(), results.end(), [&](const CaseResult& r) { return r.verdict == verdict; });
  };
  double seconds = 0;
  std::string cases;
  for (const CaseResult& result : results) {
    seconds += result.seconds;
    cases += testcase(result);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"vacate-lab\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.3f}\">\n"
      "{}</testsuite>\n",
      results.size(), count(Verdict::failed), count(Verdict::skipped), seconds, cases);
}

vacate::Result<void> write_junit(const std::string& path, const std::vector<CaseResult>& results) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (!(file << junit_text(results)) || !file.flush()) return vacate::system_error(path);
  return {};
}

}  // namespace lab
