#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trace of a program has a line for each call.

    test_trace.py BUILD PROGRAM
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
import tap  # pylint: disable=wrong-import-position
from host import Host  # pylint: disable=wrong-import-position

LINE = re.compile(
    r"(?P<time>\d+\.\d{6}) (?P<pid>\d+)/(?P<tid>\d+) (?P<call>\w+\(.*\) = \w+) "
    r"<(?P<seconds>\d+\.\d{9})>(?: (?P<sent>\d+) sent)?\Z")
BUILD, PROGRAM = Path(sys.argv[1]), sys.argv[2]


def run(host, trace, at=None, **more):
    environment = dict(os.environ, VGPU_SOCKET=str(host.socket), VGPU_TRACE=str(trace))
    environment["LD_LIBRARY_PATH"] = str(BUILD / "guest-shim")
    environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
    environment.update(more)
    return subprocess.run([Path(PROGRAM).absolute()], env=environment, text=True, check=True,
                          capture_output=True, cwd=at)


class Trace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vgpu-trace-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.host = Host(BUILD)
        self.host.__enter__()
        self.addCleanup(self.host.__exit__)

    def matches(self, text):
        lines = text.splitlines()
        found = [LINE.match(line) for line in lines]
        self.assertEqual([line for line, match in zip(lines, found) if not match], [])
        return found

    def test_each_call_has_a_line_with_all_it_said(self):
        begin = time.time()
        done = run(self.host, self.folder / "trace")
        matches = self.matches((self.folder / "trace").read_text(encoding="utf-8"))
        self.assertEqual([m["call"] for m in matches], done.stdout.splitlines())
        times = [float(m["time"]) for m in matches]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(times[0], begin - 1)
        self.assertLessEqual(times[-1] + float(matches[-1]["seconds"]), time.time() + 1)
        # The first thread of a process has its number; the child is another process,
        # before and after it became another program.
        pids = [m["pid"] for m in matches]
        self.assertEqual(pids, [m["tid"] for m in matches])
        self.assertEqual(pids[-3], pids[-2])
        self.assertEqual(set(pids[:-3] + pids[-1:]), {pids[0]})
        self.assertNotEqual(pids[-2], pids[0])

    def test_every_process_may_have_its_own_file(self):
        done = run(self.host, self.folder / "of-%p")
        files = sorted(self.folder.glob("of-*"))
        self.assertEqual(len(files), 2)
        n = 0
        for path in files:
            matches = self.matches(path.read_text(encoding="utf-8"))
            self.assertEqual({m["pid"] for m in matches}, {path.name[len("of-"):]})
            n += len(matches)
        self.assertEqual(n, len(done.stdout.splitlines()))

    def test_lines_are_added_to_what_is_there(self):
        (self.folder / "trace").write_text("what was there\n", encoding="utf-8")
        done = run(self.host, self.folder / "trace", VGPU_SYNC="1")
        lines = (self.folder / "trace").read_text(encoding="utf-8").splitlines()
        self.assertEqual(lines[0], "what was there")
        self.assertEqual(len(lines), 1 + len(done.stdout.splitlines()))

    def test_a_switch_is_no_name_of_a_file(self):
        for value, n_files in (("1", 2), ("yes", 2), ("0", 0), ("no", 0)):
            place = self.folder / f"with-{value}"
            place.mkdir()
            run(self.host, value, at=place)
            files = sorted(path.name for path in place.iterdir())
            self.assertEqual(len(files), n_files, files)
            for name in files:
                self.assertRegex(name, r"\Avgpu-trace\.\d+\Z")

    def test_a_file_that_cannot_be_made_is_told_once_and_no_harm_is_done(self):
        done = run(self.host, self.folder / "no such folder" / "trace")
        self.assertIn("cuCtxSynchronize() = CUDA_SUCCESS", done.stdout)
        # One line for each program: the child starts a new file.
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2, done.stderr)
        for line in lines:
            self.assertIn("no calls are traced", line)
            self.assertIn("No such file or directory", line)


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
