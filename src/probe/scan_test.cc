// SPDX-License-Identifier: Apache-2.0
// Whole scans of real processes in a mount namespace whose /dev has files under the driver's names: each way to hold a
// node, and the ways that only look like it. Needs root for the namespace; holders run another program, for vacate's
// own are left out.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <iostream>

#include "os/procfs.h"
#include "os/test_mounts.h"
#include "probe/probe.h"

namespace vacate {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

constexpr const char* kProgram = "/bin/sleep";

/// Children of one test; ended through their pidfds with it.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const pid_t pid : pids_) end(pid);
  }
  /// Forks; the child prepares its descriptors and becomes another program. Returns when it has.
  pid_t start(const std::function<void()>& prepare) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      prepare();
      execl(kProgram, "sleep", "300", nullptr);
      _exit(1);
    }
    pids_.push_back(pid);
    const auto root = ProcDirectory::open_root();
    for (int i = 0; i < 1000 && root->open(pid)->stat()->comm != "sleep"; ++i) usleep(5000);
    return pid;
  }
  static void end(pid_t pid) {
    if (const auto ref = ProcessRef::open(pid)) (void)ref->send_signal(SIGKILL);
    waitpid(pid, nullptr, 0);
  }

 private:
  std::vector<pid_t> pids_;
};

bool make_dev() {
  if (mount("tmpfs", "/dev", "tmpfs", 0, nullptr) != 0) return false;
  for (const char* name : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia-uvm"}) {
    const UniqueFd node(open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0666));
    if (!node || ftruncate(node.get(), 4096) != 0) return false;
  }
  // A stale node under a known name: its number is another driver's.
  return mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)) == 0 &&
         mknod("/dev/nvidia9", S_IFCHR | 0666, makedev(1, 5)) == 0;
}

/// Runs `check` in a process of its own with such a /dev.
void in_machine(const std::function<void()>& check) { testing::in_mount_namespace(make_dev, check); }

Scan scan() {
  auto driver = DriverSession::start();
  Policy policy;
  return take_scan(*driver, policy);
}

std::string node_of(const Snapshot& snapshot, const Reference& reference) {
  return snapshot.nodes[reference.node].path;
}

/// "descriptor /dev/nvidia0 x1" of every reference of `pid`.
std::vector<std::string> references_of(const Snapshot& snapshot, pid_t pid) {
  std::vector<std::string> found;
  for (const auto& reference : snapshot.references) {
    if (reference.pid != pid) continue;
    found.push_back(std::string(describe(reference.kind)) + " " + node_of(snapshot, reference) + " x" +
                    std::to_string(reference.count));
  }
  return found;
}

int keep(int fd) {
  fcntl(fd, F_SETFD, 0);
  return fd;
}

TEST(TakeScan, KnowsTheNodesAndSaysThatNoDriverAnswers) {
  in_machine([] {
    const auto snapshot = scan().snapshot;
    std::vector<std::string> paths;
    for (const auto& node : snapshot.nodes) paths.push_back(node.path);
    EXPECT_THAT(paths, ElementsAre("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"));
    EXPECT_THAT(snapshot.visibility.blind_spots, Contains(Field(&BlindSpot::code, "driver-no-answer")));
    EXPECT_EQ(snapshot.driver.state, DriverState::no_answer);
    ASSERT_EQ(snapshot.gpus.size(), 2U);
    EXPECT_EQ(snapshot.gpus[1].minor, Reading<std::uint32_t>(1));
    EXPECT_THAT(snapshot.references, IsEmpty());
  });
}

TEST(TakeScan, CountsDescriptorsAndIgnoresPathOnlyOnes) {
  in_machine([] {
    Children children;
    const pid_t holder = children.start([] {
      (void)open("/dev/nvidia0", O_RDWR);
      (void)open("/dev/nvidia0", O_RDWR);
      (void)open("/dev/nvidiactl", 3);  // for ioctl only: no permission bits, yet open
      (void)open("/dev/nvidia9", O_RDWR);
    });
    const pid_t walker = children.start([] { (void)open("/dev/nvidia0", O_PATH); });
    const auto seen = scan();
    EXPECT_THAT(references_of(seen.snapshot, holder),
                ElementsAre("descriptor /dev/nvidia0 x2", "descriptor /dev/nvidiactl x1"));
    EXPECT_THAT(references_of(seen.snapshot, walker), IsEmpty());
    const auto* process = seen.snapshot.find(holder);
    ASSERT_NE(process, nullptr);
    EXPECT_TRUE(process->detailed);
    EXPECT_EQ(process->argv.value_or({}), (std::vector<std::string>{"sleep", "300"}));
    ASSERT_NE(seen.pins.find(process->key), nullptr);
    EXPECT_FALSE(seen.pins.find(process->key)->exited());
  });
}

TEST(TakeScan, OtherNamesAndDeletedNodesAreTheSameNode) {
  in_machine([] {
    Children children;
    ASSERT_EQ(link("/dev/nvidia1", "/dev/gpu-of-a-container"), 0);
    const pid_t other = children.start([] { (void)open("/dev/gpu-of-a-container", O_RDWR); });
    ASSERT_EQ(unlink("/dev/gpu-of-a-container"), 0);
    EXPECT_THAT(references_of(scan().snapshot, other), ElementsAre("descriptor /dev/nvidia1 x1"));
  });
}

TEST(TakeScan, NeighboursOfTheDriverAreSeenAndVerbsWidenNothing) {
  in_machine([] {
    for (const char* folder : {"/dev/infiniband", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels"})
      ASSERT_EQ(mkdir(folder, 0755), 0);
    const std::vector<std::string> names = {"/dev/infiniband/uverbs0",
                                            "/dev/nvidia-caps/nvidia-cap1",
                                            "/dev/nvidia-caps-imex-channels/channel0",
                                            "/dev/gdrdrv",
                                            "/dev/nvidia-fs0",
                                            "/dev/nvidia-modeset",
                                            "/dev/nvidia-nvlink",
                                            "/dev/nvidia-nvswitchctl"};
    for (const auto& name : names)
      ASSERT_TRUE(UniqueFd(open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666))) << name;
    Children children;
    const pid_t all = children.start([&] {
      setsid();  // no relative of the other
      for (const auto& name : names) (void)open(name.c_str(), O_RDWR);
    });
    const pid_t rank = children.start([] {
      setsid();
      if (fork() == 0) {  // a relative, which nobody would look at for verbs alone
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
      }
      (void)open("/dev/infiniband/uverbs0", O_RDWR);
    });
    const auto snapshot = scan().snapshot;
    EXPECT_EQ(references_of(snapshot, all).size(), names.size());
    EXPECT_THAT(references_of(snapshot, rank), ElementsAre("descriptor /dev/infiniband/uverbs0 x1"));
    for (const auto& process : snapshot.processes) {
      if (process.ppid != rank) continue;
      EXPECT_FALSE(process.detailed);
    }
  });
}

TEST(TakeScan, LeavesOutItsOwnProgram) {
  in_machine([] {
    const UniqueFd own(open("/dev/nvidia0", O_RDWR | O_CLOEXEC));
    EXPECT_THAT(scan().snapshot.references, IsEmpty());
  });
}

TEST(TakeScan, SharedDescriptionsAndBrokenPipes) {
  in_machine([] {
    Children children;
    int pipe_ends[2];
    ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
    const UniqueFd node(open("/dev/nvidia1", O_RDWR | O_CLOEXEC));
    // sleep must keep them, so they are not close-on-exec here, unlike in a child of multiprocessing.
    const auto inherit = [&] {
      keep(node.get());
      keep(pipe_ends[0]);
    };
    const pid_t first = children.start(inherit);
    const pid_t second = children.start(inherit);
    close(pipe_ends[0]);
    const auto other_end = [&](const Snapshot& snapshot) {
      for (const auto& pipe : snapshot.find(first)->pipes)
        if (pipe.fd == pipe_ends[0]) return pipe.other_end;
      return Reading<std::vector<pid_t>>(Unknown::not_asked);
    };
    const auto before = scan().snapshot;
    EXPECT_THAT(before.shared_clients, ElementsAre(ElementsAre(first, second)));
    if (before.visibility.all_references) {
      EXPECT_THAT(other_end(before).value_or({}), ElementsAre(getpid()));
    } else {
      EXPECT_FALSE(other_end(before).known());
    }
    close(pipe_ends[1]);
    const auto after = scan().snapshot;
    ASSERT_TRUE(other_end(after).known());
    EXPECT_THAT(*other_end(after), IsEmpty());
    const auto& pipe = after.find(first)->pipes.front();
    EXPECT_FALSE(pipe.close_on_exec);
    ASSERT_TRUE(pipe.created_after_start.known());
    EXPECT_LT(*pipe.created_after_start, 0.05);
  });
}

TEST(TakeScan, AnEndInFlightIsNotNobody) {
  in_machine([] {
    Children children;
    int pipe_ends[2];
    int sockets[2];
    ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    const pid_t holder = children.start([&] {
      (void)open("/dev/nvidia0", O_RDWR);
      keep(pipe_ends[0]);
    });
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::copy_n(reinterpret_cast<const char*>(&pipe_ends[1]), sizeof(int), reinterpret_cast<char*>(CMSG_DATA(header)));
    ASSERT_EQ(sendmsg(sockets[0], &message, 0), 1);
    struct stat end {};
    ASSERT_EQ(fstat(pipe_ends[0], &end), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    const auto snapshot = scan().snapshot;
    EXPECT_THAT(snapshot.visibility.blind_spots, Contains(Field(&BlindSpot::code, "descriptors-in-flight")));
    EXPECT_THAT(snapshot.hidden_references,
                Contains(HiddenReference{getpid(), HiddenKind::in_flight, sockets[1], 1, ""}));
    // By its inode: whoever runs the test may have left it pipes of his own.
    const auto& pipes = snapshot.find(holder)->pipes;
    const auto in_flight =
        std::find_if(pipes.begin(), pipes.end(), [&](const PipeEnd& pipe) { return pipe.inode == end.st_ino; });
    ASSERT_NE(in_flight, pipes.end());
    EXPECT_FALSE(in_flight->other_end.known());
  });
}

/// The program of a child that must not exec: a copy of this one is another file, so it is not vacate's own.
/// Threads with tables of their own and mappings do not survive exec, so python stands in for them.
constexpr const char* kPython = "/usr/bin/python3";

pid_t start_python(const std::string& script, int ready) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ready, 1);
    execl(kPython, "python3", "-S", "-E", "-c", script.c_str(), nullptr);
    _exit(1);
  }
  return pid;
}

Snapshot scan_python(const std::string& script, pid_t* pid) {
  int ready[2];
  EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
  *pid = start_python(script, ready[1]);
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  auto snapshot = scan().snapshot;
  Children::end(*pid);
  close(ready[0]);
  return snapshot;
}

TEST(TakeScan, MappingWithoutADescriptor) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "needs python3";
  in_machine([] {
    pid_t pid = 0;
    const auto snapshot = scan_python(
        "import mmap,os,time\n"
        "f=os.open('/dev/nvidia1',os.O_RDWR)\nm=mmap.mmap(f,4096)\nos.close(f)\n"
        "import gc\nos.write(1,b'x')\ntime.sleep(60)\n",
        &pid);
    // Python keeps a duplicate of the descriptor beside its mapping.
    EXPECT_THAT(references_of(snapshot, pid), Contains("mapping /dev/nvidia1 x1"));
  });
}

/// Has `pid` react to USR1 and waits until it closed descriptor 3, then lets the driver answer, who was asked after the
/// walk and before the pins.
void let_go_before_the_answer(pid_t pid, pid_t driver) {
  usleep(100000);  // the walk takes a few; a walk that comes later proves nothing and fails nothing
  if (const auto holder = ProcessRef::open(pid)) (void)holder->send_signal(SIGUSR1);
  const auto descriptor = "/proc/" + std::to_string(pid) + "/fd/3";
  for (int i = 0; i < 1000 && faccessat(AT_FDCWD, descriptor.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0; ++i) usleep(500);
  if (const auto child = ProcessRef::open(driver)) (void)child->send_signal(SIGCONT);
}

TEST(TakeScan, WhoLetsGoBetweenTheWalkAndThePinIsNoHolder) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "needs python3";
  in_machine([] {
    int ready[2];
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    Children children;
    const pid_t stays = children.start([] { (void)open("/dev/nvidia0", O_RDWR); });
    const pid_t holder = start_python(
        "import mmap,os,signal\n"
        "f=os.open('/dev/nvidia0',os.O_RDWR)\n"
        "g=os.open('/dev/nvidia1',os.O_RDWR)\nm=mmap.mmap(g,4096)\nos.close(g)\n"
        "def let_go(*_):\n m.close()\n os.close(f)\n"
        "signal.signal(signal.SIGUSR1,let_go)\nos.write(1,b'x')\n"
        "while True: signal.pause()\n",
        ready[1]);
    close(ready[1]);
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    auto driver = DriverSession::start();
    const auto child = ProcessRef::open(driver->child());
    ASSERT_TRUE(child && child->send_signal(SIGSTOP));
    const pid_t meddler = fork();
    if (meddler == 0) {
      let_go_before_the_answer(holder, driver->child());
      _exit(0);
    }
    const auto seen = take_scan(*driver, Policy());
    EXPECT_THAT(references_of(seen.snapshot, holder), IsEmpty());
    EXPECT_THAT(references_of(seen.snapshot, stays), ElementsAre("descriptor /dev/nvidia0 x1"));
    EXPECT_NE(seen.snapshot.find(holder), nullptr);
    waitpid(meddler, nullptr, 0);
    Children::end(holder);
    close(ready[0]);
  });
}

TEST(TakeScan, ThreadWithATableOfItsOwnAndZombieLeader) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "needs python3";
  in_machine([] {
    pid_t pid = 0;
    const auto thread = scan_python(
        "import ctypes,os,threading,time\n"
        "def t():\n ctypes.CDLL(None).unshare(0x400)\n os.open('/dev/nvidia0',os.O_RDWR)\n os.write(1,b'x')\n "
        "time.sleep(60)\n"
        "threading.Thread(target=t).start()\n",
        &pid);
    EXPECT_THAT(references_of(thread, pid), ElementsAre("thread-descriptor /dev/nvidia0 x1"));
    const auto leader = scan_python(
        "import ctypes,os,threading,time\n"
        "os.open('/dev/nvidia0',os.O_RDWR)\n"
        "def t():\n"
        " while open('/proc/self/stat').read().rsplit(')')[-1].split()[0]!='Z': time.sleep(0.01)\n"
        " os.write(1,b'x')\n time.sleep(60)\n"
        "threading.Thread(target=t).start()\n"
        "ctypes.CDLL(None).syscall(" +
            std::to_string(SYS_exit) + ",0)\n",
        &pid);
    EXPECT_THAT(references_of(leader, pid), ElementsAre("thread-descriptor /dev/nvidia0 x1"));
    const auto* process = leader.find(pid);
    ASSERT_NE(process, nullptr);
    EXPECT_EQ(process->condition, Condition::zombie_leader);
    EXPECT_FALSE(is_gone(*process));
    EXPECT_EQ(process->argv.value_or({""}).front(), "python3");
  });
}

TEST(TakeScan, Listeners) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "needs python3";
  in_machine([] {
    pid_t pid = 0;
    const auto snapshot = scan_python(
        "import "
        "os,socket,time\nos.open('/dev/"
        "nvidia0',os.O_RDWR)\ns=socket.socket()\ns.bind(('127.0.0.1',0))\ns.listen()\nos.write(1,b'x')\ntime.sleep(60)"
        "\n",
        &pid);
    ASSERT_NE(snapshot.find(pid), nullptr);
    EXPECT_TRUE(snapshot.find(pid)->listens);
    EXPECT_FALSE(snapshot.find(getpid())->listens);
  });
}

}  // namespace
}  // namespace vacate
