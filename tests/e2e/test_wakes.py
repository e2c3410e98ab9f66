#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A call to a sleeping host wakes only the threads that it needs.

    test_wakes.py BUILD PROGRAM

Wake-ups are counted as voluntary context switches of threads. The median of many calls is
judged: on a busy machine some calls find the host awake, or polling for a lost doorbell.
"""

import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import proc  # noqa: E402
from host import Host  # noqa: E402

N_CALLS = 61
# Longer than any thread spins.
PAUSE_S = 0.004


def wakes(pids):
    """The voluntary context switches of each thread of some processes."""
    found = {}
    for name, pid in pids.items():
        for task, text in proc.of_threads(pid, "status"):
            n = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M)
            found[name, task] = int(n.group(1))
    return found


def count(child, what, pids):
    """Returns a list of wake-ups a call, by process and thread."""
    counts = []
    for _ in range(N_CALLS):
        time.sleep(PAUSE_S)
        before = wakes(pids)
        child.stdin.write(what + "\n")
        child.stdin.flush()
        assert child.stdout.readline() == "done\n"
        time.sleep(PAUSE_S)
        after = wakes(pids)
        counts.append({task: n - before.get(task, n) for task, n in after.items()})
    return counts


def check(child, pids):
    # The minimum of all calls: a systematic wake-up is in each of them, others occur if this
    # machine is busy.
    # Answered at once by the dispatcher.
    counts = count(child, "ask", pids)
    for name in pids:
        n = min(sum(c[t] for t in c if t[0] == name) for c in counts)
        print(f"a call that is answered at once wakes the {name} {n} times", flush=True)
        assert n == (name == "worker")
    dispatcher = max(counts[0], key=lambda task: sum(c[task] for c in counts))
    # Once to start the work, once for the wait, which a lane runs, and not once more
    # when that has answered: nothing ever came then.
    counts = count(child, "wait", pids)
    n = min(c[dispatcher] for c in counts)
    print(f"work that is waited for wakes the dispatcher {n} times", flush=True)
    assert n <= 2


def main():
    build, program = sys.argv[1:]
    # One thread runs all kernels.
    with Host(build, extra="softgpu-threads = 1\nwarm-workers = 0") as host:
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        environment["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        with subprocess.Popen(
            [program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout.readline() == "ready\n"
            worker = int(host.wait_for(r"session opened .* worker=(\d+)").group(1))
            pids = {"worker": worker, "keeper": host.process.pid}
            pids["broker"] = next(pid for pid in proc.children(host.process.pid) if pid != worker)
            check(child, pids)
            child.stdin.close()
            assert child.wait(60) == 0


if __name__ == "__main__":
    main()
