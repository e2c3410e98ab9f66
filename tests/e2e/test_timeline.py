#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl trace writes a timeline that a viewer of Chrome's traces can show.

    test_timeline.py BUILD PROGRAM
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
import tap  # pylint: disable=wrong-import-position
from host import Host  # pylint: disable=wrong-import-position

BUILD, PROGRAM = Path(sys.argv[1]), sys.argv[2]
# What each phase of an event has, and of which type.
SCHEMA = {
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": float, "dur": float},
    "s": {"name": str, "cat": str, "id": str, "pid": int, "tid": int, "ts": float},
    "f": {"name": str, "cat": str, "id": str, "pid": int, "tid": int, "ts": float,
          "bp": str},
}


class Timeline(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vgpu-timeline-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.control, self.file = self.folder / "control", self.folder / "trace.json"
        self.host = Host(BUILD, prepare=lambda _: f"\nctl-socket = {self.control}\n")
        self.host.__enter__()
        self.addCleanup(self.host.__exit__)
        self.environment = dict(os.environ, VGPU_SOCKET=str(self.host.socket))
        self.environment["LD_LIBRARY_PATH"] = str(BUILD / "guest-shim")
        self.environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")

    def start(self, mode="work"):
        program = subprocess.Popen([PROGRAM, mode], env=self.environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(program.stdout.readline(), "ready\n")
        return program

    def begin_trace(self, *words, vm="raw"):
        return subprocess.Popen(
            [BUILD / "host-daemon/ctl/vgpuctl", "--socket", self.control, "--json", "trace",
             "-o", self.file, *words, vm], stdout=subprocess.PIPE, text=True)

    def check_schema(self, trace):
        """Returns the slices by thread."""
        threads, flows = {}, {"s": {}, "f": {}}
        for event in trace["traceEvents"]:
            for key, kind in SCHEMA[event["ph"]].items():
                self.assertIsInstance(event[key], kind, event)
            self.assertLessEqual(
                set(event) - set(SCHEMA[event["ph"]]), {"ph", "args"}, event)
            if event["ph"] in flows:
                self.assertNotIn(event["id"], flows[event["ph"]])
                flows[event["ph"]][event["id"]] = event
            if event["ph"] == "X":
                threads.setdefault((event["pid"], event["tid"]), []).append(event)
        # Slices of a thread follow each other; each begins after the one before.
        for slices in threads.values():
            ends = [round(s["ts"] + s["dur"], 3) for s in slices]
            self.assertTrue(all(s["dur"] >= 0 for s in slices))
            self.assertEqual(ends, sorted(ends))
            self.assertTrue(all(s["ts"] >= end - 0.002
                                for s, end in zip(slices[1:], ends)), slices[:5])
        # Both ends of an arrow are in a slice, and it points forward in time.
        self.assertEqual(flows["s"].keys(), flows["f"].keys())
        starts = {(key, s["ts"]) for key, slices in threads.items() for s in slices}
        for flow, begin in flows["s"].items():
            end = flows["f"][flow]
            self.assertLessEqual(begin["ts"], end["ts"])
            self.assertIn(((begin["pid"], begin["tid"]), begin["ts"]), starts)
            self.assertIn(((end["pid"], end["tid"]), end["ts"]), starts)
        return threads, flows

    def finish(self, program):
        program.stdin.close()
        self.assertEqual(program.wait(60), 0)

    def test_calls_and_kernels_are_on_one_timeline(self):
        program = self.start()
        trace = self.begin_trace("--seconds", "2")
        told = json.loads(trace.communicate(timeout=60)[0])
        self.assertEqual(trace.returncode, 0)
        self.finish(program)
        parsed = json.loads(self.file.read_text(encoding="ascii"))
        threads, flows = self.check_schema(parsed)
        names = {}
        for slices in threads.values():
            for event in slices:
                names.setdefault(event["cat"], set()).add(event["name"])
        self.assertIn("cuLaunchKernel", names["dispatcher"])
        self.assertEqual(names["lane"], {"cuCtxSynchronize"})
        self.assertEqual(names["device"], {"poke"})
        labels = [event["args"]["name"] for event in parsed["traceEvents"]
                  if event["ph"] == "M"]
        self.assertIn(f"last-calls, pid {program.pid}, worker", labels[0])
        self.assertIn("dispatcher", labels)
        kernels = [s for slices in threads.values() for s in slices if s["cat"] == "device"]
        arrows = [f for f in flows["f"].values() if f["name"] == "launch"]
        # All but those of launches before the trace have an arrow.
        self.assertGreater(len(kernels), 20)
        self.assertGreaterEqual(len(arrows), len(kernels) - 4)
        self.assertEqual(told["slices"], sum(map(len, threads.values())))
        self.assertEqual(told["lost"], parsed["otherData"]["lost"])
        self.assertEqual((told["processes"], told["lost"]), (1, 0))

    def test_copies_and_fills_are_work_of_the_device(self):
        program = self.start("copy")
        trace = self.begin_trace("--seconds", "1")
        trace.communicate(timeout=60)
        self.assertEqual(trace.returncode, 0)
        self.finish(program)
        threads, flows = self.check_schema(json.loads(self.file.read_text(encoding="ascii")))
        work = [s for slices in threads.values() for s in slices if s["cat"] == "device"]
        self.assertEqual({s["name"] for s in work}, {"memory copy", "memory fill"})
        self.assertGreater(len(work), 20)
        arrows = [f for f in flows["f"].values() if f["name"] == "launch"]
        self.assertGreaterEqual(len(arrows), len(work) - 4)

    def test_processes_that_come_and_die_while_they_are_traced(self):
        first = self.start()
        worker = int(self.host.wait_for(rf"session opened .* pid={first.pid} .*worker=(\d+)")[1])
        trace = self.begin_trace("--seconds", "4")
        while not Path(f"{self.file}.part").exists():
            self.assertIsNone(trace.poll())
        second = self.start()
        os.kill(worker, signal.SIGKILL)
        told = json.loads(trace.communicate(timeout=60)[0])
        self.assertEqual((trace.returncode, told["processes"]), (0, 2))
        self.check_schema(json.loads(self.file.read_text(encoding="ascii")))
        self.finish(second)
        first.stdin.close()
        first.wait(60)
        self.assertFalse(Path(f"{self.file}.part").exists())

    def test_a_worker_stops_when_nobody_asks_any_more(self):
        program = self.start()
        trace = self.begin_trace("--seconds", "3600")
        worker = int(self.host.wait_for(r"session opened .*worker=(\d+)")[1])
        count = 0
        while not count:
            count = self.count_events(worker)
        trace.kill()
        trace.communicate()
        before = None
        while before != count:
            before, count = count, None
            # So long that a program that is traced makes some calls.
            subprocess.run(["sleep", "1"], check=True)
            count = self.count_events(worker)
        self.finish(program)

    def count_events(self, worker):
        """The first word of the trace in the file of a worker: see control/trace.h."""
        offset = (68 << 10) + (1 << 40) + (10 << 20)
        for fd in Path(f"/proc/{self.host.process.pid}/fd").iterdir():
            if "vgpu-stats" in os.readlink(fd) and self.is_of(fd, worker):
                with open(fd, "rb") as file:
                    return int.from_bytes(os.pread(file.fileno(), 8, offset), "little")
        self.fail(f"no file of worker {worker}")

    def is_of(self, fd, worker):
        return any(os.path.samestat(os.stat(fd), os.stat(other))
                   for other in Path(f"/proc/{worker}/fd").iterdir() if other.exists())

    def test_the_programs_own_trace_is_merged_by_its_clock(self):
        own = self.folder / "own"
        self.environment["VGPU_TRACE"] = str(own)
        program = self.start()
        trace = self.begin_trace("--seconds", "2", "--merge", own)
        told = json.loads(trace.communicate(timeout=60)[0])
        self.assertEqual(trace.returncode, 0)
        self.finish(program)
        parsed = json.loads(self.file.read_text(encoding="ascii"))
        threads, _ = self.check_schema(parsed)
        clock = parsed["otherData"]["guest_clock"]
        self.assertEqual(told["guest_error_ns"], clock["error_ns"])
        self.assertGreater(clock["pairs"], 10)
        # The guest is a process of this machine: its clock is known. Clocks are adjusted
        # while they run, by less than the thousandth of a second.
        known = self.clock_difference()
        self.assertLess(abs(clock["offset_ns"] - known), clock["error_ns"] + 1000000)
        calls = {key: slices for key, slices in threads.items()
                 if slices[0]["cat"] == "program"}
        self.assertEqual([tid for _, tid in calls], [2000000000 + program.pid])
        names = {s["name"] for slices in calls.values() for s in slices}
        self.assertEqual(names, {"cuLaunchKernel", "cuCtxSynchronize"})
        # They are on the track of the process that the host knows.
        self.assertEqual({pid for pid, _ in threads}, {pid for pid, _ in calls})

    def clock_difference(self):
        """Monotonic minus real time, by the reading that other work has delayed least."""
        readings = []
        for _ in range(1000):
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            real = time.time_ns()
            end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            readings.append((end - begin, (begin + end) // 2 - real))
        return min(readings)[1]

    def test_a_trace_that_cannot_be_merged(self):
        own = self.folder / "own"
        own.write_bytes(b"\xff\0 nonsense\n" * 1000)
        for path, words in ((own, "clock is not known"), (self.folder / "none", "No such")):
            trace = subprocess.run(
                [BUILD / "host-daemon/ctl/vgpuctl", "--socket", self.control, "trace", "-o",
                 self.file, "--seconds", "1", "--merge", path, "raw"],
                capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(trace.returncode, 1)
            self.assertIn(words, trace.stderr)
            self.assertEqual(list(self.folder.glob("trace*")), [])

    def test_what_cannot_be_traced(self):
        for words, vm, status in (((), "none", 5), (("--seconds", "0"), "raw", 2)):
            trace = self.begin_trace(*words, vm=vm)
            trace.communicate(timeout=60)
            self.assertEqual(trace.returncode, status)
            self.assertEqual(list(self.folder.glob("trace*")), [])


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
