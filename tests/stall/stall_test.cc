// SPDX-License-Identifier: Apache-2.0
// A scan beside a file system that no longer answers: descriptors, mappings, directories and programs on it, a process
// that cannot be killed for it and one whose command line cannot be read. None of them may hold the scan up, and each
// is still found to hold its GPU.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <iostream>

#include "os/procfs.h"
#include "probe/probe.h"
#include "probe/scan_bpf.h"
#include "tests/stall/silent_fuse.h"

namespace vacate {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr const char* kMount = "/mnt";
constexpr const char* kPython = "/usr/bin/python3";

bool make_machine() {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  const UniqueFd fuse(open("/dev/fuse", O_PATH | O_CLOEXEC));
  if (!fuse || mount("tmpfs", "/dev", "tmpfs", 0, nullptr) != 0) return false;
  for (const char* name : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/fuse"})
    if (!UniqueFd(open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0666))) return false;
  const std::string from = "/proc/self/fd/" + std::to_string(fuse.get());
  return mknod("/dev/null", S_IFCHR | 0666, 0x103) == 0 &&
         mount(from.c_str(), "/dev/fuse", nullptr, MS_BIND, nullptr) == 0;
}

/// Runs `check` in a process of its own, with device files in /dev and the silent file system.
void in_machine(const std::function<void(SilentFuse&)>& check) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for a mount namespace";
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);  // a scan that waits for ever ends here
    if (!make_machine()) _exit(77);
    {
      SilentFuse files(kMount, "/bin/sleep");
      if (!files.problem().empty()) _exit(77);
      check(files);
    }
    std::cout << std::flush;
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no FUSE in a mount namespace here";
  EXPECT_EQ(status, 0);
}

/// Forks; the child does what it should and becomes `program`. It has a GPU open. Returns when it is that program.
pid_t start(
    const char* program, const std::vector<const char*>& words, const std::function<void()>& prepare = [] {}) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)open("/dev/nvidia0", O_RDWR);
    prepare();
    auto argv = words;
    argv.push_back(nullptr);
    execv(program, const_cast<char**>(argv.data()));
    _exit(1);
  }
  const auto root = ProcDirectory::open_root();
  const auto last = std::string_view(program).substr(std::string_view(program).rfind('/') + 1);
  for (int i = 0; i < 1000 && root->open(pid)->stat()->comm != last; ++i) usleep(5000);
  return pid;
}

/// Python that does `script` and waits; returns when it has written a byte.
struct Python {
  explicit Python(const char* script) {
    int ready[2];
    int go[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(go, O_CLOEXEC), 0);
    pid = start(kPython, {"python3", "-S", "-E", "-c", script}, [&] {
      dup2(go[0], 0);
      dup2(ready[1], 1);
    });
    close(ready[1]);
    close(go[0]);
    said = UniqueFd(ready[0]);
    tell = UniqueFd(go[1]);
    char byte = 0;
    EXPECT_EQ(read(said.get(), &byte, 1), 1) << script;
  }
  pid_t pid = -1;
  UniqueFd said, tell;
};

std::string wchan_of(pid_t pid) {
  const auto root = ProcDirectory::open_root();
  const auto process = root->open(pid);
  return process ? process->read("wchan", 256).value_or("") : "";
}

bool waits_in(pid_t pid, std::string_view where) {
  for (int i = 0; i < 600; ++i) {
    if (wchan_of(pid).find(where) != std::string::npos) return true;
    usleep(5000);
  }
  return false;
}

bool reaches(pid_t pid, char state) {
  const auto root = ProcDirectory::open_root();
  for (int i = 0; i < 600; ++i) {
    const auto stat = root->stat_of(pid);
    if (stat && stat->state == state) return true;
    usleep(5000);
  }
  return false;
}

Scan scan(ScanMethod method = ScanMethod::procfs) {
  auto driver = DriverSession::start();
  Policy policy;
  policy.scan = method;
  return take_scan(*driver, policy);
}

/// The scans that there are here; a kernel without BPF is said by other tests.
std::vector<ScanMethod> methods() {
  if (check_bpf_scan()) return {ScanMethod::procfs, ScanMethod::bpf};
  return {ScanMethod::procfs};
}

bool holds_a_gpu(const Snapshot& snapshot, pid_t pid) {
  return std::any_of(snapshot.references.begin(), snapshot.references.end(), [&](const Reference& reference) {
    return reference.pid == pid && snapshot.nodes[reference.node].path == "/dev/nvidia0";
  });
}

TEST(Stall, NothingOnADeadFileSystemHoldsTheScanUp) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "needs python3";
  in_machine([](SilentFuse& files) {
    const pid_t descriptor =
        start("/bin/sleep", {"sleep", "300"}, [] { (void)open((std::string(kMount) + "/data").c_str(), O_RDONLY); });
    const pid_t directory = start("/bin/sleep", {"sleep", "300"}, [] { (void)!chdir(kMount); });
    const pid_t program = start("/mnt/program", {"program", "300"});
    const Python mapping(
        "import "
        "mmap,os,time\nf=os.open('/mnt/data',os.O_RDONLY)\nm=mmap.mmap(f,8192,prot=mmap.PROT_READ)\nos.close(f)\n"
        "os.write(1,b'x')\ntime.sleep(300)\n");
    files.fall_silent();
    for (const auto method : methods()) {
      const auto begin = Deadline::Clock::now();
      const auto seen = scan(method);
      const auto& snapshot = seen.snapshot;
      EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::seconds(3));
      EXPECT_EQ(seen.use.used, method) << seen.use.why;
      for (const pid_t pid : {descriptor, directory, program, mapping.pid})
        EXPECT_TRUE(holds_a_gpu(snapshot, pid)) << pid;
      EXPECT_EQ(snapshot.find(program)->exe, Reading<std::string>("/mnt/program"));
      EXPECT_TRUE(snapshot.find(mapping.pid)->argv.known());
    }
  });
}

TEST(Stall, WhoWaitsForItIsStuckInIt) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "needs python3";
  in_machine([](SilentFuse& files) {
    const Python stuck("import os\nf=os.open('/mnt/hang',os.O_RDONLY)\nos.write(1,b'x')\nos.read(f,10)\n");
    files.wait_for_reader();
    ASSERT_TRUE(waits_in(stuck.pid, "request_wait_answer"));
    // Only now that it has been asked to end does it wait uninterruptibly.
    ASSERT_TRUE(ProcessRef::open(stuck.pid)->send_signal(SIGKILL));
    ASSERT_TRUE(reaches(stuck.pid, 'D'));
    const auto snapshot = scan().snapshot;
    EXPECT_TRUE(holds_a_gpu(snapshot, stuck.pid));
    const auto* process = snapshot.find(stuck.pid);
    ASSERT_NE(process, nullptr);
    EXPECT_EQ(process->condition, Condition::stuck);
    EXPECT_EQ(process->wchan, "request_wait_answer");
    EXPECT_EQ(process->kernel_frame, "request_wait_answer");
    EXPECT_EQ(process->stuck_in, StuckIn::fuse);
  });
}

TEST(Stall, AThreadThatIsStuckKeepsAnEndedProcess) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "needs python3";
  in_machine([](SilentFuse& files) {
    const Python stuck(
        "import os,threading,time\nf=os.open('/mnt/hang',os.O_RDONLY)\n"
        "threading.Thread(target=lambda:(os.write(1,b'x'),os.read(f,10))).start()\ntime.sleep(300)\n");
    files.wait_for_reader();
    pid_t thread = 0;
    const auto tasks = ProcDirectory::open_root()->open(stuck.pid)->open("task");
    DirectoryReader reader;
    const auto tids = list_numbers(*tasks, reader);
    for (const pid_t tid : *tids)
      if (tid != stuck.pid) thread = tid;
    ASSERT_TRUE(waits_in(thread, "request_wait_answer"));
    ASSERT_TRUE(ProcessRef::open(stuck.pid)->send_signal(SIGKILL));
    ASSERT_TRUE(reaches(stuck.pid, 'Z'));
    ASSERT_TRUE(reaches(thread, 'D'));
    const auto snapshot = scan().snapshot;
    EXPECT_TRUE(holds_a_gpu(snapshot, stuck.pid));
    const auto* process = snapshot.find(stuck.pid);
    ASSERT_NE(process, nullptr);
    EXPECT_FALSE(is_gone(*process));
    EXPECT_EQ(process->condition, Condition::stuck);
    EXPECT_EQ(process->kernel_frame, "request_wait_answer");
    EXPECT_EQ(process->stuck_in, StuckIn::fuse);
  });
}

TEST(Stall, WhoExitsThroughItIsExiting) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "needs python3";
  in_machine([](SilentFuse&) {
    // The GPU's descriptor is the lower one and closed by then: this is a relative, not a holder.
    const Python exiting("import os,time\nf=os.open('/mnt/hang',os.O_RDONLY)\nos.write(1,b'x')\ntime.sleep(300)\n");
    const pid_t holder = start("/bin/sleep", {"sleep", "300"});
    ASSERT_TRUE(ProcessRef::open(exiting.pid)->send_signal(SIGKILL));
    ASSERT_TRUE(waits_in(exiting.pid, "request_wait_answer"));
    const auto snapshot = scan().snapshot;
    EXPECT_TRUE(holds_a_gpu(snapshot, holder));
    const auto* process = snapshot.find(exiting.pid);
    ASSERT_NE(process, nullptr);
    ASSERT_TRUE(process->detailed);
    EXPECT_EQ(process->condition, Condition::exiting);
    EXPECT_EQ(process->stuck_in, StuckIn::fuse);
  });
}

/// Holds the lock of the target's memory for as long as the file system is silent: reading another's page waits for it
/// without giving the lock back.
pid_t start_lock_holder(pid_t target, unsigned long address) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const UniqueFd memory(open(("/proc/" + std::to_string(target) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  char byte = 0;
  (void)!pread(memory.get(), &byte, 1, static_cast<off_t>(address));
  _exit(0);
}

TEST(Stall, ACommandLineThatCannotBeReadIsSaid) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "needs python3";
  in_machine([](SilentFuse& files) {
    const Python target(
        "import ctypes,os,time\n"
        "libc=ctypes.CDLL(None)\nlibc.mmap.restype=ctypes.c_void_p\n"
        "libc.mmap.argtypes=[ctypes.c_void_p,ctypes.c_size_t]+[ctypes.c_int]*3+[ctypes.c_long]\n"
        "f=os.open('/mnt/data',os.O_RDONLY)\n"
        "a=libc.mmap(0x200000000000,4096,1,0x100002,f,0)\n"
        "os.write(1,b'x' if a==0x200000000000 else b'')\nos.read(0,1)\n"
        "libc.mmap(None,4096,1,0x22,-1,0)\n");
    files.fall_silent();
    const pid_t lock_holder = start_lock_holder(target.pid, 0x200000000000);
    ASSERT_TRUE(reaches(lock_holder, 'D'));
    ASSERT_EQ(write(target.tell.get(), "x", 1), 1);
    ASSERT_TRUE(reaches(target.pid, 'D'));  // it wants to write what the other reads
    for (const auto method : methods()) {
      const auto begin = Deadline::Clock::now();
      const auto seen = scan(method);
      const auto& snapshot = seen.snapshot;
      EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::seconds(10));
      EXPECT_EQ(seen.use.used, method);
      // The walk over mappings waits for the same lock; /proc can pass over the one that it does not get.
      if (method == ScanMethod::bpf) {
        EXPECT_THAT(seen.use.why, HasSubstr("read in /proc"));
      }
      EXPECT_TRUE(holds_a_gpu(snapshot, target.pid));
      ASSERT_NE(snapshot.find(target.pid), nullptr);
      EXPECT_EQ(snapshot.find(target.pid)->argv.reason(), Unknown::timed_out);
      EXPECT_THAT(snapshot.visibility.blind_spots,
                  Contains(AllOf(Field(&BlindSpot::code, "argv-timeout"),
                                 Field(&BlindSpot::detail, HasSubstr(std::to_string(target.pid))))));
    }
  });
}

}  // namespace
}  // namespace vacate
