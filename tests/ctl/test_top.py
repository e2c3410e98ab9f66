#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl top beside a program that launches and copies on softgpu: test_top.py BUILD"""

import ctypes
import json
import os
import select
import subprocess
import sys
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests/lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

# Larger copies count once for each piece in which they are sent.
N_LAUNCHES, N_COPIES, SIZE = 37, 5, 1 << 16
PTX = b""".version 7.0
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
"""


def program():
    """Launches and copies a known number of times for each line 'once' of its input; for a
    line 'on', until the next line."""
    cuda = ctypes.CDLL(str(BUILD / "guest-shim/libcuda.so.1"))
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory = ctypes.c_uint64()

    def call(name, *arguments):
        result = getattr(cuda, name)(*arguments)
        if result:
            sys.exit(f"{name}: {result}")

    def work():
        for _ in range(N_LAUNCHES):
            call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
        for _ in range(N_COPIES):
            call("cuMemcpyHtoD_v2", memory, bytes(SIZE), ctypes.c_size_t(SIZE))
        call("cuCtxSynchronize")

    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"nothing")
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(SIZE))
    while line := os.read(0, 16):
        work()
        os.write(1, b"done\n")
        while line == b"on\n" and not select.select([0], [], [], 0)[0]:
            work()


class Top(unittest.TestCase):
    def setUp(self):
        self.host = Host(BUILD, prepare=self.prepare)
        self.host.__enter__()
        self.addCleanup(self.host.__exit__)
        self.program = subprocess.Popen(
            [sys.executable, __file__, BUILD, "program"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, bufsize=0,
            env=dict(os.environ, VGPU_SOCKET=str(self.host.socket)))
        self.addCleanup(self.end)

    def prepare(self, folder):
        self.socket = folder / "control"
        return f"ctl-socket = {self.socket}\n"

    def end(self):
        self.program.communicate()
        self.assertEqual(self.program.wait(60), 0)

    def ask(self, word):
        self.program.stdin.write(word)
        self.assertEqual(self.program.stdout.read(5), b"done\n")

    def top(self):
        """What it says of the machine, and of the program."""
        done = subprocess.run(
            [BUILD / "host-daemon/ctl/vgpuctl", "--socket", self.socket, "top", "--json",
             "--interval", "1"], text=True, timeout=60, stdout=subprocess.PIPE, check=True)
        shown = json.loads(done.stdout)
        self.assertEqual(len(shown["vms"]), 1)
        self.assertEqual(len(shown["processes"]), 1)
        return shown["vms"][0], shown["processes"][0]

    def test_what_a_program_did_is_counted(self):
        for n in range(1, 4):
            self.ask(b"once\n")
            _, process = self.top()
            self.assertEqual(process["pid"], self.program.pid)
            self.assertEqual(process["vm"], "raw")
            self.assertEqual(process["launches"], n * N_LAUNCHES)
            self.assertEqual(process["copies"], n * N_COPIES)
            self.assertEqual(process["bytes"], n * N_COPIES * SIZE)
            self.assertEqual(process["launches_per_second"], 0)
            self.assertGreaterEqual(process["device_memory"], SIZE)

    def test_what_a_program_does_is_a_rate(self):
        self.ask(b"on\n")
        vm, process = self.top()
        self.program.stdin.write(b"off\n")
        for use in vm, process:
            self.assertGreater(use["launches_per_second"], 0)
            self.assertGreater(use["copies_per_second"], 0)
            self.assertGreater(use["calls_per_second"], 0)
            self.assertIn(use["busy_percent"], range(101))
            self.assertIn(use["queued_percent"], range(101))
        self.assertEqual(vm["launches_per_second"], process["launches_per_second"])
        self.assertEqual(process["bytes_per_second"], process["copies_per_second"] * SIZE)
        self.assertEqual(self.program.stdout.read(5), b"done\n")


if __name__ == "__main__":
    if sys.argv[2:] == ["program"]:
        program()
        sys.exit(0)
    sys.exit(tap.unittest_main())
