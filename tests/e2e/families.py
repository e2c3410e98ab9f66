# SPDX-License-Identifier: Apache-2.0
"""A guest program that takes memory of every kind, programs/families.c, under control."""

import os
import subprocess

OUT_OF_MEMORY = 2
# Those of device memory; the others are in the VM's shared memory.
DEVICE_KINDS = ("linear", "pitched", "array", "mipmap", "pool", "virtual", "module", "graph")
HOST_KINDS = ("managed", "pinned")
# What kernels have without an allocation of the program.
KERNEL_KINDS = ("shared", "local", "heap")


class Program:
    """One process of a guest."""

    def __init__(self, test, build, program, socket, **environment):
        environment = dict(os.environ, VGPU_SOCKET=str(socket), **environment)
        environment["LD_LIBRARY_PATH"] = str(build / "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        self.process = subprocess.Popen([program], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # Lines of kernels so far.
        self.n_printed = 0
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        """Returns (CUresult, number)."""
        line = self.process.stdout.readline()
        while line == "#\n":
            self.n_printed += 1
            line = self.process.stdout.readline()
        assert line.startswith("= "), f"the program ended: {self.process.wait()}"
        result, number = line[2:].split()
        return int(result), int(number)

    def result(self, *words):
        self.send(*words)
        return self.answer()[0]

    def number(self, *words):
        """The answer to a command that succeeds."""
        self.send(*words)
        result, number = self.answer()
        assert result == 0, f"{words}: {result}"
        return number

    do = number

    def end(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        assert self.process.wait(60) == 0
