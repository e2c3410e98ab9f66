#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A captured graph that was launched once is replayed by one message a launch, without reply.

    test_replay.py BUILD PROGRAM

The worker is stopped meanwhile, so launches that wait for a reply would not return.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import tap  # pylint: disable=wrong-import-position
from host import Host  # pylint: disable=wrong-import-position

LINE = re.compile(r"^\S+ \d+/\d+ (\w+)\(.*\) = CUDA_SUCCESS <[^>]*>(?: (\d+) sent)?$", re.M)
BUILD, PROGRAM = Path(sys.argv[1]), sys.argv[2]


class Replay(unittest.TestCase):
    def replay(self, stops, **more):
        """Runs the program with the worker stopped while it launches; returns its trace."""
        with tempfile.TemporaryDirectory(prefix="vgpu-replay-") as folder, \
                Host(BUILD) as host:
            trace = Path(folder) / "trace"
            environment = dict(os.environ, VGPU_SOCKET=str(host.socket),
                               VGPU_TRACE=str(trace), **more)
            environment["LD_LIBRARY_PATH"] = str(BUILD / "guest-shim")
            environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
            with subprocess.Popen([PROGRAM], env=environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) as program:
                self.assertEqual(program.stdout.readline(), "ready\n")
                worker = int(host.wait_for(r"session opened .*\bworker=(\d+)")[1])
                if stops:
                    os.kill(worker, signal.SIGSTOP)
                program.stdin.write("\n")
                program.stdin.flush()
                said = program.stdout.readline()
                if stops:
                    os.kill(worker, signal.SIGCONT)
                self.assertEqual(said, "launched\n")
                program.stdin.write("\n")
                program.stdin.close()
                self.assertEqual(program.wait(), 0)
            book = host.wait_for(r"session ended .*\bcalls=(\d+).* refused_async=(\d+)")
            calls = [(m[1], int(m[2] or 0)) for m in
                     LINE.finditer(trace.read_text(encoding="utf-8"))]
        self.assertEqual(int(book[1]), sum(n for _, n in calls))
        self.assertEqual(int(book[2]), 0)
        return calls

    def check_launches(self, calls):
        launches = [sent for name, sent in calls if name == "cuGraphLaunch"]
        self.assertEqual(launches, 101 * [1])

    def test_nobody_waits_for_a_launch(self):
        self.check_launches(self.replay(stops=True))

    def test_unless_every_call_is_to_have_a_reply(self):
        self.check_launches(self.replay(stops=False, VGPU_SYNC="1"))


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
