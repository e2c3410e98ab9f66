#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Polling sends no message, and detects the end of the host; stopped processes cost nothing.

    test_polling.py BUILD PROGRAM
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from host import Host, ticks_at_rest  # noqa: E402

N_QUERIES = 20000
QUERIES = ("cuEventQuery", "cuStreamQuery")
# The interval of queries to the host about unfinished work, in seconds, see event.c.
ASK_S = 0.01


def environment(build, host, **more):
    variables = dict(os.environ, VGPU_SOCKET=str(host.socket), **more)
    variables["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")
    variables.setdefault("ASAN_OPTIONS", "detect_leaks=0")
    return variables


def traced(build, program, host, what):
    """Runs it. Returns how many queries it made, and how many of them sent a message."""
    with tempfile.NamedTemporaryFile(prefix="vgpu-trace-") as trace:
        subprocess.run(
            [program, what], env=environment(build, host, VGPU_TRACE=trace.name), check=True
        )
        lines = trace.read().decode().splitlines()
    asked = [line for line in lines if re.search(rf"\b({'|'.join(QUERIES)})\(", line)]
    sent = [line for line in asked if re.search(r"\d sent$", line)]
    return len(asked), len(sent)


def start(build, program, host, what):
    child = subprocess.Popen(
        [program, what], env=environment(build, host), stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "0\n"
    worker = int(host.wait_for(rf"session opened .* pid={child.pid} .*worker=(\d+)").group(1))
    return child, worker


def main():
    build, program = sys.argv[1:]
    with Host(build) as host:
        n_asked, n_sent = traced(build, program, host, "done")
        assert n_asked == 2 * N_QUERIES, n_asked
        assert n_sent == 0, f"{n_sent} queries of work that is over sent a message"

        began = time.monotonic()
        n_asked, n_sent = traced(build, program, host, "running")
        most = 4 + 2 * (time.monotonic() - began) / ASK_S
        assert n_asked == 2 * N_QUERIES, n_asked
        assert n_sent <= most, f"{n_sent} queries of work that runs sent a message"

        for what in ("event", "stream", "wait"):
            child, worker = start(build, program, host, what)
            os.kill(worker, signal.SIGKILL)
            answer = child.stdout.readline()
            assert answer not in ("", "0\n"), f"{what} after the end of the host: {answer!r}"
            assert child.wait(60) == 0

        child, worker = start(build, program, host, "flow")
        time.sleep(0.2)
        os.kill(child.pid, signal.SIGSTOP)
        used = ticks_at_rest(worker, 1, 1)
        os.kill(child.pid, signal.SIGKILL)
        child.wait(60)
        assert used <= 1, f"{used} ticks in a second for a guest that is stopped"


if __name__ == "__main__":
    main()
