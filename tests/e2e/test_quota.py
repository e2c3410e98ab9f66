#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""device-memory is exact: each kind of device memory fills the limit to the last byte, and
what programs, NVML and vgpuctl say of it agrees.

    test_quota.py BUILD PROGRAM
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]
import tap  # pylint: disable=wrong-import-position
from families import (  # pylint: disable=wrong-import-position
    DEVICE_KINDS, HOST_KINDS, OUT_OF_MEMORY, Program)
from host import Host  # pylint: disable=wrong-import-position

BUILD, PROGRAM = Path(sys.argv[1]).absolute(), sys.argv[2]
MIB = 1 << 20
LIMIT = 32 * MIB
INVALID_VALUE = 1
# No allocation takes less of a device.
UNIT = 512
# What one piece of each kind costs, of the size that is asked for.
PIECES = {
    "linear": (MIB, MIB),
    "pitched": (MIB, MIB),
    "array": (MIB, MIB),
    # Three levels.
    "mipmap": (MIB, MIB + MIB // 4 + MIB // 16),
    "pool": (2 * MIB, 2 * MIB),
    "virtual": (2 * MIB, 2 * MIB),
    "module": (MIB, MIB),
    "graph": (2 * MIB, 2 * MIB),
}


class Quota(unittest.TestCase):
    # vgpu-smi, which is asked often, is one more process each time.
    lines = "log-lines = 10000\n"

    def start(self, more=""):
        host = Host(BUILD, vm=f"device-memory = {LIMIT >> 20}M\n{self.lines}{more}",
                    prepare=self.prepare)
        self.host = host.__enter__()
        self.addCleanup(host.__exit__, None, None, None)

    def prepare(self, folder):
        self.ctl = folder / "control"
        return f"ctl-socket = {self.ctl}\n"

    def program(self, **environment):
        program = Program(self, BUILD, PROGRAM, self.host.socket, **environment)
        program.do("begin")
        return program

    def end(self, program, kill=False):
        """What it had is free afterwards."""
        n_ended = self.host.text().count("session ended")
        if kill:
            program.process.kill()
        else:
            program.end()
        self.host.wait_for("session ended", n_ended + 1)

    def vgpuctl(self, *words):
        done = subprocess.run(
            [BUILD / "host-daemon/ctl/vgpuctl", "--socket", self.ctl, *words], text=True,
            timeout=60, stdout=subprocess.PIPE, check=True)
        return done.stdout

    def fill(self, program, kind):
        """Takes pieces until one is refused. Returns how many there are."""
        size, _ = PIECES[kind]
        for n in range(LIMIT // size + 2):
            result = program.result("take", kind, size)
            if result:
                self.assertEqual(result, OUT_OF_MEMORY)
                return n
        raise AssertionError(f"more {kind} than there may be")

    def seen_outside(self):
        """The use of the VM: of the host's administrator, and of NVML in the guest."""
        shown = json.loads(self.vgpuctl("show", "raw", "--json"))
        nvml = ctypes.CDLL(str(BUILD / "guest-shim/nvml/libnvidia-ml.so.1"))
        device, memory = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
        os.environ["VGPU_SOCKET"] = str(self.host.socket)
        for name, *arguments in (("nvmlInit_v2",),
                                 ("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(device)),
                                 ("nvmlDeviceGetMemoryInfo", device, memory),
                                 ("nvmlShutdown",)):
            self.assertEqual(getattr(nvml, name)(*arguments), 0, name)
        return shown, tuple(memory)

    def check_outside(self, used, limit=LIMIT):
        """NVML follows within a heartbeat. Its numbers add up: it shows no more used than there
        is in all."""
        shown_used, end = min(used, limit), time.monotonic() + 60
        while True:
            shown, memory = self.seen_outside()
            if memory[2] == shown_used or time.monotonic() > end:
                break
            time.sleep(0.01)
        self.assertEqual(memory, (limit, limit - shown_used, shown_used))
        self.assertEqual(shown["device_memory"], used)
        self.assertEqual(shown["device_memory_limit"], limit)

    def check_empty(self):
        program = self.program()
        self.assertEqual(program.number("free"), LIMIT)
        self.check_outside(0)
        self.end(program)

    def test_each_kind_fills_it_to_the_last_byte(self):
        self.start()
        for kind in DEVICE_KINDS:
            program = self.program()
            self.assertEqual(program.number("free"), LIMIT, kind)
            self.assertEqual(program.number("total"), LIMIT)
            cost = PIECES[kind][1]
            n = self.fill(program, kind)
            self.assertEqual(n, LIMIT // cost, kind)
            self.assertEqual(program.number("free"), LIMIT - n * cost, kind)
            if LIMIT - n * cost:
                program.do("take", "linear", LIMIT - n * cost)
            self.assertEqual(program.number("free"), 0, kind)
            for other in DEVICE_KINDS:
                size = 2 * MIB if other == "virtual" else 4096
                self.assertEqual(program.result("take", other, size), OUT_OF_MEMORY,
                                 f"{other} beyond {kind}")
            self.assertEqual(program.result("take", "linear", 1), OUT_OF_MEMORY)
            self.check_outside(LIMIT)
            # What is given back may be had, by any kind.
            program.do("give", kind)
            program.do("take", kind, PIECES[kind][0])
            self.assertEqual(program.result("take", "linear", 1), OUT_OF_MEMORY, kind)
            for _ in range(n):
                program.do("give", kind)
            if LIMIT - n * cost:
                program.do("give", "linear")
            self.assertEqual(program.number("free"), LIMIT, kind)
            self.fill(program, kind)
            program.do("reset")
            self.end(program)
            self.check_empty()

    def test_small_allocations_cost_what_they_take(self):
        self.start()
        program = self.program()
        for size, cost in ((1, UNIT), (UNIT, UNIT), (UNIT + 1, 2 * UNIT), (100_000, 100_352)):
            before = program.number("free")
            program.do("take", "linear", size)
            self.assertEqual(before - program.number("free"), cost)
            program.do("give", "linear")
            self.assertEqual(program.number("free"), before)
        program.do("take", "linear", LIMIT - UNIT)
        self.assertEqual(program.result("take", "linear", UNIT + 1), OUT_OF_MEMORY)
        program.do("take", "linear", 1)
        self.assertEqual(program.number("free"), 0)
        program.end()

    def test_host_memory_costs_nothing(self):
        """Pinned and managed memory is in the shared memory of the VM, which size = limits."""
        self.start()
        program = self.program()
        for kind in HOST_KINDS:
            program.do("take", kind, 4 * MIB)
        self.assertEqual(program.number("free"), LIMIT)
        program.do("take", "linear", LIMIT)
        for kind in HOST_KINDS:
            program.do("take", kind, 4 * MIB)
        program.end()

    def test_the_heap_of_kernels_counts(self):
        self.start()
        program = self.program()
        program.do("take", "heap", 65536)
        self.assertEqual(program.number("fill"), 65536 // 4)
        # CU_LIMIT_MALLOC_HEAP_SIZE, from the first allocation to the end of the context.
        self.assertEqual(program.number("free"), LIMIT - 8 * MIB)
        self.check_outside(8 * MIB)
        program.do("reset")
        program.do("begin")
        self.assertEqual(program.number("free"), LIMIT)
        # A kernel that finds no room gets none, and goes on.
        program.do("take", "linear", LIMIT - 4 * MIB)
        program.do("take", "heap", 65536)
        self.assertEqual(program.number("fill"), (LIMIT - 4 * MIB) // 4)
        self.assertEqual(program.number("free"), 4 * MIB)
        program.end()

    def test_processes_share_it(self):
        self.start()
        for end in "exit", "kill", "kill the worker":
            programs = [self.program() for _ in range(3)]
            n, refused = 0, set()
            while len(refused) < 3:
                for i, program in enumerate(programs):
                    result = program.result("take", DEVICE_KINDS[n % 2], MIB)
                    if result:
                        self.assertEqual(result, OUT_OF_MEMORY)
                        refused.add(i)
                    n += not result
            self.assertEqual(n, LIMIT // MIB)
            for program in programs:
                self.assertEqual(program.number("free"), 0)
                self.assertEqual(program.result("take", "linear", 1), OUT_OF_MEMORY)
            self.check_outside(LIMIT)
            for program in programs:
                n_ended = self.host.text().count("session ended")
                if end == "exit":
                    program.end()
                elif end == "kill":
                    program.process.kill()
                else:
                    os.kill(self.worker_of(program), signal.SIGKILL)
                self.host.wait_for("session ended", n_ended + 1)
            self.check_empty()

    def test_memory_of_a_process_that_ends_is_waited_for(self):
        """Its worker is stopped, so that vgpud has to kill it, a second later. Meanwhile others
        go on."""
        self.start()
        witness = self.program()
        witness.do("take", "linear", MIB)
        for kind in DEVICE_KINDS:
            first = self.program()
            n_pieces = self.fill(first, kind)
            self.assertGreater(n_pieces, 0)
            os.kill(self.worker_of(first), signal.SIGSTOP)
            n_ended = self.host.text().count("session ended")
            first.end()
            second = self.program()
            second.send("take", kind, PIECES[kind][0])
            self.assertGreater(witness.number("fill"), 0)
            self.assertEqual(second.answer()[0], 0, kind)
            self.assertEqual(self.fill(second, kind), n_pieces - 1, kind)
            # Of one that does not end nothing is waited for.
            self.assertEqual(witness.result("take", "linear", LIMIT - MIB), OUT_OF_MEMORY)
            self.host.wait_for("session ended", n_ended + 1)
            self.end(second)
        witness.end()

    def worker_of(self, program):
        return int(self.host.wait_for(
            rf"session opened .* pid={program.process.pid} .*worker=(\d+)").group(1))

    def test_threads_at_the_edge(self):
        """16 threads of each of three processes want more than there is, all the time."""
        self.start()
        with tempfile.NamedTemporaryFile() as counters:
            os.truncate(counters.name, 16)
            programs = [self.program(FAMILIES_COUNTERS=counters.name) for _ in range(3)]
            size, room = 512 * 1024, 4 * MIB
            programs[0].do("take", "linear", LIMIT - room)
            for program in programs:
                program.send("edge", size, 300)
            for program in programs:
                result, n_taken = program.answer()
                self.assertEqual(result, 0)
                self.assertGreater(n_taken, 0)
            most = programs[0].number("most")
        self.assertGreaterEqual(most, size)
        self.assertLessEqual(most, room)
        for program in programs:
            self.assertEqual(program.number("free"), room)
        self.check_outside(LIMIT - room)
        programs[0].do("give", "linear")
        self.assertEqual(programs[1].number("free"), LIMIT)
        self.check_outside(0)
        for program in programs:
            program.end()

    def test_a_vm_that_holds_its_limits_full(self):
        """Whatever one VM holds, another has all that it may have."""
        with tempfile.TemporaryDirectory() as folder:
            other = f"{folder}/other"
            self.start(more=f"max-processes = 3\nhandles = 1000\n[vm other]\n"
                            f"transport = socket\nsocket = {other}\nsize = 256M\n"
                            f"device-memory = {LIMIT >> 20}M")
            programs = [self.program() for _ in range(3)]
            refused = Program(self, BUILD, PROGRAM, self.host.socket)
            self.assertNotEqual(refused.result("begin"), 0)
            for program in programs:
                self.fill(program, "virtual")
                n = 0
                while not program.result("take", "pinned", 16 * MIB):
                    n += 1
                self.assertGreater(n, 0)
            for kind in DEVICE_KINDS:
                neighbour = Program(self, BUILD, PROGRAM, other)
                neighbour.do("begin")
                self.assertEqual(self.fill(neighbour, kind), LIMIT // PIECES[kind][1], kind)
                neighbour.do("take", "pinned", 16 * MIB)
                self.assertGreater(neighbour.number("fill"), 0)
                self.end(neighbour)
            for program in programs:
                self.assertEqual(program.number("free"), 0)
            for program in programs:
                program.end()

    def change(self, program, mib):
        self.vgpuctl("set", "raw", f"device-memory={mib}M")
        while program.number("total") != mib * MIB:
            time.sleep(0.01)

    def test_a_limit_that_is_changed(self):
        self.start()
        program, other = self.program(), self.program()
        for kind in DEVICE_KINDS:
            program.do("take", kind, 2 * MIB)
        program.do("fill")
        n_words, used = program.number("look"), LIMIT - program.number("free")
        self.change(program, 4)
        for each in program, other:
            self.assertEqual(each.number("free"), 0)
            for kind in DEVICE_KINDS:
                self.assertEqual(each.result("take", kind, 2 * MIB), OUT_OF_MEMORY, kind)
        self.check_outside(used, 4 * MIB)
        # Nothing was taken away.
        self.assertEqual(program.number("look"), n_words)
        for kind in DEVICE_KINDS[:-1]:
            program.do("give", kind)
        if program.number("free"):
            program.do("take", "linear", program.number("free"))
        self.assertEqual(other.result("take", "linear", 1), OUT_OF_MEMORY)
        self.change(program, 64)
        other.do("take", "linear", other.number("free"))
        self.check_outside(64 * MIB, 64 * MIB)
        program.end()
        other.end()

    def look_with_smi(self):
        """Returns total, used and free memory, and use by process, all in MiB."""
        done = subprocess.run(
            [BUILD / "guest-shim/smi/vgpu-smi", "--json"], text=True, timeout=60, check=True,
            stdout=subprocess.PIPE, env=dict(
                os.environ, VGPU_SOCKET=str(self.host.socket),
                LD_LIBRARY_PATH=str(BUILD / "guest-shim/nvml")))
        gpu = json.loads(done.stdout)["gpus"][0]
        return ([gpu[f"memory.{part}"] for part in ("total", "used", "free")],
                {process["pid"]: process["memory.used"] for process in gpu["processes"]})

    def check_all_say(self, uses, limit=LIMIT, of_none=0):
        """cuMemGetInfo of each process, NVML, vgpu-smi and vgpuctl say the same.

        @uses:      the bytes that each program has
        @of_none:   the bytes that ended programs have left to others"""
        used = sum(uses.values()) + of_none
        for program in uses:
            self.wait_for_free(program, limit - used)
            self.assertEqual(program.number("total"), limit)
        self.check_outside(used, limit)
        by_pid = {program.process.pid: n for program, n in uses.items()}
        # It rounds as nvidia-smi does.
        expected = ([round(n / MIB) for n in (limit, used, limit - used)],
                    {pid: round(n / MIB, 3) for pid, n in by_pid.items()})
        end = time.monotonic() + 60
        while self.look_with_smi() != expected and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(self.look_with_smi(), expected)
        shown = json.loads(self.vgpuctl("show", "raw", "--json"))
        self.assertEqual({p["pid"]: p["device_memory"] for p in shown["processes"]}, by_pid)

    def wait_for_free(self, program, size):
        """What vgpud counts follows what a worker says."""
        end = time.monotonic() + 60
        while program.number("free") != size and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(program.number("free"), size)

    def share(self, kind, owner, size):
        """Another process gets memory of that one. Returns it, and its kind of memory."""
        owner.do("take", kind, size)
        if kind == "linear":
            path, taken = f"{self.host.folder.name}/handle", "opened"
            owner.do("share", path)
        else:
            taken = "imported"
            path = f"/proc/{owner.process.pid}/fd/{owner.number('share')}"
        user = self.program()
        user.do("from", path)
        user.do("take", taken, size)
        return user, taken

    def test_shared_memory_is_charged_once(self):
        """To the process that allocated it; to the VM as a whole once that has given it up,
        until the last process has."""
        self.start()
        # A small allocation is shared with the 2 MiB around it.
        for kind, size, left_size in (("linear", 8 * MIB, 8 * MIB), ("linear", 4096, 2 * MIB),
                                      ("exportable", 8 * MIB, 8 * MIB)):
            for end in "give", "exit", "kill":
                owner = self.program()
                user, taken = self.share(kind, owner, size)
                paid = {owner: size, user: 0}
                self.check_all_say(paid)
                # A second use costs nothing either, and the last pays nothing back.
                user.do("take", taken, size)
                self.check_all_say(paid)
                user.do("give", taken)
                user.do("give", taken)
                self.check_all_say(paid)
                user.do("take", taken, size)
                user.do("take", "linear", LIMIT - size)
                for program in owner, user:
                    self.assertEqual(program.result("take", "linear", 1), OUT_OF_MEMORY)
                user.do("give", "linear")
                left = {user: 0}
                if end == "give":
                    owner.do("give", kind)
                    left[owner] = 0
                else:
                    self.end(owner, end == "kill")
                self.check_all_say(left, of_none=left_size)
                self.assertEqual(user.result("take", "linear", LIMIT - left_size + 1),
                                 OUT_OF_MEMORY)
                user.do("give", taken)
                self.check_all_say(left)
                user.do("take", "linear", LIMIT)
                for program in left:
                    self.end(program)
                self.check_empty()

    def test_users_of_shared_memory_that_end(self):
        """What an ended process has left goes with the last that uses it."""
        self.start()
        owner = self.program()
        user, _ = self.share("exportable", owner, 4 * MIB)
        self.end(owner)
        self.check_all_say({user: 0}, of_none=4 * MIB)
        # A limit below it: nothing adds up to more than there is.
        self.change(user, 2)
        self.check_outside(4 * MIB, 2 * MIB)
        self.change(user, LIMIT // MIB)
        self.check_all_say({user: 0}, of_none=4 * MIB)
        self.end(user, kill=True)
        self.check_empty()

    def test_the_heap_as_large_as_it_was_set(self):
        self.start()
        program = self.program()
        for size, cost in ((16 * MIB, 16 * MIB), (100_000, 100_352), (LIMIT, LIMIT)):
            self.assertEqual(program.number("limit", "heap", size), size)
            # A limit is no memory.
            self.assertEqual(program.number("free"), LIMIT)
            # Beyond the room that there is besides the kernel's result, there is none.
            n_words = 4096 if cost < LIMIT else 0
            cost = cost if n_words else 0
            program.do("take", "heap", 4 * 4096)
            self.assertEqual(program.number("fill"), n_words)
            self.check_all_say({program: cost})
            # As large as it is, for the life of the context.
            if cost:
                self.assertEqual(program.result("limit", "heap", 4 * MIB), INVALID_VALUE)
            self.check_all_say({program: cost})
            program.do("reset")
            program.do("begin")
            self.check_all_say({program: 0})
        self.end(program)
        self.check_empty()

    def test_the_fifo_of_printf_costs_nothing(self):
        """It is memory of the worker, which host-memory bounds, and at most 16 MiB."""
        self.start()
        program = self.program()
        self.assertEqual(program.number("limit", "fifo", 8 * MIB), 8 * MIB)
        self.assertEqual(program.number("limit", "fifo", LIMIT), 16 * MIB)
        program.do("take", "print", 1)
        program.do("take", "linear", LIMIT - 4 * MIB)
        program.do("look")
        self.assertEqual(program.n_printed, 1)
        # There is one now.
        self.assertEqual(program.result("limit", "fifo", MIB), INVALID_VALUE)
        self.check_all_say({program: LIMIT - 4 * MIB})
        program.do("take", "linear", 4 * MIB)
        self.check_all_say({program: LIMIT})
        self.end(program)
        self.check_empty()

    def test_pools_are_charged_what_they_reserve(self):
        limit, segment = 128 * MIB, 32 * MIB
        self.start()
        program, other = self.program(), self.program()
        self.change(program, limit // MIB)

        def check(used, reserved):
            self.assertEqual(program.number("used"), used)
            self.assertEqual(program.number("reserved"), reserved)
            self.check_all_say({program: reserved, other: 0}, limit)

        check(0, 0)
        program.do("take", "pool", 2 * MIB)
        check(2 * MIB, segment)
        program.do("keep", limit)
        for _ in range(15):
            program.do("take", "pool", 2 * MIB)
        check(segment, segment)
        program.do("take", "pool", 2 * MIB)
        check(segment + 2 * MIB, 2 * segment)
        # What is freed stays the pool's, and no other process gets it.
        for _ in range(17):
            program.do("give", "pool")
        check(0, 2 * segment)
        self.assertEqual(other.result("take", "linear", limit - 2 * segment + 1),
                         OUT_OF_MEMORY)
        # Segments are given back whole.
        program.do("trim", segment + 1)
        check(0, 2 * segment)
        program.do("trim", segment)
        check(0, segment)
        program.do("take", "pool", 2 * MIB)
        program.do("trim", 0)
        check(2 * MIB, segment)
        program.do("give", "pool")
        program.do("trim", 0)
        check(0, 0)
        other.do("take", "linear", limit)
        self.check_all_say({program: 0, other: limit}, limit)
        other.do("give", "linear")
        # One that finds no room for a segment gets the memory alone, and its own process gets
        # what pools do not use.
        other.do("take", "linear", limit - 2 * MIB)
        program.do("take", "pool", 2 * MIB)
        self.assertEqual(program.number("reserved"), 2 * MIB)
        self.check_all_say({program: 2 * MIB, other: limit - 2 * MIB}, limit)
        program.do("give", "pool")
        self.assertEqual(other.result("take", "linear", 2 * MIB), OUT_OF_MEMORY)
        program.do("trim", 0)
        other.do("take", "linear", 2 * MIB)
        for each in program, other:
            each.end()

    def test_everything_says_the_same(self):
        """With memory of every kind in two processes, in odd sizes."""
        self.start()
        programs = [self.program(), self.program()]
        uses = {program: 0 for program in programs}
        for i, kind in enumerate(DEVICE_KINDS):
            program = programs[i % 2]
            for taken, size in ((kind, 2 * MIB if kind == "virtual" else MIB),
                                ("linear", 1000 * i + 1)):
                before = program.number("free")
                program.do("take", taken, size)
                cost = before - program.number("free")
                self.assertGreaterEqual(cost, size)
                uses[program] += cost
            self.check_all_say(uses)
        for program in programs:
            self.end(program)
        self.check_empty()


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
