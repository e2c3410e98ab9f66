#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An idle worker has few threads and uses no CPU; a launch starts the threads it needs.

    test_idle.py BUILD PROGRAM
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import proc  # noqa: E402
from host import Host, ticks_at_rest  # noqa: E402

# Configured, so that the number does not depend on the machine.
N_THREADS = 8


def kernel_threads(pid):
    names = [text.strip() for _, text in proc.of_threads(pid, "comm")]
    return len([name for name in names if name.startswith("softgpu-")]), len(names)


def main():
    build, program = sys.argv[1:]
    with Host(build, extra=f"softgpu-threads = {N_THREADS}") as host:
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        environment["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        child = subprocess.Popen(
            [program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "0\n"
        worker = int(host.wait_for(r"session opened .* worker=(\d+)").group(1))
        of_softgpu, n_before = kernel_threads(worker)
        assert of_softgpu <= 1, f"{of_softgpu} threads before the first launch"
        assert n_before <= 8, f"{n_before} threads before the first launch"
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "0\n"
        of_softgpu, n_after = kernel_threads(worker)
        assert 1 <= of_softgpu <= 2, f"{of_softgpu} threads for one block"
        assert n_after <= n_before + 2, f"{n_after} threads, {n_before} before"
        assert ticks_at_rest(worker, 0.5, 2) <= 2, "the idle worker uses CPU time"
        child.stdin.write("\n")
        child.stdin.close()
        assert child.wait(60) == 0


if __name__ == "__main__":
    main()
