# SPDX-License-Identifier: Apache-2.0
"""For tests of what vgpud counts: a vgpud with a socket for vgpuctl, and a program that
launches and copies a known number of times, which is that of test_top.py."""

import os
import subprocess
import sys
from pathlib import Path

from host import Host

PROGRAM = Path(__file__).resolve().parent.parent / "ctl/test_top.py"


class Counted:
    """For test cases, whose setUp() calls start_host()."""

    def start_host(self, build, **options):
        self.build = build
        self.host = Host(build, prepare=self.prepare, **options)
        self.host.__enter__()
        self.addCleanup(self.host.__exit__)

    def prepare(self, folder):
        self.socket = folder / "control"
        return f"ctl-socket = {self.socket}\n"

    def start(self):
        program = subprocess.Popen(
            [sys.executable, PROGRAM, self.build, "program"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, bufsize=0,
            env=dict(os.environ, VGPU_SOCKET=str(self.host.socket)))
        self.addCleanup(program.communicate)
        return program

    def work(self, program):
        program.stdin.write(b"once\n")
        self.assertEqual(program.stdout.read(5), b"done\n")
