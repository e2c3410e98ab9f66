#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines whose memory does not fit the device together:

    test_oversubscription.py BUILD [DRIVER]

Without a driver that of softgpu moves. Another one is asked to unmap and map its memory:
softgpu as a driver that the worker knows nothing of, tests/foreign."""

import json
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import time
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
DRIVER = sys.argv[2] if len(sys.argv) > 2 else "soft"
SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(SOURCE / "tests/lib"), str(SOURCE / "tests/e2e")]

import tap  # noqa: E402  pylint: disable=wrong-import-position
from families import (  # noqa: E402  pylint: disable=wrong-import-position
    DEVICE_KINDS, OUT_OF_MEMORY, Program)
from failing import Failing  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
TOTAL = 64 * MIB
EVICTABLE = "evictable = yes"
# Results of calls that fail; neither breaks a context.
INVALID, BAD_STATE = 1, 401
only_foreign = unittest.skipIf(DRIVER == "soft", "softgpu's memory is not mapped by calls")
RESIDENT = BUILD / "tests/sharing/resident"
FAMILIES = BUILD / "tests/e2e/e2e-families"


class Oversubscription(unittest.TestCase):
    def start(self, *settings, total=f"device-memory-total = {TOTAL}", idle=1):
        self.settings, self.total = settings or (EVICTABLE, EVICTABLE), total
        self.idle = idle
        self.failing = Failing()
        self.addCleanup(self.failing.close)
        self.host = Host(BUILD, driver=DRIVER, prepare=self.prepare, vm=self.settings[0],
                         environment={"VGPU_FOREIGN_FAILING": str(self.failing.number)})
        self.host.__enter__()
        self.addCleanup(self.host.__exit__)

    def prepare(self, folder):
        self.control = folder / "control"
        self.sockets = [folder / "socket", folder / "b"]
        self.host.vm += (f"\n[vm b]\ntransport = socket\nsocket = {self.sockets[1]}\n"
                         f"size = 256M\n{self.settings[1]}\n")
        return (f"ctl-socket = {self.control}\nsoftgpu-threads = 2\n{self.total}\n"
                f"evict-idle = {self.idle}\n")

    def program(self, machine, program=RESIDENT):
        program = Program(self, BUILD, program, self.sockets[machine], VGPU_WINDOW="1")
        program.do("begin")
        return program

    def two(self, first=48, second=32):
        """Two programs; the first has its memory, with contents, and the second wants some."""
        a, b = self.program(0), self.program(1)
        self.addresses = [a.do("take", first * MIB // 2) for _ in range(2)]
        a.do("write", 1)
        self.second = second * MIB
        return a, b

    def show(self, machine):
        done = subprocess.run(
            [BUILD / "host-daemon/ctl/vgpuctl", "--socket", self.control, "show", "--json",
             "raw" if machine == 0 else "b"], text=True, timeout=60, stdout=subprocess.PIPE,
            check=True)
        return json.loads(done.stdout)

    def evicted(self, machine):
        return self.show(machine)["device_memory_evicted"]

    def take_late(self, program, size, kind="take"):
        """Allocates as soon as others have been idle long enough."""
        end = time.monotonic() + 60
        while True:
            program.send(kind, size)
            result, address = program.answer()
            if not result or time.monotonic() > end:
                break
            self.assertEqual(result, OUT_OF_MEMORY)
            time.sleep(0.05)
        self.assertEqual(result, 0)
        return address

    def test_an_idle_machine_makes_room_and_comes_back(self):
        self.start()
        a, b = self.two()
        self.take_late(b, self.second)
        self.assertGreaterEqual(self.evicted(0), 48 * MIB)
        self.assertEqual(self.evicted(1), 0)
        # It still counts as its own.
        self.assertGreaterEqual(self.show(0)["device_memory"], 48 * MIB)
        b.do("write", 7)
        # By a kernel, at the addresses that it had, and then the other one is idle.
        a.do("add", 3)
        self.assertEqual(a.number("check", 4), 0)
        self.assertEqual(self.evicted(0), 0)
        self.assertGreaterEqual(self.evicted(1), 32 * MIB)
        # And back, by copies.
        self.assertEqual(b.number("check", 7), 0)
        self.assertEqual(self.evicted(1), 0)
        for machine in 0, 1:
            shown = self.show(machine)
            self.assertGreaterEqual(shown["evictions"], 1)
            self.assertGreaterEqual(shown["evicted_bytes"], 32 * MIB)
        self.assertEqual(a.number("check", 4), 0)
        a.end()
        b.end()

    def test_it_is_off_by_default(self):
        self.start("", "", total="")
        a, b = self.two()
        for _ in range(10):
            b.do("take", self.second)
        self.assertEqual(self.evicted(0), 0)
        self.assertEqual(a.number("check", 1), 0)
        a.end()
        b.end()

    def test_one_that_has_not_agreed_stays(self):
        self.start("evictable = no", EVICTABLE)
        a, b = self.two()
        time.sleep(2)
        self.assertEqual(b.result("take", self.second), OUT_OF_MEMORY)
        self.assertEqual(self.evicted(0), 0)
        # What is left may be had.
        b.do("take", 15 * MIB)
        self.assertEqual(b.result("take", 2 * MIB), OUT_OF_MEMORY)
        a.do("give")
        b.do("take", 20 * MIB)
        a.end()
        b.end()

    def test_busy_machines_are_refused_and_lose_nothing(self):
        self.start()
        a, b = self.two()
        a.send("busy")
        self.assertEqual(a.answer(), (0, 0))
        time.sleep(2)
        self.assertEqual(b.result("take", self.second), OUT_OF_MEMORY)
        a.send("")
        self.assertEqual(a.answer()[0], 0)
        self.take_late(b, self.second)
        b.do("write", 9)
        b.send("busy")
        self.assertEqual(b.answer(), (0, 0))
        # It waits some seconds, and is refused before anything has run.
        self.assertEqual(a.result("add", 5), OUT_OF_MEMORY)
        self.assertGreaterEqual(self.evicted(0), 48 * MIB)
        b.send("")
        self.assertEqual(b.answer()[0], 0)
        self.assertEqual(a.number("check", 1), 0)
        self.assertEqual(b.number("check", 9), 0)
        a.end()
        b.end()

    def test_one_with_work_in_flight_stays(self):
        self.start()
        a, b = self.two()
        a.do("hold")
        time.sleep(2)
        self.assertEqual(b.result("take", self.second), OUT_OF_MEMORY)
        self.assertEqual(self.evicted(0), 0)
        a.do("open")
        self.take_late(b, self.second)
        self.assertEqual(a.number("check", 1), 0)
        a.end()
        b.end()

    def test_all_kinds_of_memory(self):
        self.start()
        a, b = self.program(0, FAMILIES), self.program(1)
        for kind in DEVICE_KINDS:
            a.do("take", kind, 2 * MIB)
        a.do("take", "heap", 65536)
        a.do("take", "linear", 20000)
        a.do("fill")
        n_words = a.number("look")
        # Arrays, variables of modules and heaps of kernels stay with such a driver.
        self.take_late(b, (60 if DRIVER == "soft" else 40) * MIB)
        self.assertGreaterEqual(self.evicted(0), 8 * MIB)
        self.assertEqual(a.number("look"), n_words)
        self.assertEqual(self.evicted(0), 0)
        a.do("reset")
        a.end()
        b.end()

    def test_memory_of_a_pool(self):
        self.start()
        a, b = self.program(0), self.program(1)
        a.do("pool", 20 * MIB)
        a.do("write", 2)
        self.take_late(b, 40 * MIB)
        self.assertGreater(self.evicted(0), 20 * MIB)
        self.assertEqual(a.number("check", 2), 0)
        a.end()
        b.end()

    def test_too_little_shared_memory_moves_nothing(self):
        self.start(EVICTABLE + "\ndevice-memory = 1G", EVICTABLE,
                   total=f"device-memory-total = {600 * MIB}")
        a, b = self.two(400, 300)
        time.sleep(2)
        self.assertEqual(b.result("take", self.second), OUT_OF_MEMORY)
        self.assertEqual(self.evicted(0), 0)
        self.host.wait_for("too little of the shared memory is free")
        self.assertEqual(a.number("check", 1), 0)
        a.end()
        b.end()

    def test_memory_that_is_freed_while_it_is_away_needs_no_room(self):
        self.start()
        a, b = self.two()
        self.take_late(b, self.second)
        b.send("busy")
        self.assertEqual(b.answer(), (0, 0))
        a.do("give")
        self.assertLess(self.evicted(0), 48 * MIB)
        # The rest finds room beside the other one.
        self.assertEqual(a.number("check", 1), 0)
        self.assertEqual(self.evicted(0), 0)
        b.send("")
        self.assertEqual(b.answer()[0], 0)
        a.end()
        b.end()

    def test_one_that_is_killed_while_its_memory_is_away(self):
        self.start()
        for how in "guest", "worker":
            a, b = self.two()
            self.take_late(b, self.second)
            n_ended = self.host.text().count("session ended")
            if how == "guest":
                a.process.kill()
            else:
                os.kill(int(self.host.wait_for(
                    rf"session opened .* pid={a.process.pid} .*worker=(\d+)").group(1)),
                        signal.SIGKILL)
            self.host.wait_for("session ended", n_ended + 1)
            self.assertEqual(self.evicted(0), 0)
            self.assertEqual(self.show(0)["device_memory"], 0)
            a.process.kill()
            b.do("write", 5)
            self.assertEqual(b.number("check", 5), 0)
            b.end()
            self.host.wait_for("session ended", n_ended + 2)

    def take_sizes(self, program):
        """Memory of many sizes. Returns its addresses."""
        sizes = [4, 512, 516, 4096, 100000, MIB - 4, MIB, MIB + 4, 2 * MIB, 3 * MIB + 512,
                 5 * MIB]
        return [program.do("take", size) for size in sizes * 2]

    def test_memory_of_all_sizes(self):
        self.start()
        a, b = self.program(0), self.program(1)
        addresses = self.take_sizes(a)
        a.do("write", 1)
        used = self.show(0)["device_memory"]
        for n in range(3):
            self.take_late(b, 48 * MIB)
            # All of it, to the byte.
            if DRIVER != "soft":
                self.assertEqual(self.evicted(0), used)
            self.assertEqual(a.number("check", 1 + n), 0)
            self.assertEqual(self.show(0)["device_memory"], used)
            a.do("add", 1)
            b.do("give")
        self.assertEqual(self.show(0)["evictions"], 3)
        self.assertEqual(self.show(0)["evicted_bytes"], self.show(0)["returned_bytes"])
        # What it takes next is where it would have been.
        self.assertNotIn(a.do("take", 512), addresses)
        a.end()
        b.end()

    def test_small_memory_that_is_freed_while_it_is_away(self):
        self.start()
        a, b = self.program(0), self.program(1)
        a.do("take", 20 * MIB)
        for _ in range(40):
            a.do("take", 8192)
        a.do("write", 3)
        self.take_late(b, 60 * MIB)
        self.assertGreater(self.evicted(0), 20 * MIB)
        for _ in range(30):
            a.do("give")
        b.do("give")
        self.assertEqual(a.number("check", 3), 0)
        for _ in range(10):
            a.do("give")
        self.take_late(b, 60 * MIB)
        a.do("give")
        self.assertEqual(self.show(0)["device_memory"], 0)
        self.assertEqual(self.evicted(0), 0)
        a.do("take", MIB)
        a.do("write", 4)
        self.assertEqual(a.number("check", 4), 0)
        a.end()
        b.end()

    def arena_of(self, program):
        """The shared memory, as the guest has it."""
        folder = f"/proc/{program.process.pid}/fd"
        for name in os.listdir(folder):
            if os.readlink(f"{folder}/{name}").startswith("/memfd:"):
                fd = os.open(f"{folder}/{name}", os.O_RDWR)
                with os.fdopen(fd) as f:
                    return mmap.mmap(f.fileno(), 0)
        raise AssertionError("the guest has no shared memory")

    def test_what_a_guest_writes_there_is_its_own(self):
        self.start()
        a, b = self.two()
        self.take_late(b, self.second)
        b.do("write", 7)
        arena = self.arena_of(a)
        for address in self.addresses:
            piece = b"".join(struct.pack("I", ((address // 4 + i) * 2654435761 + 1) % 2**32)
                             for i in range(65536 // 4))
            # The program's own copies may have left the same bytes elsewhere.
            places = [found.start() for found in re.finditer(re.escape(piece), arena)]
            self.assertTrue(places)
            for at in places:
                arena[at:at + len(piece)] = b"\xff" * len(piece)
        self.assertEqual(a.number("check", 1), len(self.addresses) * 65536 // 4)
        self.assertEqual(b.number("check", 7), 0)
        a.do("write", 2)
        self.assertEqual(a.number("check", 2), 0)
        arena.close()
        a.end()
        b.end()

    def test_graphs_find_their_memory_again(self):
        self.start()
        a, b = self.program(0), self.program(1)
        a.do("take", 48 * MIB)
        a.do("write", 1)
        a.do("graph", 5)
        self.take_late(b, 32 * MIB)
        self.assertGreaterEqual(self.evicted(0), 48 * MIB)
        a.do("launch")
        # The first half is the second one, each word 5 more.
        words = 24 * MIB // 4
        self.assertEqual(a.number("check", 1), words)
        self.assertEqual(a.number("check", (6 + words * 2654435761) % 2**32), words)
        a.end()
        b.end()

    def test_memory_that_programs_map(self):
        self.start()
        a, b = self.program(0), self.program(1)
        a.do("map", 20 * MIB)
        rights = a.number("rights")
        a.do("write", 1)
        a.do("map", 20 * MIB)
        a.do("write", 2)
        self.take_late(b, 40 * MIB)
        self.assertGreaterEqual(self.evicted(0), 40 * MIB)
        self.assertEqual(a.number("check", 2), 0)
        # Read and write, and if there is another device, read.
        self.assertEqual(rights, 3 if DRIVER == "soft" else 16 + 3)
        self.assertEqual(a.number("rights"), rights)
        a.do("give")
        a.do("add", 1)
        self.assertEqual(a.number("check", 3), 0)
        a.end()
        b.end()

    def test_memory_outlives_its_context(self):
        self.start()
        a, b = self.program(0), self.program(1)
        a.do("map", 40 * MIB)
        a.do("write", 1)
        self.take_late(b, 40 * MIB)
        self.assertGreaterEqual(self.evicted(0), 40 * MIB)
        a.do("reset")
        self.assertEqual(a.number("check", 1), 0)
        self.assertEqual(self.evicted(0), 0)
        a.do("give")
        self.assertLess(self.show(0)["device_memory"], MIB)
        a.end()
        b.end()

    def test_shared_memory_stays(self):
        self.start()
        a, b = self.program(0), self.program(1)
        a.do("take", 10 * MIB)
        a.do("share")
        a.do("take", 40 * MIB)
        a.do("write", 1)
        self.take_late(b, 40 * MIB)
        # softgpu's variables of modules move, too.
        self.assertGreaterEqual(self.evicted(0), 40 * MIB)
        self.assertLess(self.evicted(0), 41 * MIB)
        self.assertEqual(b.result("take", 20 * MIB), OUT_OF_MEMORY)
        self.assertEqual(a.number("check", 1), 0)
        a.end()
        b.end()

    @only_foreign
    def test_devices_get_their_own_memory_back(self):
        self.start()
        a, b = self.program(0), self.program(1)
        a.do("take", 20 * MIB)
        a.do("begin", 1)
        a.do("take", 20 * MIB)
        a.do("take", 4096)
        a.do("write", 1)
        self.take_late(b, 40 * MIB)
        self.assertEqual(self.evicted(0), 40 * MIB + 4096)
        self.assertEqual(a.number("check", 1), 0)
        # Those of the second one, where the kernel is.
        for _ in range(2):
            a.do("give")
        a.end()
        b.end()

    def check_two(self, a, b):
        """All that two() and a second program have is as it was."""
        self.assertEqual(a.number("check", 1), 0)
        self.assertEqual(b.number("check", 6), 0)
        self.assertEqual(a.number("check", 1), 0)

    @only_foreign
    def test_copies_out_that_fail_move_nothing(self):
        self.start()
        a, b = self.two()
        self.failing.fail("copy_out", n=1000, good=1, result=INVALID)
        while "does not copy memory that is to make room" not in self.host.text():
            self.assertEqual(b.result("take", self.second), OUT_OF_MEMORY)
            time.sleep(0.05)
        self.assertEqual(self.evicted(0), 0)
        self.assertEqual(self.failing.n_calls("unmap"), 0)
        self.failing.end()
        self.take_late(b, self.second)
        b.do("write", 6)
        self.check_two(a, b)
        a.end()
        b.end()

    @only_foreign
    def test_memory_that_the_driver_keeps_stays(self):
        for call in "unmap", "release":
            self.start()
            a, b = self.two()
            self.failing.fail(call, result=BAD_STATE)
            self.take_late(b, self.second)
            self.assertEqual(self.failing.left(call), 0)
            # One of two.
            self.assertEqual(self.evicted(0), 24 * MIB)
            self.failing.end()
            b.do("write", 6)
            self.check_two(a, b)
            a.end()
            b.end()

    @only_foreign
    def test_memory_that_can_neither_be_released_nor_mapped(self):
        self.start()
        a, b = self.two()
        self.failing.fail("release", result=BAD_STATE)
        self.failing.fail("map", result=BAD_STATE)
        # The mapping that fails is that of memory which the driver keeps, if not of the
        # second machine.
        self.take_late(b, self.second)
        self.failing.end()
        b.do("write", 6)
        self.check_two(a, b)
        a.end()
        b.end()

    @only_foreign
    def test_a_driver_without_memory_for_a_moment(self):
        self.start()
        a, b = self.two()
        self.take_late(b, self.second)
        b.do("write", 6)
        self.failing.fail("create", n=3, good=1, result=OUT_OF_MEMORY)
        self.assertEqual(a.number("check", 1), 0)
        self.assertEqual(self.failing.left("create"), 0)
        self.check_two(a, b)
        a.end()
        b.end()

    @only_foreign
    def test_failures_on_the_way_back_lose_nothing(self):
        self.start()
        a, b = self.two()
        self.take_late(b, self.second)
        b.do("write", 6)
        for call, result in (("create", OUT_OF_MEMORY), ("map", BAD_STATE),
                             ("access", INVALID), ("copy_in", BAD_STATE)):
            # The second one.
            self.failing.fail(call, n=1000, good=1, result=result)
            self.assertEqual(a.result("check", 1), result, call)
            self.assertLess(self.failing.left(call), 1000)
            self.assertGreaterEqual(self.evicted(0), 48 * MIB)
            self.failing.end()
            # Nobody has what has not come back.
            self.assertLess(self.failing.used(), 48 * MIB)
            self.check_two(a, b)
            self.take_late(b, 4 * MIB)
            b.do("give")
            self.assertEqual(b.number("check", 6), 0)
            self.assertGreaterEqual(self.evicted(0), 48 * MIB)
        # And what has moved to and fro is all there is.
        self.assertEqual(a.number("check", 1), 0)
        a.do("give")
        a.do("give")
        self.assertEqual(self.evicted(0), 0)
        self.assertEqual(self.show(0)["device_memory"], 0)
        a.end()
        b.end()

    @only_foreign
    def test_a_driver_that_has_less_than_the_total(self):
        for kind in "take", "pool", "map":
            self.start(total=f"device-memory-total = {4 * TOTAL}")
            self.failing.set_memory(TOTAL)
            a, b = self.two()
            # There is room for both, but the device has not so much.
            self.take_late(b, self.second, kind)
            self.assertEqual(self.evicted(0), 48 * MIB)
            self.assertLessEqual(self.failing.used(), TOTAL)
            b.do("write", 6)
            # The same when it comes back, and each has its bytes.
            self.check_two(a, b)
            self.assertLessEqual(self.failing.used(), TOTAL)
            self.assertGreaterEqual(self.show(1)["evictions"], 1)
            self.assertGreaterEqual(self.show(0)["evictions"], 2)
            a.end()
            b.end()

    @only_foreign
    def test_a_driver_without_memory_for_an_array(self):
        self.start(total=f"device-memory-total = {4 * TOTAL}")
        others = [self.program(0) for _ in range(2)]
        b = self.program(1, FAMILIES)
        for program in others:
            program.do("take", 8 * MIB)
            program.do("write", 1)
        time.sleep(2)
        for n, kind in enumerate(("array", "mipmap")):
            self.failing.fail("array", result=OUT_OF_MEMORY)
            b.do("take", kind, 2 * MIB)
            self.assertEqual(self.failing.left("array"), 0)
            self.assertEqual(self.evicted(0), 8 * MIB * (n + 1))
        b.do("fill")
        for program in others:
            self.assertEqual(program.number("check", 1), 0)
            program.end()
        b.end()

    @only_foreign
    def test_a_driver_without_memory_moves_none_that_stays(self):
        self.start("evictable = no", EVICTABLE, total=f"device-memory-total = {4 * TOTAL}")
        self.failing.set_memory(TOTAL)
        a, b = self.two()
        time.sleep(2)
        self.assertEqual(b.result("take", self.second), OUT_OF_MEMORY)
        self.host.wait_for("the driver has no 32 MiB for it")
        self.assertEqual(self.show(1)["device_memory"], 0)
        # What there is can be had, and memory of one that ends.
        b.do("take", 8 * MIB)
        self.assertEqual(b.result("take", self.second), OUT_OF_MEMORY)
        self.assertEqual(a.number("check", 1), 0)
        self.assertEqual(self.evicted(0), 0)
        a.do("give")
        b.do("take", self.second)
        a.end()
        b.end()

    @only_foreign
    def test_what_a_vm_has_moved_by_lack_has_an_end(self):
        self.start(EVICTABLE, EVICTABLE + "\ndevice-memory = 16M",
                   total=f"device-memory-total = {4 * TOTAL}")
        a, b = self.program(0), self.program(1)
        others = [self.program(0) for _ in range(3)]
        for program in [a] + others:
            program.do("take", 12 * MIB)
            program.do("write", 1)
        # The device is as good as broken: it has nothing, whoever goes.
        self.failing.set_memory(1)
        time.sleep(2)
        for _ in range(4):
            self.assertEqual(b.result("take", 8 * MIB), OUT_OF_MEMORY)
        # One was not enough for what it may have, so there was a second one.
        self.assertEqual(self.evicted(0), 24 * MIB)
        self.failing.set_memory(0)
        for program in [a] + others:
            self.assertEqual(program.number("check", 1), 0)
            program.end()
        b.end()

    @only_foreign
    def test_a_broker_that_dies_while_a_driver_lacks_memory(self):
        self.start(total=f"device-memory-total = {4 * TOTAL}")
        self.failing.set_memory(TOTAL)
        a, b = self.two()
        # It has been idle for long enough, and does not answer.
        time.sleep(2)
        worker = int(self.host.wait_for(
            rf"session opened .* pid={a.process.pid} .*worker=(\d+)").group(1))
        os.kill(worker, signal.SIGSTOP)
        try:
            b.send("take", self.second)
            time.sleep(0.5)
            self.host.kill_broker()
        finally:
            os.kill(worker, signal.SIGCONT)
        # The other one may have gone before the next broker has looked, and then nobody can.
        if b.answer()[0]:
            self.take_late(b, self.second)
        self.assertGreaterEqual(self.evicted(0), 48 * MIB)
        b.do("write", 6)
        self.check_two(a, b)
        a.end()
        b.end()

    def test_brokers_that_die(self):
        self.start()
        a, b = self.two()
        self.take_late(b, self.second)
        b.do("write", 6)
        self.host.kill_broker()
        self.assertEqual(a.number("check", 1), 0)
        self.assertEqual(b.number("check", 6), 0)
        # While one waits for room.
        b.send("busy")
        self.assertEqual(b.answer(), (0, 0))
        a.send("check", 1)
        self.host.kill_broker()
        b.send("")
        self.assertEqual(b.answer()[0], 0)
        self.assertEqual(a.answer(), (0, 0))
        self.host.kill_broker()
        self.assertEqual(b.number("check", 6), 0)
        self.assertEqual(b.result("take", 33 * MIB), OUT_OF_MEMORY)
        a.end()
        b.end()


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
