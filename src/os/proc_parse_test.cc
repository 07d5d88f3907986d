// SPDX-License-Identifier: Apache-2.0
// Tables of what /proc writes, and of what a hostile process or a strange kernel could make it write.
#include "os/proc_parse.h"

#include <gmock/gmock.h>
#include <sys/sysmacros.h>

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string stat_line(std::string_view pid, std::string_view comm,
                      std::string_view after = "S 1 42 42 34816 42 4194560 1 2 3 4 5 6 7 8 20 0 3 0 156405 1 2") {
  return std::string(pid) + " (" + std::string(comm) + ") " + std::string(after) + "\n";
}

TEST(ParseStat, ReadsTheFieldsOfProc5) {
  const auto stat = parse_stat(stat_line("42", "python3"));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 42);
  EXPECT_EQ(stat->comm, "python3");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->ppid, 1);
  EXPECT_EQ(stat->pgid, 42);
  EXPECT_EQ(stat->sid, 42);
  EXPECT_EQ(stat->tty, 34816U);
  EXPECT_EQ(stat->threads, 3U);
  EXPECT_EQ(stat->start_ticks, 156405U);
  EXPECT_FALSE(stat->is_kernel_thread());
  EXPECT_FALSE(stat->is_exiting());
}

TEST(ParseStat, ACommMayHoldAnything) {
  for (const char* comm :
       {"", ")", "(", ") S 1 (", "a) R 0 0 0", "line\nend", ") Z 0 0 0 0 0 0", "\xff\xfe", "((()))"}) {
    const auto stat = parse_stat(stat_line("7", comm));
    ASSERT_TRUE(stat) << comm;
    EXPECT_EQ(stat->comm, comm);
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->ppid, 1);
  }
}

TEST(ParseStat, RefusesWhatIsNotOne) {
  for (const auto& text :
       {std::string(), std::string("42"), std::string("42 (x"), std::string("42 x) S 1"), std::string(") ("),
        stat_line("42", "x", "S 1 42"), stat_line("-1", "x"), stat_line("x", "x"), stat_line("99999999999", "x"),
        stat_line("42", "x", "SS 1 1 1 0 0 0 1 2 3 4 5 6 7 8 20 0 3 0 1 1 2"),
        stat_line("42", "x", "S -1 1 1 0 0 0 1 2 3 4 5 6 7 8 20 0 3 0 1"),
        stat_line("42", "x", "S 1 1 1 0 0 0 1 2 3 4 5 6 7 8 20 0 3 0 -1"),
        stat_line("42", "x", "S 1 1 1 0 0 99999999999 1 2 3 4 5 6 7 8 20 0 3 0 1"), std::string("42 (x)\0", 7)})
    EXPECT_FALSE(parse_stat(text)) << text;
}

TEST(ParseStat, GroupsLedFromOutsideAreNone) {
  const auto stat = parse_stat(stat_line("42", "x", "S 0 0 0 0 -1 2097216 1 2 3 4 5 6 7 8 20 0 1 0 9 1 2"));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pgid, 0);
  EXPECT_TRUE(stat->is_kernel_thread());
  EXPECT_EQ(parse_stat(stat_line("42", "x", "X 0 -1 -1 0 -1 4 1 2 3 4 5 6 7 8 20 0 0 0 9 1 2"))->sid, 0);
  EXPECT_TRUE(parse_stat(stat_line("42", "x", "X 0 -1 -1 0 -1 4 1 2 3 4 5 6 7 8 20 0 0 0 9 1 2"))->is_exiting());
}

TEST(ParseStatus, ReadsWhatIsThere) {
  const auto status = parse_status_fields(
      "Name:\tx\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t30185\t2\nCoreDumping:\t1\nSeccomp:\t2\nCapEff:"
      "\t000001ffffffffff\n");
  EXPECT_EQ(status.effective_uid, uid_t{1001});
  EXPECT_THAT(status.ns_pids, ElementsAre(30185, 2));
  EXPECT_TRUE(status.core_dumping);
  EXPECT_TRUE(status.filters_calls);
  EXPECT_EQ(status.effective_capabilities, 0x1ffffffffffU);
}

TEST(ParseStatus, MissingAndMalformedFieldsAreAbsent) {
  for (const char* text : {"", "\n\n", "Uid", "Uid:", "Uid:\t1000", "Uid:\tx\ty", "Uid:\t0\t-1\t0\t0",
                           "Uid:\t0\t99999999999\t0\t0", "xUid:\t0\t0\t0\t0"})
    EXPECT_FALSE(parse_status_fields(text).effective_uid) << text;
  EXPECT_THAT(parse_status_fields("NSpid:\t1\tx").ns_pids, IsEmpty());
  EXPECT_FALSE(parse_status_fields("CoreDumping:\t0\n").core_dumping);
  EXPECT_FALSE(parse_status_fields("Seccomp:\t0\nSeccomp_filters:\t0\n").filters_calls);
  // The kernel writes the line end of a name as "\n" in two characters: no name can make a line of its own.
  EXPECT_FALSE(parse_status_fields("Name:\tx\\nUid:\t0\t0\t0\t0\n").effective_uid);
}

TEST(ParseFdInfo, TellsHowADescriptorWasOpened) {
  const auto info = parse_fdinfo("pos:\t0\nflags:\t02100002\nmnt_id:\t15\nino:\t1\n");
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->close_on_exec());
  EXPECT_FALSE(info->is_path_only());
  EXPECT_TRUE(parse_fdinfo("flags:\t012100000\n")->is_path_only());
  EXPECT_EQ(parse_fdinfo("flags:\t02\nscm_fds: 3\n")->scm_fds, 3U);
  for (const char* text :
       {"", "flags", "flags:\t", "flags:\t9", "flags:\t-2", "flags:\t777777777777777777777", "pos:\t0\n"})
    EXPECT_FALSE(parse_fdinfo(text) && text[0] != '\0' && parse_fdinfo(text)->flags != 0) << text;
  EXPECT_FALSE(parse_fdinfo("pos:\t0\n"));
}

TEST(ParseFdInfo, ListsFilesOfARing) {
  const auto info = parse_fdinfo(
      "flags:\t02\nSqMask:\t0x7\nUserFiles:\t2\n    0: /dev/nvidia0\n    1: /tmp/a: b\nUserBufs:\t0\n    0: /no\n");
  ASSERT_TRUE(info);
  EXPECT_THAT(info->user_files, ElementsAre("/dev/nvidia0", "/tmp/a: b"));
}

TEST(ParseMapsLine, ReadsEachKind) {
  const auto file = parse_maps_line("7f00a000-7f00b000 rw-s 00001000 00:06 11385090                   /dev/nvidia3");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->range, "7f00a000-7f00b000");
  EXPECT_EQ(file->device, makedev(0, 6));
  EXPECT_EQ(file->inode, 11385090U);
  EXPECT_EQ(file->path, "/dev/nvidia3");
  EXPECT_EQ(parse_maps_line("7f00a000-7f00b000 rw-p 00000000 00:00 0")->inode, 0U);
  EXPECT_EQ(parse_maps_line("1-2 r--p 0 fd:01 5  /a b (deleted)")->path, "/a b (deleted)");
  EXPECT_EQ(parse_maps_line("1-2 r--p 0 fd:01 5  /a b (deleted)")->device, makedev(0xfd, 1));
}

TEST(ParseMapsLine, RefusesTheRest) {
  for (const char* line : {"", " ", "x", "1-2", "1-2 r--p", "1-2 r--p 0", "1-2 r--p 0 fd:01", "1-2 r--p 0 fd01 5",
                           "1-2 r--p 0 fd:zz 5", "1-2 r- 0 fd:01 5", "1-2 r--p 0 fd:01 -5", "12 r--p 0 fd:01 5",
                           "../../1-2 r--p 0 fd:01 5", "1-2 r--p 0 fffffffff:01 5"})
    EXPECT_FALSE(parse_maps_line(line)) << line;
}

TEST(ParseCgroup, PrefersTheUnifiedOne) {
  EXPECT_EQ(parse_cgroup("0::/system.slice/llm.service\n"), "/system.slice/llm.service");
  EXPECT_EQ(parse_cgroup("3:memory:/m\n1:name=systemd:/s\n0::/u\n"), "/u");
  EXPECT_EQ(parse_cgroup("3:memory:/m\n1:name=systemd:/s\n0::/\n"), "/s");
  EXPECT_EQ(parse_cgroup("4:cpu,memory:/m\n2:pids:/p\n1:name=systemd:/\n0::/\n"), "/m");
  EXPECT_EQ(parse_cgroup("2:pids:/docker/x\n"), "/docker/x");
  EXPECT_EQ(parse_cgroup("0::/\n"), "/");
  EXPECT_EQ(parse_cgroup("0::/a:b:c\n"), "/a:b:c");
  for (const char* text : {"", "\n", "x", "0:", "x::/u", "::"}) EXPECT_EQ(parse_cgroup(text), "") << text;
}

TEST(ParseCgroup, PrefersWhatNamesAJobOrAContainer) {
  EXPECT_EQ(parse_cgroup("9:freezer:/slurm/uid_1000/job_7/step_0\n4:memory:/slurm/uid_1000/job_7/step_0/task_0\n"
                         "1:name=systemd:/system.slice/slurmd.service\n0::/system.slice/slurmd.service\n"),
            "/slurm/uid_1000/job_7/step_0/task_0");
  EXPECT_EQ(parse_cgroup("9:freezer:/slurm/uid_1000/job_7/step_0\n1:name=systemd:/system.slice/slurmd.service\n"),
            "/slurm/uid_1000/job_7/step_0");
  const std::string docker = "/docker/" + std::string(64, 'a');
  EXPECT_EQ(parse_cgroup("4:memory:" + docker + "\n1:name=systemd:/system.slice/docker.service\n0::/\n"), docker);
  EXPECT_EQ(parse_cgroup("9:freezer:/x\n1:name=systemd:/\n"), "/") << "a freezer's cgroup alone tells nothing";
}

TEST(ParseDevices, FindsCharacterMajorsOnly) {
  static constexpr std::string_view kDevices =
      "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n511 nvidia-uvm\n510 nvidia-uvm-x\n\nBlock devices:\n  8 "
      "nvidia-caps\n";
  EXPECT_THAT(parse_character_majors(kDevices, "nvidia-uvm"), ElementsAre(511U));
  EXPECT_THAT(parse_character_majors(kDevices, "nvidia"), ElementsAre(195U));
  EXPECT_THAT(parse_character_majors(kDevices, "nvidia-caps"), IsEmpty());
  EXPECT_THAT(parse_character_majors(kDevices, "uvm"), IsEmpty());
  EXPECT_THAT(parse_character_majors("Character devices:\n99999 x\nx x\n231 x\n500 x\n", "x"), ElementsAre(231U, 500U));
}

TEST(ParseKernelStack, ReadsFramesOfEveryKernel) {
  const auto frames = parse_kernel_stack(
      "[<0>] request_wait_answer+0x13e/0x210 [fuse]\n[<ffffffff8110a3b0>] do_syscall_64+0x5b/0x1a0\n"
      "[<0>] nvidia_ioctl+0x1/0x2 [nvidia 0123456789abcdef]\n[<ffffffffffffffff>] 0xffffffffffffffff\n");
  EXPECT_THAT(frames, ElementsAre(KernelFrame{"request_wait_answer", "fuse"}, KernelFrame{"do_syscall_64", ""},
                                  KernelFrame{"nvidia_ioctl", "nvidia"}));
}

TEST(ParseKernelStack, TakesAnything) {
  EXPECT_THAT(parse_kernel_stack(""), IsEmpty());
  for (const char* text :
       {"\n\n", "[<0>]", "[<0>] ", "[<0>] f", "[<0>] +0x1/0x2", "f+0x1/0x2", "[<0>]\nf+0x1/0x2", "[<0> f+0x1", "\0"})
    EXPECT_THAT(parse_kernel_stack(text), IsEmpty()) << text;
  EXPECT_THAT(parse_kernel_stack("[<0>] f+0x1/0x2 ["), ElementsAre(KernelFrame{"f", ""}));
  EXPECT_THAT(parse_kernel_stack("[<0>] f+0x1/0x2 []"), ElementsAre(KernelFrame{"f", ""}));
  EXPECT_THAT(parse_kernel_stack("[<0>] " + std::string(100000, 'f') + "+0x1/0x2\n"), IsEmpty());
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "[<0>] f+0x1/0x2\n";
  EXPECT_EQ(parse_kernel_stack(many).size(), 64U);
}

TEST(ClassifyKernelStack, TheTopmostFrameThatTells) {
  struct Row {
    const char* text;
    StuckIn where;
  };
  for (const auto& row :
       {Row{"", StuckIn::unknown},
        {"[<0>] os_acquire_semaphore+0x1/0x2 [nvidia]\n", StuckIn::gpu_driver},
        {"[<0>] msleep+0x1/0x2\n[<0>] os_delay+0x1/0x2 [nvidia]\n", StuckIn::gpu_driver},
        {"[<0>] uvm_va_space_destroy+0x1/0x2 [nvidia_uvm]\n", StuckIn::gpu_driver},
        {"[<0>] request_wait_answer+0x1/0x2 [fuse]\n", StuckIn::fuse},
        {"[<0>] request_wait_answer+0x1/0x2\n", StuckIn::fuse},
        {"[<0>] __fuse_simple_request+0x1/0x2\n", StuckIn::fuse},
        {"[<0>] rpc_wait_bit_killable+0x1/0x2 [sunrpc]\n", StuckIn::nfs},
        {"[<0>] folio_wait_bit_common+0x1/0x2\n[<0>] nfs_file_read+0x1/0x2\n", StuckIn::nfs},
        {"[<0>] ceph_read+0x1/0x2 [ceph]\n[<0>] nvidia_ioctl+0x1/0x2 [nvidia]\n", StuckIn::other_module},
        {"[<0>] nvidia_like+0x1/0x2 [nvidia_x]\n", StuckIn::other_module},
        {"[<0>] io_schedule+0x1/0x2\n[<0>] do_syscall_64+0x1/0x2\n", StuckIn::kernel}})
    EXPECT_EQ(classify_kernel_stack(parse_kernel_stack(row.text)), row.where) << row.text;
}

TEST(ParseLoginUid, UnsetIsNobody) {
  EXPECT_EQ(parse_login_uid("1000"), 1000U);
  EXPECT_EQ(parse_login_uid("0\n"), 0U);
  for (const char* text : {"4294967295", "4294967296", "", "-1", "x", "1 2"})
    EXPECT_FALSE(parse_login_uid(text)) << text;
}

TEST(ParseFdInfo, KnowsTheExporterOfADmaBuf) {
  const auto info = parse_fdinfo(
      "pos:\t0\nflags:\t02000002\nsize:\t4096\ncount:\t2\nexp_name:\tnv_dmabuf\nname:\tx\nexp_name:\tudmabuf\n");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->exporter, "nv_dmabuf");
  EXPECT_EQ(parse_fdinfo("flags:\t0\n")->exporter, "");
}

TEST(ParseListening, TakesListenersOnly) {
  static constexpr std::string_view kTcp =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 "
      "0000000000000000 100 0 0 10 0\n"
      "   1: 0100007F:1F41 0100007F:0001 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n"
      "   2: 0100007F:1F42 00000000:0000 0A\n"
      "   3: 0100007F:1F42 00000000:0000 0A 0 0 0 0 0 0 x\n";
  EXPECT_THAT(parse_listening_inodes(kTcp), ElementsAre(4711U));
  EXPECT_THAT(parse_listening_inodes(""), IsEmpty());
}

TEST(ParseWords, DropsThePaddingOfATitle) {
  EXPECT_THAT(parse_words(std::string_view("a\0b\0", 4)), ElementsAre("a", "b"));
  EXPECT_THAT(parse_words(std::string_view("VLLM::Worker\0\0\0\0", 16)), ElementsAre("VLLM::Worker"));
  EXPECT_THAT(parse_words(std::string_view("a\0\0b", 4)), ElementsAre("a", "", "b"));
  EXPECT_THAT(parse_words(std::string_view("\0\0", 2)), IsEmpty());
  EXPECT_THAT(parse_words(""), IsEmpty());
}

TEST(ParseMounts, KnowsHidepidInEverySpelling) {
  const auto hides = [](const std::string& options) {
    return parse_proc_mount("21 26 0:20 / /proc rw,relatime shared:1 - proc proc rw," + options + "\n").hides_processes;
  };
  EXPECT_TRUE(hides("hidepid=2"));
  EXPECT_TRUE(hides("gid=5,hidepid=invisible"));
  EXPECT_TRUE(hides("hidepid=ptraceable"));
  EXPECT_FALSE(hides("hidepid=1"));
  EXPECT_TRUE(parse_proc_mount("21 26 0:20 / /proc rw - proc proc rw,hidepid=noaccess\n").denies_access);
  EXPECT_FALSE(parse_proc_mount("21 26 0:20 / /mnt rw - proc proc rw,hidepid=2\n").hides_processes);
  EXPECT_FALSE(
      parse_proc_mount("21 26 0:20 / /proc rw - proc proc rw,hidepid=2\n22 21 0:21 / /proc rw - proc proc rw\n")
          .hides_processes);
  EXPECT_EQ(parse_cgroup2_mount("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"), "/sys/fs/cgroup");
  EXPECT_EQ(parse_cgroup2_mount("30 23 0:26 / /sys/fs/cgroup rw cgroup2\n - \n"), "");
}

TEST(ParseBracketedInode, OfNamespaceAndSocketLinks) {
  EXPECT_EQ(parse_bracketed_inode("pid:[4026531836]"), 4026531836U);
  for (const char* text : {"", "pid", "pid:[", "pid:[]", "pid:[x]", "pid:[1", "/dev/null"})
    EXPECT_FALSE(parse_bracketed_inode(text)) << text;
}

}  // namespace
}  // namespace vacate
