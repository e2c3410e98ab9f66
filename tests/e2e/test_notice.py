#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A configuration that lowers the device memory of a VM below its use: the program's
callbacks get the number of bytes.

    test_notice.py BUILD PROGRAM [COPIES]

COPIES is a folder with another vgpud, its worker and the guest library. That there is no
notice is seen by the next one: notices come in order.
"""

import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import proc  # pylint: disable=wrong-import-position
import tap  # pylint: disable=wrong-import-position
from host import Host  # pylint: disable=wrong-import-position

BUILD, PROGRAM = Path(sys.argv[1]), sys.argv[2]
COPIES = Path(sys.argv[3]) if len(sys.argv) > 3 else None
MIB = 1 << 20
NOT_PERMITTED, INVALID_VALUE, INVALID_DEVICE, UNKNOWN = 800, 1, 101, 999


class Program:
    """programs/notice.c."""

    def __init__(self, host, **environment):
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket), **environment)
        environment["LD_LIBRARY_PATH"] = str(COPIES or BUILD / "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        self.process = subprocess.Popen([PROGRAM], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = []
        self.do("begin")

    def read(self):
        line = self.process.stdout.readline()
        assert line, f"the program ended: {self.process.wait()}"
        return line.strip()

    def result(self, command):
        """Makes a call; what callbacks say meanwhile is kept."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        while True:
            line = self.read()
            if line.startswith("= "):
                return int(line[2:])
            self.lines.append(line)

    def do(self, *commands):
        for command in commands:
            result = self.result(command)
            assert result == 0, f"{command}: {result}"

    def said(self):
        """The next line of a callback."""
        return self.lines.pop(0) if self.lines else self.read()

    def end(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        assert self.process.wait(60) == 0


class Notice(unittest.TestCase):
    def start(self, memory="256M", environment=None):
        self.memory = memory
        host = Host(BUILD, vm=f"device-memory = {memory}", environment=environment,
                    vgpud=COPIES and COPIES / "vgpud")
        self.host = host.__enter__()
        self.addCleanup(host.__exit__, None, None, None)

    def program(self, **environment):
        program = Program(self.host, **environment)
        self.last = program
        self.addCleanup(program.process.stdout.close)
        self.addCleanup(program.process.kill)
        return program

    def reload(self, memory):
        """Another limit, which the program that was started last sees when this returns."""
        self.host.reload((f"device-memory = {self.memory}", f"device-memory = {memory}"))
        self.memory = memory
        while self.last.result("limit") != int(memory[:-1]):
            time.sleep(0.01)

    def expect(self, program, *lines):
        self.assertEqual([program.said() for _ in lines], list(lines))

    def over(self, n_mib, number=0):
        return f"notice {number} {n_mib * MIB}"

    def end(self, *programs):
        for program in programs:
            program.end()
            self.assertEqual(program.lines, [])

    def lower_twice(self, **environment):
        self.start()
        program = self.program(**environment)
        program.do(f"alloc {100 * MIB}", "register 0", "register 1", "register 2")
        self.reload("64M")
        self.expect(program, self.over(36), self.over(36, 1), self.over(36, 2))
        # Again, without anything in between.
        self.reload("32M")
        self.expect(program, self.over(68), self.over(68, 1), self.over(68, 2))
        # And after memory was freed, and the limit was raised.
        program.do("free", "unregister 1")
        self.reload("128M")
        program.do(f"alloc {80 * MIB}")
        self.reload("48M")
        self.expect(program, self.over(32), self.over(32, 2))
        self.end(program)

    def test_a_limit_below_the_use_is_told_each_time(self):
        self.lower_twice()

    def test_a_limit_below_the_use_is_told_each_time_synchronous(self):
        self.lower_twice(VGPU_SYNC="1")

    def test_what_is_no_excess_is_not_told(self):
        self.start()
        program = self.program()
        program.do(f"alloc {60 * MIB}", "register 0")
        for enough in "60M", "60M", "128M", "64M":
            self.reload(enough)
        # More than there is: refused, and no excess.
        self.assertEqual(program.result(f"alloc {8 * MIB}"), 2)
        self.reload("59M")
        self.expect(program, self.over(1))
        # Less of an excess is none more.
        program.do("register 1")
        self.reload("59M")
        program.do("free")
        self.reload("256M")
        program.do(f"alloc {20 * MIB}")
        self.reload("10M")
        self.expect(program, self.over(10), self.over(10, 1))
        self.end(program)

    def test_the_use_is_that_of_all_processes(self):
        self.start()
        silent, small, other = self.program(), self.program(), self.program()
        silent.do(f"alloc {90 * MIB}")
        small.do(f"alloc {10 * MIB}", "register 0")
        other.do("register 0")
        self.reload("64M")
        self.expect(small, self.over(36))
        self.expect(other, self.over(36))
        # That it is over is not told to whoever comes later, but what happens then is.
        later = self.program()
        later.do("register 0")
        self.reload("63M")
        for program in (small, other, later):
            self.expect(program, self.over(37))
        # What a process had that was killed is not in use.
        silent.process.kill()
        self.host.wait_for("session ended")
        self.reload("9M")
        for program in (small, other, later):
            self.expect(program, self.over(1))
        self.end(small, other, later)

    def test_callbacks_of_all_devices(self):
        self.start(environment={"VGPU_SOFTGPU_DEVICES": "3"})
        program = self.program(CUDA_VISIBLE_DEVICES="2,0")
        program.do(f"alloc {100 * MIB}", "register 0 1", "register 1 0")
        self.assertEqual(program.result("register 2 2"), INVALID_DEVICE)
        self.reload("64M")
        self.expect(program, self.over(36), self.over(36, 1))
        self.end(program)

    def test_no_callback_after_it_was_unregistered(self):
        self.start()
        program = self.program()
        program.do(f"alloc {100 * MIB}", "register 0 0 w", "register 1", "register 2")
        self.reload("64M")
        self.expect(program, self.over(36))
        # The first one runs; the second is unregistered at once.
        program.do("unregister 1", "leave 0")
        # A registration that is ending is none any more; this one waits in its place if it
        # comes first.
        program.do("release")
        self.expect(program, "returns 0 0")
        self.assertEqual({program.said(), program.said()}, {"left 0 0", self.over(36, 2)})
        self.assertEqual(program.result("unregister 0"), INVALID_VALUE)
        self.reload("32M")
        self.expect(program, self.over(68, 2))
        self.end(program)

    def test_calls_in_a_callback(self):
        self.start()
        program = self.program()
        program.do(f"alloc {100 * MIB}", "register 0 0 c", "register 1")
        # A stream that is blocked by another callback holds up nothing.
        program.do("block")
        self.reload("64M")
        self.expect(program, self.over(36), f"registers 0 {NOT_PERMITTED}",
                    f"unregisters 0 {NOT_PERMITTED}", "enters 0 0")
        # Freeing waits for the stream.
        program.do("unblock")
        self.expect(program, "frees 0 0", f"has 0 {64 * MIB}", self.over(36, 1))
        self.end(program)

    def test_a_callback_that_ends_its_thread(self):
        self.start()
        program = self.program()
        program.do(f"alloc {100 * MIB}", "register 0 0 e", "register 1", "register 2 0 e")
        self.reload("64M")
        self.expect(program, self.over(36), self.over(36, 1), self.over(36, 2))
        program.do("unregister 0")
        self.reload("32M")
        self.expect(program, self.over(68, 1), self.over(68, 2))
        self.end(program)

    def test_the_program_ends_in_a_callback(self):
        self.start()
        program = self.program()
        program.do(f"alloc {100 * MIB}", "register 0 0 w")
        self.reload("64M")
        self.expect(program, self.over(36))
        self.end(program)
        self.host.wait_for("session ended .*reason=closed")

    def test_registrations_outlive_contexts(self):
        self.start()
        program = self.program()
        program.do("register 0", f"alloc {10 * MIB}", "reset", "begin", f"alloc {100 * MIB}")
        self.reload("64M")
        self.expect(program, self.over(36))
        self.end(program)

    def test_another_broker(self):
        self.start()
        program = self.program()
        program.do(f"alloc {100 * MIB}", "register 0")
        os.kill(proc.broker_of(self.host), signal.SIGKILL)
        self.reload("64M")
        self.expect(program, self.over(36))
        # One that finds the same limit tells nothing.
        self.host.process.send_signal(signal.SIGUSR2)
        self.reload("32M")
        self.expect(program, self.over(68))
        self.end(program)

    def test_a_worker_that_was_killed(self):
        self.start()
        program, other = self.program(), self.program()
        program.do(f"alloc {100 * MIB}", "register 0")
        other.do(f"alloc {100 * MIB}", "register 0")
        worker = int(self.host.wait_for(
            rf"session opened .* pid={program.process.pid} .*worker=(\d+)").group(1))
        os.kill(worker, signal.SIGKILL)
        self.host.wait_for("session ended")
        self.reload("64M")
        self.expect(other, self.over(36))
        for command in ("register 1", "unregister 0"):
            self.assertEqual(program.result(command), UNKNOWN)
        self.end(program, other)


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
