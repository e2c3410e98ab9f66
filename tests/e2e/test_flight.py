#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The last calls of a session are in the log and in a file after a fault, and after the
death of its worker; not after a normal end.

    test_flight.py BUILD PROGRAM
"""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
import tap  # pylint: disable=wrong-import-position
from host import Host  # pylint: disable=wrong-import-position

BUILD, PROGRAM = Path(sys.argv[1]), sys.argv[2]
LAUNCH = (r"#(\d+) [0-9.]+ s ago lane \d+: cuLaunchKernel\(f=0x[0-9a-f]+ \"poke\", .*"
          r"grid=2,3,1 block=32,1,1 shared=0.*\) = CUDA_SUCCESS")


class Flight(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vgpu-flight-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def host(self, **more):
        host = Host(BUILD, extra=f"flight-folder = {self.folder}", **more)
        host.__enter__()
        self.addCleanup(host.__exit__)
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        environment["LD_LIBRARY_PATH"] = str(BUILD / "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        return host, environment

    def wait_for_file(self, host, kind):
        """The text of the only file."""
        host.wait_for("the last calls of last-calls")
        while not [p for p in self.folder.iterdir() if p.suffix == ".txt"]:
            self.assertIsNone(host.process.poll())
        files = list(self.folder.iterdir())
        self.assertEqual(len(files), 1, files)
        self.assertRegex(files[0].name, rf"\Araw@\d{{8}}T\d{{6}}Z-\d{{6}}-{kind}\.txt\Z")
        self.assertEqual(stat.S_IMODE(files[0].stat().st_mode), 0o640)
        return files[0].read_text(encoding="ascii")

    def check_numbers(self, text):
        numbers = [int(n) for n in re.findall(r"^#(\d+) ", text, re.M)]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        self.assertIn(f"calls: {len(numbers)}\n", text)

    def test_a_fault_has_the_calls_before_it(self):
        host, environment = self.host()
        subprocess.run([PROGRAM, "fault"], env=environment, check=True, timeout=60)
        text = self.wait_for_file(host, "fault")
        self.check_numbers(text)
        self.assertEqual(len(re.findall(LAUNCH, text)), 20, text)
        self.assertIn("comm=last-calls", text)
        self.assertIn("reason: a context broke with CUDA_ERROR_ILLEGAL_ADDRESS\n", text)
        # Not the 400 calls after the fault.
        self.assertLess(text.count("cuMemcpyDtoH"), 10, text)
        block = re.search(r"a context broke with CUDA_ERROR_ILLEGAL_ADDRESS; the last calls of "
                          r"last-calls, worker \d+:\n((?:.*:   #.*\n)+)", host.text())
        self.assertEqual(block[1].count("\n"), 8, host.text())
        self.assertRegex(block[1], LAUNCH)

    def test_the_death_of_a_worker_has_its_calls(self):
        host, environment = self.host()
        program = subprocess.Popen([PROGRAM, "wait"], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(program.stdout.readline(), "ready\n")
        worker = int(host.wait_for(rf"session opened .* pid={program.pid} .*worker=(\d+)")[1])
        os.kill(worker, signal.SIGKILL)
        text = self.wait_for_file(host, "end")
        program.communicate("go\n")
        self.check_numbers(text)
        self.assertIn(f"pid={program.pid} comm=last-calls worker={worker}\n", text)
        self.assertIn("reason: it ended by worker-died, signal 9\n", text)
        self.assertEqual(len(re.findall(LAUNCH, text)), 20, text)

    def test_a_normal_end_has_none(self):
        host, environment = self.host()
        subprocess.run([PROGRAM, "wait"], env=environment, input=b"go\n", check=True,
                       capture_output=True, timeout=60)
        host.wait_for("session ended")
        self.assertNotIn("last calls", host.text())
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_last_error_of_a_process_is_shown(self):
        control = self.folder / "control"
        host, environment = self.host(prepare=lambda _: f"\nctl-socket = {control}\n")
        ctl = [BUILD / "host-daemon/ctl/vgpuctl", "--socket", control, "show", "raw"]
        program = subprocess.Popen([PROGRAM, "error"], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(program.stdout.readline(), "ready\n")
        self.assertTrue(host.alive(program.pid))
        shown = subprocess.run([*ctl, "--json"], check=True, capture_output=True).stdout
        error = json.loads(shown)["processes"][0]["last_error"]
        self.assertLess(error.pop("age_ms"), 60000)
        self.assertEqual(error, {"result": 500, "name": "CUDA_ERROR_NOT_FOUND",
                                 "call": "cuModuleGetFunction"})
        text = subprocess.run(ctl, check=True, capture_output=True, text=True).stdout
        self.assertRegex(text, r"NOT_FOUND in cuModuleGetFunction, \d+ s ago\n")
        program.communicate("go\n")

    def test_reports_are_limited(self):
        host, environment = self.host(vm="log-lines = 20\nprocess-rate = 100")
        for _ in range(12):
            subprocess.run([PROGRAM, "fault"], env=environment, check=True, timeout=60)
        host.wait_for("session ended", count=12)
        self.assertLessEqual(host.text().count("the last calls of"), 9)
        self.assertLessEqual(len(list(self.folder.iterdir())), 9)


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
