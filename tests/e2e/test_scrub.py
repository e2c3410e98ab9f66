#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No process finds what another one left in memory, whatever the kind of memory, however
the other one ended, and whether it is of the same VM or not.

    test_scrub.py BUILD SOURCE PROGRAM

The programs (programs/families.c) fill all they take with a pattern, and find it there;
the next one takes as much and counts the words of the pattern in it, without a write. The
memory that guest and host share is searched whole.
"""

import mmap
import os
import signal
import struct
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib"), str(HERE.parent / "raw")]
import tap  # pylint: disable=wrong-import-position
import wire  # pylint: disable=wrong-import-position
from families import (  # pylint: disable=wrong-import-position
    DEVICE_KINDS, HOST_KINDS, KERNEL_KINDS, Program)
from host import Host  # pylint: disable=wrong-import-position
from test_raw import prepare  # pylint: disable=wrong-import-position

BUILD, SOURCE, PROGRAM = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
KINDS = (*DEVICE_KINDS, *HOST_KINDS, *KERNEL_KINDS)
PATTERN = struct.pack("<I", 0x5CA1AB1E)
PIECE = 2 << 20
# Small pieces share what large ones have for themselves.
SIZES = (8192, PIECE)


def size_of(kind, size):
    return PIECE if kind == "virtual" else size


class Scrub(unittest.TestCase):
    def start(self, **options):
        host = Host(BUILD, **options)
        self.host = host.__enter__()
        self.addCleanup(host.__exit__, None, None, None)
        return self.host

    def program(self, socket=None):
        program = Program(self, BUILD, PROGRAM, socket or self.host.socket)
        program.do("begin")
        return program

    def fill(self, socket=None):
        """A program that has its pattern in memory of every kind."""
        program = self.program(socket)
        for kind in KINDS:
            for size in SIZES:
                before = program.number("look")
                program.do("take", kind, size_of(kind, size))
                # In each the pattern can be found: else none that is left could be.
                found = program.number("fill")
                self.assertGreater(found, before, kind)
        self.assertEqual(program.number("look") > 0, True)
        return program

    def look(self, socket=None, rounds=3):
        """What a new process finds in as much memory and more."""
        program = self.program(socket)
        for kind in KINDS:
            for size in SIZES * rounds:
                program.do("take", kind, size_of(kind, size))
            self.assertEqual(program.number("look"), 0, f"old contents of {kind}")
        program.end()

    def worker_of(self, program):
        return int(self.host.wait_for(
            rf"session opened .* pid={program.process.pid} .*worker=(\d+)").group(1))

    def test_the_next_process_after_an_exit(self):
        self.start()
        self.fill().end()
        self.look()

    def test_the_next_process_after_a_kill(self):
        self.start()
        program = self.fill()
        program.process.kill()
        program.process.wait()
        self.look()

    def test_the_next_process_after_its_worker_was_killed(self):
        self.start()
        program = self.fill()
        os.kill(self.worker_of(program), signal.SIGKILL)
        self.host.wait_for("session ended")
        self.look()

    def test_processes_of_another_vm_at_the_same_time(self):
        with tempfile.TemporaryDirectory() as folder:
            socket = f"{folder}/other"
            self.start(vm=f"[vm other]\ntransport = socket\nsocket = {socket}\nsize = 256M")
            program = self.fill()
            self.look(socket)
            program.end()
            self.look(socket)
            self.look()

    def test_a_worker_serves_one_process(self):
        """So what a driver keeps in its own memory, such as shared memory of blocks, is never
        in a process that another guest process has used."""
        self.start()
        workers = set()
        for _ in range(4):
            program = self.program()
            workers.add(self.worker_of(program))
            program.end()
        self.assertEqual(len(workers), 4)


class PlainChannel(wire.Channel):
    """A channel in memory of transport plain, which the host polls."""

    n_requests = 0

    def __init__(self, api, machine, index):
        self.api, self.index = api, index
        self.entry = wire.TABLE_OFF + index * wire.ENTRY_SIZE
        self.memory, self.view = machine, memoryview(machine)
        self.tail, self.sequences, self.shm_size = 0, {}, len(machine)
        # The guest kernel's random id, of which the header has a copy.
        self.memory[self.entry + 96:self.entry + 112] = self.memory[128:144]
        self._open(wire.PROTOCOL_VERSION, 0)
        assert self.state == wire.OPEN, f"state {self.state}, reason {self.reason}"

    def ring_doorbell(self, vector):
        # The host looks at the table whenever this number is another one.
        if not vector:
            PlainChannel.n_requests += 1
            self.put("I", 128 + 16, PlainChannel.n_requests)

    @property
    def worker(self):
        return self.u32(self.entry + 192 + 20)

    def close(self):
        self.state = wire.CLOSING
        self.ring_doorbell(0)
        self.wait(lambda: self.state == wire.FREE, "a free entry")
        self.view.release()


class Shared(unittest.TestCase):
    """Processes of one VM, whose memory is in one file."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.path = Path(folder.name) / "memory"
        self.path.write_bytes(b"")
        os.truncate(self.path, 256 << 20)
        self.path.chmod(0o600)
        host = Host(BUILD, vm=f"[vm plain]\ntransport = plain\nmemory = {self.path}")
        self.host = host.__enter__()
        self.addCleanup(host.__exit__, None, None, None)
        self.host.wait_for("connected .transport plain")
        self.api = wire.Api(SOURCE / "protocol/api")
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.addCleanup(self.memory.close)
        self.memory[128:144] = b"one boot of many"

    def fill(self, channel):
        """Its area from the ring on, and all extents that it gets."""
        grants = [(channel.first_extent, channel.n_extents)]
        result, out = channel.call("vgpuArenaGrow", n_extents=8)
        self.assertEqual((result, out.get("n_granted")), (0, 8))
        grants.append((out.get("first_extent", 0), 8))
        for first, n in grants:
            start = channel.extents_off + first * wire.EXTENT_SIZE
            size = n * wire.EXTENT_SIZE
            self.memory[start:start + size] = PATTERN * (size // 4)
        # Replies of no lane that is in use, words, and the ring behind its tail.
        for off, size in ((wire.SLOTS_OFF + wire.SLOT_SIZE, 64 * wire.SLOT_SIZE),
                          (wire.WORDS_OFF + (64 << 10), 64 << 10),
                          (wire.RING_OFF + (64 << 10), 128 << 10)):
            start = channel.area + off
            self.memory[start:start + size] = PATTERN * (size // 4)

    def found(self):
        """Where the pattern is in the whole file, or -1. A read of a hole takes no memory."""
        with open(self.path, "rb") as file:
            end = 0
            while True:
                try:
                    start = os.lseek(file.fileno(), end, os.SEEK_DATA)
                except OSError:
                    return -1
                end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
                at = os.pread(file.fileno(), end - start, start).find(PATTERN)
                if at >= 0:
                    return start + at

    def opened(self, index):
        channel = PlainChannel(self.api, self.memory, index)
        prepare(channel)
        return channel

    def test_what_a_process_leaves_that_closes(self):
        channel = self.opened(0)
        self.fill(channel)
        self.assertGreater(self.found(), 0)
        channel.close()
        self.assertEqual(self.found(), -1)
        # Whoever comes next has the same memory, and finds nothing either.
        channel = self.opened(0)
        self.assertEqual(self.found(), -1)
        channel.close()

    def test_what_a_process_leaves_whose_worker_was_killed(self):
        channel, neighbour = self.opened(0), self.opened(1)
        self.fill(channel)
        os.kill(channel.worker, signal.SIGKILL)
        channel.wait(lambda: channel.state == wire.DEAD, "the session's end")
        channel.close()
        self.assertEqual(self.found(), -1)
        self.assertEqual(neighbour.call("cuCtxSynchronize")[0], 0)
        neighbour.close()

    def test_what_the_guest_leaves_that_boots_again(self):
        channel = self.opened(0)
        self.fill(channel)
        self.memory[128:144] = b"and another boot"
        channel.ring_doorbell(0)
        channel.wait(lambda: channel.state == wire.FREE, "a free entry")
        self.assertEqual(self.found(), -1)
        channel.view.release()
        self.opened(1).close()


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
