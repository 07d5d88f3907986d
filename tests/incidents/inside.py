# SPDX-License-Identifier: Apache-2.0
"""Told on a machine of the lab by tests/incidents/real_python: an inference server of real Python processes, its end by a pattern
kill, and one `vacate free`. Prints what happened as one JSON object, with what is wrong with it under "wrong".

usage: python3 - spawn|fork keep|kill     keep or kill Python's resource tracker with the server
"""

import glob
import json
import os
import select
import signal
import subprocess
import sys

GPUS = 2
MIB = 96610
SECONDS = 60
GONE = ("gone", "Z")

# What CUDA does with the device nodes, in the words of the lab's driver (lab/driver/protocol.h).
HOLD = """
import fcntl, os, struct
def ask(descriptor, direction, number, data):
    return fcntl.ioctl(descriptor, direction << 30 | len(data) << 16 | ord("v") << 8 | number, data)
def hold(gpu, mib):
    nodes = [os.open(path, os.O_RDWR) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", f"/dev/nvidia{gpu}")]
    token = ask(nodes[0], 2, 2, bytes(8))
    for node in nodes[1:]:
        ask(node, 1, 3, token)
    ask(nodes[0], 1, 1, struct.pack("=IIQqII", gpu, 1, mib << 20, 0, 1, 0))
    return nodes
"""

# Server, engine and a worker a GPU, which rename themselves and share a segment.
SERVER = HOLD + """
import multiprocessing as mp, signal, sys
from multiprocessing import shared_memory
from setproctitle import setproctitle
def worker(gpu, mib, name, ready):
    setproctitle(f"VLLM::Worker_TP{gpu}")
    segment = shared_memory.SharedMemory(name=name)
    nodes = hold(gpu, mib)
    ready.put((os.getpid(), f"worker{gpu}"))
    signal.pause()
def engine(gpus, mib, name, ready):
    setproctitle("VLLM::EngineCore")
    workers = [mp.Process(target=worker, args=(gpu, mib, name, ready)) for gpu in gpus]
    for each in workers:
        each.start()
    ready.put((os.getpid(), "engine"))
    signal.pause()
if __name__ == "__main__":
    mp.set_start_method(sys.argv[1])
    gpus, mib = [int(word) for word in sys.argv[2].split(",")], int(sys.argv[3])
    segment = shared_memory.SharedMemory(create=True, size=1 << 20)
    ready = mp.Queue()
    mp.Process(target=engine, args=(gpus, mib, segment.name, ready)).start()
    started = dict(ready.get(timeout=60)[::-1] for _ in range(len(gpus) + 1))
    from multiprocessing import resource_tracker
    started["tracker"] = resource_tracker._resource_tracker._pid
    started["segment"] = segment.name
    import json
    print(json.dumps(started), flush=True)
    signal.pause()
"""


def start(path, method, gpus, mib):
    """A server in a session of its own; (its process, the pids it told and the name of its segment)."""
    server = subprocess.Popen(["/usr/bin/python3", path, method, gpus, str(mib)], stdout=subprocess.PIPE, text=True,
                              start_new_session=True)
    return server, json.loads(server.stdout.readline())


def state(pid):
    """The letter of /proc/PID/stat, or "gone"."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def wait_gone(pid):
    """Until it has ended, reaped or not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([descriptor], [], [], SECONDS)
    os.close(descriptor)


def complaints_about(found, tracker):
    """What is not as it has to be, a line each."""
    wrong = []

    def want(is_so, line):
        if not is_so:
            wrong.append(line)

    workers = [f"worker{gpu}" for gpu in range(GPUS)]
    before, after, answer = found["after_pattern_kill"], found["after_free"], found["free"].get("answer", {})
    for name in workers + ["engine"]:
        want(before[name] not in GONE, f"{name} did not outlive the pattern kill: {before[name]}")
        want(after[name] in GONE, f"{name} is still there: {after[name]}")
    want((before["tracker"] in GONE) == (tracker == "kill"), f"the tracker was {before['tracker']} before")
    want(after["tracker"] in GONE, f"the tracker is still there: {after['tracker']}")
    want(answer.get("verdict") == "released", f"verdict {answer.get('verdict')}")
    pids = {found["started"][name] for name in workers + ["engine", "tracker"]}
    signalled = {result["pid"] for result in answer.get("results", []) if result["signals"]}
    want(signalled <= pids, f"signalled others: {sorted(signalled - pids)}")
    want(set(found["started"][name] for name in workers) <= signalled, "not every worker was asked")
    want(found["segments"] == [found["live"]["segment"]], f"segments {found['segments']}")
    for name, state in found["live"].items():
        want(name == "segment" or state not in GONE, f"the live trainer's {name}: {state}")
    return wrong


def main():
    method, tracker = sys.argv[1:]
    for name in ("vllm_server", "train_live"):
        with open(f"/tmp/{name}.py", "w", encoding="utf-8") as file:
            file.write(SERVER)
    live, of_live = start("/tmp/train_live.py", "spawn", "1", 900)
    server, of_server = start("/tmp/vllm_server.py", method, ",".join(map(str, range(GPUS))), MIB)
    found = {"started": of_server, "server": server.pid}
    subprocess.run(["pkill", "-9", "-f", "python3.*vllm_server"], check=False)
    server.wait(SECONDS)
    if tracker == "kill" and state(of_server["tracker"]) not in GONE:
        os.kill(of_server["tracker"], signal.SIGKILL)
        wait_gone(of_server["tracker"])
    found["after_pattern_kill"] = {name: state(pid) for name, pid in of_server.items() if name != "segment"}
    ran = subprocess.run(["vacate", "free", "--yes", "--json"], capture_output=True, text=True, timeout=SECONDS, check=False)
    found["free"] = {"exit": ran.returncode, "err": ran.stderr}
    try:
        found["free"]["answer"] = json.loads(ran.stdout)
    except ValueError:
        found["free"]["out"] = ran.stdout
    wait_gone(of_server["tracker"])  # by itself, once its clients are gone
    found["after_free"] = {name: state(pid) for name, pid in of_server.items() if name != "segment"}
    found["segments"] = sorted(os.path.basename(path) for path in glob.glob("/dev/shm/psm_*"))
    found["live"] = {"segment": of_live["segment"], "server": state(live.pid),
                     **{name: state(pid) for name, pid in of_live.items() if name != "segment"}}
    found["wrong"] = complaints_about(found, tracker)
    print(json.dumps(found))


main()
