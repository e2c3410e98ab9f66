#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pool of warm workers, with a driver that starts when the test lets it.

    test_pool.py BUILD PROGRAM
"""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import tap  # pylint: disable=wrong-import-position
from host import Host  # pylint: disable=wrong-import-position

BUILD, PROGRAM = Path(sys.argv[1]), sys.argv[2]
STARTING_MAX = 8  # as the broker bounds it
IS_WARM, OPENED = r"worker=\d+: it is warm", r"session opened"


def workers(host):
    """The pids of the host's workers."""
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        if int(parent) == host.process.pid and name == "vgpu-worker":
            pids.append(int(pid))
    return pids


class Pool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vgpu-pool-")
        self.addCleanup(folder.cleanup)
        self.gate = Path(folder.name) / "gate"
        self.gate.touch()

    def host(self, extra=""):
        host = Host(BUILD, "null", "log-level = debug\n" + extra,
                    {"VGPU_NULL_GATE": str(self.gate)})
        host.__enter__()
        self.addCleanup(host.__exit__)
        # Also after a failure: no worker shall wait for the gate for ever.
        self.addCleanup(self.gate.touch)
        return host

    def start(self, host):
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        environment["LD_LIBRARY_PATH"] = str(BUILD / "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        return subprocess.Popen([PROGRAM], env=environment, stdout=subprocess.PIPE,
                                text=True)

    def finish(self, process):
        said = process.communicate()[0]
        self.assertEqual(process.returncode, 0, said)

    def wait_until(self, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_a_guest_waits_for_no_driver(self):
        host = self.host()
        host.wait_for(IS_WARM)
        self.gate.unlink()
        self.finish(self.start(host))
        host.wait_for(OPENED)
        # The next spare worker is starting, and the next process needs it.
        self.wait_until(lambda: len(workers(host)) == 1)
        waits = self.start(host)
        self.wait_until(lambda: len(workers(host)) == 2)
        self.assertEqual(host.text().count("session opened"), 1)
        self.gate.touch()
        self.finish(waits)

    def test_as_many_are_warm_as_the_administrator_wants(self):
        host = self.host("warm-workers = 3")
        host.wait_for(IS_WARM, count=3)
        self.gate.unlink()
        for guest in [self.start(host) for _ in range(3)]:
            self.finish(guest)
        # Then their workers have been reaped.
        host.wait_for(r"session ended", count=3)
        self.wait_until(lambda: len(workers(host)) == 3)
        self.gate.touch()
        host.wait_for(IS_WARM, count=6)
        self.assertEqual(len(workers(host)), 3)

    def test_many_guests_at_once_start_few_workers_at_a_time(self):
        host = self.host()
        host.wait_for(IS_WARM)
        self.gate.unlink()
        guests = [self.start(host) for _ in range(24)]
        host.wait_for(r"connected \(transport", count=24)
        host.wait_for(r"session ended")
        self.wait_until(lambda: len(workers(host)) == STARTING_MAX)
        for _ in range(20):
            self.assertEqual(len(workers(host)), STARTING_MAX)
            time.sleep(0.01)
        self.gate.touch()
        for guest in guests:
            self.finish(guest)
        host.wait_for(r"session ended", count=24)
        self.wait_until(lambda: len(workers(host)) == 1)


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
