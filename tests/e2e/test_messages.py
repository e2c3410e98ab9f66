#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many messages the start of a program and small copies cost, call by call.

    test_messages.py BUILD PROGRAM [RUNTIME-PROGRAM...]

The trace of a program has the messages that each call sent. The worker counts the messages
that it receives: both have to agree, so that none is missing in the trace.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import tap  # pylint: disable=wrong-import-position
from host import Host  # pylint: disable=wrong-import-position

LINE = re.compile(r"^\S+ \d+/\d+ (\w+)\(.*\) = CUDA_SUCCESS <[^>]*>(?: (\d+) sent)?$")
BUILD, PROGRAM, RUNTIME_PROGRAMS = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]

# hello; retain; the lane's context and load; look-up; attributes; allocation; layout of
# the function, the completion word of the stream and the launch; the launch that is known
START = [
    ("cuInit", 1), ("cuDevicePrimaryCtxRetain", 1), ("cuModuleLoadData", 2),
    ("cuModuleGetFunction", 1), ("cuFuncGetAttribute", 1), ("cuMemAlloc_v2", 1),
    ("cuLaunchKernel", 3), ("cuLaunchKernel", 1),
]


class Messages(unittest.TestCase):
    def run_program(self, command, driver="soft", host=None, **more):
        """Returns each call with its number of messages."""
        with tempfile.TemporaryDirectory(prefix="vgpu-messages-") as folder, \
                Host(BUILD, driver, environment=host) as host:
            trace = Path(folder) / "trace"
            environment = dict(os.environ, VGPU_SOCKET=str(host.socket),
                               VGPU_TRACE=str(trace))
            environment["LD_LIBRARY_PATH"] = str(BUILD / "guest-shim")
            environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
            environment.update(more)
            done = subprocess.run([command], env=environment, capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            book = host.wait_for(r"session ended .*\bcalls=(\d+)")
            calls = []
            for line in trace.read_text(encoding="utf-8").splitlines():
                match = LINE.match(line)
                if match:
                    calls.append((match[1], int(match[2] or 0)))
        self.assertEqual(int(book[1]), sum(n for _, n in calls))
        return calls

    def check_start(self, calls):
        sent = [call for call in calls if call[1]]
        self.assertEqual(sent[:len(START)], START)

    def test_from_start_to_launch(self):
        for sync in "0", "1":
            self.check_start(self.run_program(PROGRAM, VGPU_SYNC=sync))

    def small_copies(self, sync):
        calls = self.run_program(PROGRAM, VGPU_SYNC=sync)
        sent = [n for name, n in calls if name == "cuMemcpyDtoH_v2"]
        self.assertEqual(len(sent), 256)
        self.assertLessEqual(max(sent), 2, sent)
        return sent

    def test_a_small_copy_from_the_device_is_one_message(self):
        """A thread that spins too long, on a busy machine, sends one more message to sleep."""
        for sync in "0", "1":
            end = time.monotonic() + 60
            sent = self.small_copies(sync)
            while min(sent) > 1:
                self.assertLess(time.monotonic(), end, "each copy took two messages")
                sent = self.small_copies(sync)

    def test_many_devices_cost_no_more(self):
        calls = self.run_program(PROGRAM, "null", {"VGPU_NULL_DEVICES": "8"})
        self.check_start(calls)
        self.assertEqual([c for c in calls if c[0] == "cuDeviceGetAttribute"],
                         8 * 111 * [("cuDeviceGetAttribute", 0)])

    def test_a_runtime_starts_with_three(self):
        """The calls before the first call of the program itself, an allocation."""
        for program in RUNTIME_PROGRAMS:
            sent = [call for call in self.run_program(program) if call[1]]
            self.assertEqual(sent[:3], [("cuInit", 1), ("cuDevicePrimaryCtxRetain", 2),
                                        ("cuMemAlloc_v2", 1)])


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
