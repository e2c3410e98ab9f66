#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl stats beside a program that launches and copies on softgpu, and after it:
test_stats.py BUILD"""

import json
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(SOURCE / "tests/lib"), str(SOURCE / "tests/ctl")]

import tap  # noqa: E402  pylint: disable=wrong-import-position
from counted import Counted  # noqa: E402  pylint: disable=wrong-import-position
from test_top import N_COPIES, N_LAUNCHES  # noqa: E402  pylint: disable=wrong-import-position

CTL = BUILD / "host-daemon/ctl/vgpuctl"
LAUNCH, COPY, WAIT = "cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuCtxSynchronize"


class Stats(Counted, unittest.TestCase):
    def setUp(self):
        self.start_host(BUILD)

    def run_ctl(self, *words):
        return subprocess.run([CTL, "--socket", self.socket, *words], text=True, timeout=60,
                              capture_output=True, check=True).stdout

    def stats(self, *words):
        """{name: call}; with the sessions that run."""
        shown = json.loads(self.run_ctl("stats", "--json", *words, "raw"))
        self.assertEqual(shown["vm"], "raw")
        return {call["call"]: call for call in shown["calls"]}, shown["sessions"]

    def counts(self, expected, *words):
        """Waits until the calls have been made so often: the last one is counted after its
        reply. Returns the calls."""
        for _ in range(500):
            calls, _ = self.stats(*words)
            found = {name: calls.get(name, {"count": 0})["count"] for name in expected}
            if found == expected:
                return calls
            time.sleep(0.01)
        self.assertEqual(found, expected)
        return None

    def test_calls_are_counted_and_timed(self):
        program = self.start()
        for n in range(1, 4):
            self.work(program)
            calls = self.counts({LAUNCH: n * N_LAUNCHES, WAIT: n, COPY: n * N_COPIES})
        for name, call in calls.items():
            self.assertGreater(call["count"], 0, name)
            self.assertEqual(sum(n for _, n in call["buckets"]), call["count"], name)
            times = [call[key] for key in ("p50_ns", "p90_ns", "p99_ns", "max_ns")]
            self.assertEqual(times, sorted(times), name)
            self.assertLessEqual(call["max_ns"], call["total_ns"] + call["count"], name)
            self.assertGreaterEqual(call["max_ns"] * call["count"], call["total_ns"] * 0.9, name)
        self.assertNotIn("?", calls)

    def test_one_process_and_some_calls(self):
        first, second = self.start(), self.start()
        self.work(first)
        self.work(second)
        self.work(second)
        self.counts({LAUNCH: 3 * N_LAUNCHES})
        self.counts({LAUNCH: N_LAUNCHES}, "--process", str(first.pid))
        self.counts({LAUNCH: 2 * N_LAUNCHES}, "--process", str(second.pid))
        calls, sessions = self.stats("--call", "cuMemcpy")
        self.assertEqual(sessions, 2)
        self.assertIn(COPY, calls)
        self.assertTrue(all(name.startswith("cuMemcpy") for name in calls), calls)
        lines = self.run_ctl("stats", "--sort", "count", "--call", "cu", "raw").splitlines()
        self.assertTrue(lines[0].startswith("CALL"), lines)
        counts = [int(line.split()[1]) for line in lines[1:]]
        self.assertEqual(counts, sorted(counts, reverse=True))

    def test_sessions_that_have_ended_count_also_for_the_next_broker(self):
        for n in range(1, 3):
            program = self.start()
            self.work(program)
            self.counts({LAUNCH: n * N_LAUNCHES, WAIT: n})
            program.communicate()
            self.host.wait_for("session ended", n)
            before = self.counts({LAUNCH: n * N_LAUNCHES, WAIT: n})
        self.assertEqual(self.stats()[1], 0)
        self.run_ctl("set", "raw", "handles=77")
        self.assertEqual(self.stats()[0], before)

    def device_time(self):
        """What the machine has used of the device, in ns, and the number of sessions."""
        shown = json.loads(self.run_ctl("show", "raw", "--json"))
        return shown["device_time"], len(shown["processes"])

    def test_device_time_goes_on_for_the_next_broker(self):
        """Of a process that has ended, and of one that goes on, whose threads may count
        after its replies."""
        ended, running = self.start(), self.start()
        self.work(ended)
        before, _ = self.device_time()
        ended.communicate()
        self.host.wait_for("session ended", 1)
        for replace in (lambda: self.run_ctl("set", "raw", "handles=77"), self.host.reload,
                        self.host.kill_broker, self.host.replace):
            self.work(running)
            used, n = self.device_time()
            self.assertGreater(used, before)
            self.assertEqual(n, 1)
            replace()
            before, n = self.device_time()
            self.assertGreaterEqual(before, used)
            self.assertEqual(n, 1)
        running.communicate()
        self.host.wait_for("session ended", 2)
        used = self.device_time()
        self.assertGreaterEqual(used, (before, 0))
        self.run_ctl("set", "raw", "handles=78")
        self.assertEqual(self.device_time(), used)

    def test_a_worker_that_fills_its_file(self):
        """All its calls are shown, in several replies, and vgpud goes on."""
        program = self.start()
        self.work(program)
        shown = json.loads(self.run_ctl("show", "raw", "--json"))
        worker = shown["processes"][0]["worker"]
        # As control.h and histogram.h have them; the worker's command line has --stats 4.
        offset, n_calls, size = (68 << 10) + (1 << 40) + 4096, 1024, 2304
        with open(f"/proc/{worker}/fd/4", "r+b", buffering=0) as file:
            file.seek(offset)
            file.write(b"\1" * (2 * n_calls * size))
        calls, _ = self.stats()
        names = re.findall(r"VGPU_CALL_(\w+) = ",
                           (BUILD / "protocol/include/vgpu/g-calls.h").read_text())
        self.assertLessEqual(set(calls) - {"?"}, set(names))
        self.assertGreater(len(calls), 0.9 * len(names))
        self.work(program)
        program.communicate()
        self.host.wait_for("session ended", 1)
        self.assertEqual(len(self.stats()[0]), len(calls))


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
