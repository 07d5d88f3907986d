// SPDX-License-Identifier: Apache-2.0
// Units laid out over those of the machine, in a mount namespace of the test's own. The orders are those that
// `systemctl cat` of systemd 252 prints for the same files.
#include "app/find_unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "app/unit.h"
#include "os/test_mounts.h"
#include "os/unit_files.h"

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kEtc = "/etc/systemd/system";
constexpr const char* kLib = "/usr/lib/systemd/system";

bool lay_out_folders() {
  for (const std::string folder : {kEtc, kLib}) {
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    if (mount("none", folder.c_str(), "tmpfs", 0, "mode=0755") != 0) return false;
  }
  return true;
}

void write(const std::string& path, const std::string& text = "[Service]\nExecStart=/bin/true\n") {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

std::vector<std::string> paths_of(const std::string& name) {
  std::vector<std::string> paths;
  const auto unit = find_unit(*parse_service_name(name));
  if (!unit) return {unit.error().message};
  for (const auto& source : unit->sources) paths.push_back(source.path);
  return paths;
}

TEST(FindUnit, ReadsDropinsInTheManagersOrder) {
  vacate::testing::in_mount_namespace(lay_out_folders, [] {
    const std::string etc = kEtc, lib = kLib;
    write(lib + "/a-b@.service");
    write(etc + "/a-b@1.service.d/x.conf");
    write(etc + "/a-b@.service.d/x.conf");
    write(etc + "/a-.service.d/x.conf");
    write(etc + "/a-.service.d/y.conf");
    write(etc + "/service.d/y.conf");
    write(etc + "/service.d/zz.conf");
    write(lib + "/a-b@1.service.d/y.conf");
    write(lib + "/a-b@1.service.d/aa.conf");
    write(lib + "/a-b@1.service.d/masked.conf");
    write(etc + "/a-b@1.service.d/masked.conf", "");
    write(etc + "/a-b@1.service.d/no.txt");
    EXPECT_THAT(paths_of("a-b@1"),
                ElementsAre(lib + "/a-b@.service", lib + "/a-b@1.service.d/aa.conf", etc + "/a-b@1.service.d/x.conf",
                            etc + "/a-.service.d/y.conf", etc + "/service.d/zz.conf"));
  });
}

TEST(FindUnit, FollowsAliasesToTheUnit) {
  vacate::testing::in_mount_namespace(lay_out_folders, [] {
    const std::string etc = kEtc, lib = kLib;
    write(lib + "/llm.service");
    write(etc + "/other.service.d/x.conf");
    ASSERT_EQ(symlink((lib + "/llm.service").c_str(), (etc + "/other.service").c_str()), 0);
    EXPECT_EQ(find_unit(*parse_service_name("other"))->name, "llm.service");
    const std::vector<std::string> both{lib + "/llm.service", etc + "/other.service.d/x.conf"};
    EXPECT_EQ(paths_of("other"), both);
    EXPECT_EQ(paths_of("llm"), both);
  });
}

TEST(FindUnit, TellsMaskedFromMissing) {
  vacate::testing::in_mount_namespace(lay_out_folders, [] {
    const std::string etc = kEtc, lib = kLib;
    write(lib + "/llm.service");
    ASSERT_EQ(symlink("/dev/null", (etc + "/llm.service").c_str()), 0);
    const auto masked = find_unit(*parse_service_name("llm"));
    ASSERT_TRUE(masked);
    EXPECT_EQ(masked->masked_by, etc + "/llm.service");
    EXPECT_THAT(masked->sources, IsEmpty());
    EXPECT_EQ(find_unit(*parse_service_name("none")).error().code, ErrorCode::gone);
    EXPECT_EQ(lint_unit_of("none").error().code, ErrorCode::malformed);
  });
}

TEST(FindUnit, ReadsAFileWithTheDropinsBesideIt) {
  vacate::testing::in_mount_namespace(lay_out_folders, [] {
    const std::string etc = kEtc;
    write(etc + "/x/llm.service",
          "[Service]\nExecStart=/bin/echo $A ${B}\nEnvironmentFile=/etc/systemd/system/x/env\n");
    write(etc + "/x/llm.service.d/k.conf", "[Service]\nKillMode=none\n");
    write(etc + "/x/env", "A=1\nB=2\n");
    const auto lint = lint_unit_of(etc + "/x/llm.service");
    ASSERT_TRUE(lint);
    EXPECT_THAT(lint->files, SizeIs(2));
    ASSERT_THAT(lint->findings, SizeIs(1));
    EXPECT_EQ(lint->findings.front().code, "kill-mode");
    EXPECT_EQ(lint_unit_of(etc + "/x").error().code, ErrorCode::malformed);
    EXPECT_EQ(lint_unit_of(etc + "/x/none.service").error().code, ErrorCode::malformed);
  });
}

TEST(InstallDropin, WritesAtomicallyAndReplacesOnlyItsOwn) {
  vacate::testing::in_mount_namespace(lay_out_folders, [] {
    const std::string path = std::string(kEtc) + "/llm.service.d/vacate.conf";
    const auto install = [](std::string_view text) { return install_dropin(kEtc, "llm.service", text, "# ours"); };
    ASSERT_TRUE(install("# ours 1\n"));
    ASSERT_TRUE(install("# ours 2\n"));
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777U, 0644U);
    std::size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(std::string(kEtc) + "/llm.service.d"))
      ++entries;
    EXPECT_EQ(entries, 1U);  // nothing is left beside it
    write(path, "[Service]\nUser=x\n");
    EXPECT_EQ(install("# ours 3\n").error().code, ErrorCode::refused);
    unlink(path.c_str());
    ASSERT_EQ(symlink("/etc/passwd", path.c_str()), 0);
    EXPECT_EQ(install("# ours 3\n").error().code, ErrorCode::refused);
    unlink(path.c_str());
    ASSERT_EQ(chmod((std::string(kEtc) + "/llm.service.d").c_str(), 0777), 0);
    const auto writable = install("# ours 3\n");
    EXPECT_EQ(writable.error().code, ErrorCode::refused);
    EXPECT_THAT(writable.error().message, HasSubstr("others than root"));
  });
}

TEST(ReloadServiceManager, SaysWhereNobodyListens) {
  EXPECT_EQ(
      reload_service_manager(Deadline::after(std::chrono::seconds(10)), "/run/vacate-no-such-socket").error().code,
      ErrorCode::gone);
}

}  // namespace
}  // namespace vacate
