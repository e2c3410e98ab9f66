#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines that share a device, by what vgpud says they used:

    test_sharing.py BUILD [DRIVER]

Without a driver they share softgpu, which measures itself. Another one is measured by
events: softgpu as a driver that the worker knows nothing of, in one process for each guest
process, so that the host's processors are divided among them as a card is; or `nvidia`,
which is skipped where there is no GPU."""

import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
DRIVER = sys.argv[2] if len(sys.argv) > 2 else "soft"
SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests/lib"))
sys.path.insert(0, str(SOURCE / "tests/gpu"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position
import native  # noqa: E402  pylint: disable=wrong-import-position

NAMES = "abcd"
# Blocks and rounds of kernels: a short one that keeps one thread busy, one that keeps all
# busy, and one that is longer than a quantum in each of its blocks.
SHORT, WIDE, LONG = ("1", "200", "0"), ("16", "50000", "0"), ("4", "2000000", "0")
# One that does nothing, as often as it can be launched, and one that does not end.
EMPTY, ENDLESS = ("1", "1", "-1"), ("1", "-1", "0")
S = 10**9
if DRIVER == "nvidia":
    LONG = ("4", "2000000", "0")
elif DRIVER != "soft":
    # It is not interrupted: in the seconds of a look there have to be many.
    LONG = ("4", "100000", "0")
only_softgpu = unittest.skipIf(DRIVER != "soft", "only softgpu interrupts kernels")
# Per cent by which equal and other shares, and those of processes, may be off. By events a
# share is not measured better than the threads that look are scheduled, and kernels of
# processes that share the host's processors overlap.
EQUAL, WEIGHTED, PROCESSES = (2, 5, 10) if DRIVER == "soft" else (15, 20, 25)
# A share is looked at over so many seconds; where other programs disturb it, again.
SECONDS, TRIES = 4, 10


class Program:
    """launching, in one of the machines."""

    def __init__(self, socket, kernel):
        self.process = subprocess.Popen(
            [BUILD / "tests/sharing/launching", *kernel], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, VGPU_SOCKET=str(socket), VGPU_WINDOW="1"))
        assert self.process.stdout.readline() == "ready\n"

    def begin(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self):
        """Returns the number of launches and, of a program with pauses, their times."""
        out, _ = self.process.communicate()
        assert self.process.returncode == 0
        numbers = [int(line) for line in out.split()]
        return numbers[0], numbers[1:]


class Sharing(unittest.TestCase):
    def start(self, settings=("", "", "", ""), vgpud=""):
        self.vgpud = vgpud
        self.settings = settings
        self.host = Host(BUILD, driver=DRIVER, prepare=self.prepare, vm=settings[0],
                         environment={"VGPU_FOREIGN_THREADS": "2"})
        self.host.__enter__()
        self.addCleanup(self.host.__exit__)
        self.programs = []

    def prepare(self, folder):
        self.control = folder / "control"
        self.sockets = [folder / "socket", *(folder / name for name in NAMES[1:])]
        machines = "\n".join(
            f"[vm {name}]\ntransport = socket\nsocket = {socket}\nsize = 256M\n{lines}"
            for name, socket, lines in zip(NAMES[1:], self.sockets[1:], self.settings[1:]))
        self.host.vm += "\n" + machines
        return (f"ctl-socket = {self.control}\nsoftgpu-threads = 2\nmeter = yes\n"
                f"{self.vgpud}\n")

    def ctl(self, *arguments):
        done = subprocess.run(
            [BUILD / "host-daemon/ctl/vgpuctl", "--socket", self.control, *arguments],
            text=True, timeout=60, stdout=subprocess.PIPE, check=True)
        return done.stdout

    def show(self, machine):
        return json.loads(self.ctl("show", "--json", "raw" if machine == "a" else machine))

    def launch(self, machine, kernel):
        program = Program(self.sockets[NAMES.index(machine)], kernel)
        self.programs.append(program)
        return program

    def begin(self):
        for program in self.programs:
            program.begin()

    def end(self):
        return [program.end() for program in self.programs]

    def used_in(self, machines, seconds=SECONDS):
        """Device time that each uses in so many seconds."""
        before = [self.show(machine)["device_time"] for machine in machines]
        time.sleep(seconds)
        return [self.show(machine)["device_time"] - ns
                for machine, ns in zip(machines, before)]

    def check_shares(self, machines, weights, percent):
        """Each has its share, to so many per cent of that."""
        for _ in range(TRIES):
            used = self.used_in(machines)
            shares = [sum(used) * weight / sum(weights) for weight in weights]
            worst = max(abs(part / share - 1) for part, share in zip(used, shares))
            print(f"# {machines}: {[round(ns / S, 3) for ns in used]} s, off by "
                  f"{worst:.2%}", flush=True)
            if worst <= percent / 100:
                break
        self.assertLessEqual(worst, percent / 100)

    def test_equal_machines_with_kernels_of_any_length(self):
        self.start()
        for machine, kernel in zip(NAMES, (WIDE, LONG, WIDE, LONG)):
            self.launch(machine, kernel)
        self.begin()
        time.sleep(1)
        self.check_shares(NAMES, (1, 1, 1, 1), EQUAL)
        for n, _ in self.end():
            self.assertGreater(n, 0)

    def test_weights(self):
        self.start(("weight = 100", "weight = 200", "weight = 400", ""))
        for machine, kernel in zip("abc", (WIDE, LONG, WIDE)):
            self.launch(machine, kernel)
        self.begin()
        time.sleep(1)
        self.check_shares("abc", (1, 2, 4), WEIGHTED)
        self.end()

    def test_weights_change_while_programs_run(self):
        self.start()
        for machine in "ab":
            self.launch(machine, WIDE)
        self.begin()
        time.sleep(1)
        self.check_shares("ab", (1, 1), WEIGHTED)
        self.ctl("set", "b", "weight=300")
        time.sleep(1)
        self.check_shares("ab", (1, 3), WEIGHTED)
        self.end()

    def test_processes_of_a_machine(self):
        self.start()
        for machine, kernel in zip("aab", (WIDE, LONG, WIDE)):
            self.launch(machine, kernel)
        self.begin()
        time.sleep(1)
        self.check_shares("ab", (1, 1), WEIGHTED)
        for _ in range(TRIES):
            before = [process["device_time"] for process in self.show("a")["processes"]]
            time.sleep(SECONDS)
            after = [process["device_time"] for process in self.show("a")["processes"]]
            used = [now - then for now, then in zip(after, before)]
            print(f"# processes of one machine: {[round(ns / S, 3) for ns in used]} s",
                  flush=True)
            if min(used) >= max(used) * (1 - PROCESSES / 100):
                break
        self.assertGreaterEqual(min(used), max(used) * (1 - PROCESSES / 100))
        self.end()

    @only_softgpu
    def test_one_that_leaves_threads_idle_gives_them_away(self):
        self.start(("weight = 10000", "", "", ""))
        self.launch("a", SHORT)
        self.launch("b", LONG)
        self.begin()
        time.sleep(1)
        first, second = self.used_in("ab")
        print(f"# with weights 10000 and 100: {first / S:.3f} and {second / S:.3f} s")
        # By weight it would have a hundredth.
        self.assertGreater(second, first / 5)
        self.end()

    def test_priority(self):
        self.start(("priority = high", "", "priority = low", ""))
        for machine, kernel in zip("abc", (LONG, WIDE, WIDE)):
            self.launch(machine, kernel)
        self.begin()
        time.sleep(1)
        for _ in range(TRIES):
            high, normal, low = self.used_in("abc")
            print(f"# high {high / S:.3f}, normal {normal / S:.3f}, low {low / S:.3f} s",
                  flush=True)
            if high > 9 * (normal + low) and normal >= low:
                break
        self.assertGreater(high, 9 * (normal + low))
        self.end()

    def test_a_paused_machine_goes_on_later(self):
        self.start()
        self.launch("a", WIDE)
        self.launch("b", LONG)
        self.begin()
        self.ctl("set", "b", "paused=yes")
        before = self.show("b")
        while not before["held"]:
            before = self.show("b")
        # Each thread adds what it had used before it was held.
        for _ in range(TRIES):
            first, second = self.used_in("ab", 1)
            if not second:
                break
        self.assertGreater(first, 0)
        self.assertEqual(second, 0)
        self.ctl("set", "b", "paused=no")
        while not self.used_in("b", 0.1)[0]:
            pass
        for n, _ in self.end():
            self.assertGreater(n, 0)

    @only_softgpu
    def test_a_limit_of_cpu_time(self):
        self.start(("", "", "cpu = 150", ""))
        self.assertIsNone(self.show("b")["cpu_limit_by"])
        self.assertIn(self.show("c")["cpu_limit_by"], ("cgroup", "kernels"))
        self.launch("b", WIDE).begin()
        time.sleep(1)
        # What the programs outside of this test leave.
        alone, = self.used_in("b")
        self.ctl("set", "b", "cpu=50")
        time.sleep(1)
        self.check_cpu("b", 0.5, alone)
        self.ctl("set", "b", "cpu=20")
        self.assertEqual(self.show("b")["cpu_limit"], 20)
        time.sleep(1)
        self.check_cpu("b", 0.2, alone)
        # Another one has what that leaves, within a limit of its own.
        self.launch("c", WIDE).begin()
        time.sleep(1)
        self.check_cpu("b", 0.2, alone / 2)
        self.check_cpu("c", 1.5, alone / 2)
        self.ctl("set", "b", "cpu=")
        self.assertIsNone(self.show("b")["cpu_limit_by"])
        self.check_shares("bc", (1, 1), 20)
        self.end()

    def check_cpu(self, machine, part, alone):
        """A machine that always has work uses that much of one CPU: never more, and less
        only while other programs have the processors."""
        wanted = min(part, alone / S / SECONDS) * 0.8
        for _ in range(TRIES):
            start = time.monotonic()
            used, = self.used_in(machine)
            found = used / S / (time.monotonic() - start)
            print(f"# {machine}: {found:.3f} of a CPU, limit {part}, at least {wanted:.3f}",
                  flush=True)
            # What one bucket, and a longer look, can add.
            self.assertLess(found, part * 1.1 + 0.02)
            if found > wanted:
                break
        self.assertGreater(found, wanted)

    @only_softgpu
    def test_an_endless_kernel_leaves_the_others_their_share(self):
        self.start()
        self.launch("a", ENDLESS)  # after 2^32 rounds
        self.launch("b", WIDE)
        self.begin()
        time.sleep(1)
        first, second = self.used_in("ab")
        self.assertGreater(second, first * 0.9)
        self.programs[0].process.kill()
        self.programs.pop(0).process.communicate()
        self.assertGreater(self.end()[0][0], 0)

    def test_a_flood_of_empty_launches_leaves_the_others_their_share(self):
        self.start()
        for machine, kernel in zip("aabc", (EMPTY, EMPTY, WIDE, LONG)):
            self.launch(machine, kernel)
        self.begin()
        time.sleep(1)
        self.check_shares("bc", (1, 1), 5)
        for _ in range(TRIES):
            used = self.used_in("abc")
            print(f"# beside a flood: {[round(ns / S, 3) for ns in used]} s", flush=True)
            if min(used[1:]) >= sum(used) / 3 * 0.95:
                break
        self.assertGreaterEqual(min(used[1:]), sum(used) / 3 * 0.95)
        # None of their calls has failed.
        for n, _ in self.end():
            self.assertGreater(n, 0)

    def test_priorities_of_streams_count_within_a_machine_only(self):
        """A program may ask for any priority: it is that among its own streams."""
        self.start()
        for machine, priority in zip("ab", ("-2147483648", "2147483647")):
            self.launch(machine, (*WIDE, priority))
        self.begin()
        time.sleep(1)
        self.check_shares("ab", (1, 1), 5)
        for n, _ in self.end():
            self.assertGreater(n, 0)

    def test_one_that_launches_now_and_then_is_served_soon(self):
        """Prints how long its launches take beside three that are always busy."""
        self.start()
        quiet = self.launch("a", ("1", "200", "5000"))
        quiet.begin()
        time.sleep(SECONDS)
        _, alone = self.programs.pop().end()
        for machine in "abcd":
            self.launch(machine, ("1", "200", "5000") if machine == "a" else WIDE)
        self.begin()
        time.sleep(SECONDS)
        n, beside = self.end()[0]
        self.assertGreater(n, 0)
        for what, times in ("alone", alone), ("beside three busy machines", beside):
            times.sort()
            print(f"# a launch takes {what} {times[len(times) // 2]} us (p50), "
                  f"{times[len(times) * 99 // 100]} us (p99)")


if __name__ == "__main__":
    if DRIVER == "nvidia":
        native.leave_ours_behind(BUILD)
        n_devices, sentence = native.nvidia_answers()
        if n_devices <= 0:
            print(f"1..0 # SKIP no NVIDIA driver answers here ({sentence})")
            sys.exit(0)
    sys.argv[2:] = []
    sys.exit(tap.unittest_main())
