#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recorded process runs again with the same results, and a replay finds what differs.

    test_record.py BUILD PROGRAM LAST-CALLS THREADS FAULTS GRAPHS HOST-MEMORY

PROGRAM computes something and ends; LAST-CALLS is a program that can be held; THREADS has
two threads that take turns, FAULTS has a kernel that fails, GRAPHS copies in graphs, and
HOST-MEMORY is the program of that family of calls.
"""

import json
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
import tap  # pylint: disable=wrong-import-position
from host import Host  # pylint: disable=wrong-import-position
from mounts import call, find_lack, mount  # pylint: disable=wrong-import-position

BUILD = Path(sys.argv[1])
PROGRAM, LAST_CALLS, THREADS, FAULTS, GRAPHS, HOST_MEMORY = sys.argv[2:8]
LACK = find_lack()
SYNCHRONIZE = int(re.search(
    r"VGPU_CALL_cuCtxSynchronize = (\d+)",
    (BUILD / "protocol/include/vgpu/g-calls.h").read_text(encoding="ascii"))[1])
HEADER, BEGIN, END, MEMORY, OUTPUT, CLOSE, FAULT = 1, 2, 3, 4, 5, 10, 11
WAITING = "vgpuctl: waiting for the next process of raw\n"
MASK = (1 << 64) - 1


def mix(value, word):
    value = ((value ^ word) * 0x9E3779B97F4A7C15) & MASK
    return value ^ (value >> 29)


def digest(value, data):
    """recording_sum()."""
    value = mix(value, len(data))
    padded = data + bytes(8 - len(data) % 8)
    for at in range(0, len(padded), 8):
        value = mix(value, int.from_bytes(padded[at:at + 8], "little"))
    return value


def records(data):
    """The offset, type and payload of each."""
    at = 0
    # The last one of a file that is being written may be cut.
    while at + 16 <= len(data):
        size, kind = struct.unpack_from("<II", data, at)
        yield at, kind, data[at + 16:at + 16 + size]
        at += 16 + size


def record_of(kind, payload):
    """One of a kind that has no bytes of any number."""
    total = digest(digest(mix(kind, 0), payload), b"")
    return struct.pack("<IIQ", len(payload), kind, total) + payload


class Record(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vgpu-record-")
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "recording"

    def host(self, **more):
        host = Host(BUILD, prepare=lambda folder: f"ctl-socket = {folder}/ctl\n", **more)
        host.__enter__()
        self.addCleanup(host.__exit__)
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        environment["LD_LIBRARY_PATH"] = str(BUILD / "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        return host, environment

    def begin(self, host, *options):
        """A vgpuctl that waits for a process."""
        ctl = subprocess.Popen(
            [BUILD / "host-daemon/ctl/vgpuctl", "--socket", f"{host.folder.name}/ctl", "--json",
             "record", "raw", "--output", self.file, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(ctl.wait)
        self.addCleanup(ctl.kill)
        self.addCleanup(ctl.stdout.close)
        self.addCleanup(ctl.stderr.close)
        self.assertEqual(ctl.stderr.readline(), WAITING)
        return ctl

    def ctl(self, host, *arguments):
        """One that is refused."""
        result = subprocess.run([BUILD / "host-daemon/ctl/vgpuctl", "--socket",
                                 f"{host.folder.name}/ctl", *arguments],
                                capture_output=True, text=True, check=False, timeout=60)
        self.assertNotEqual(result.returncode, 0)
        return result

    def end(self, ctl, code=0):
        out, err = ctl.communicate(timeout=60)
        self.assertEqual(ctl.returncode, code, out + err)
        return json.loads(out)

    def record(self, program=(PROGRAM,), options=()):
        host, environment = self.host()
        ctl = self.begin(host, *options)
        subprocess.run(program, env=environment, check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        return self.end(ctl)

    def replay(self, *options, code=0):
        result = subprocess.run(
            [BUILD / "host-daemon/replay/vgpu-replay", "--timeout", "30", *options, self.file],
            capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_a_program_gives_the_same_results(self):
        said = self.record()
        self.assertEqual(said["end"], "process")
        self.assertFalse(said["overlapping"] or said["uncovered"])
        self.assertEqual(said["bytes"], self.file.stat().st_size)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        found = json.loads(self.replay("--json").stdout)
        self.assertEqual(found["calls"], said["calls"])
        self.assertEqual(found["differences"], 0)
        self.assertGreater(found["outputs"], 0)
        self.assertTrue(found["complete"])
        # Without its end it is replayed as far as it goes.
        data = self.file.read_bytes()
        last = list(records(data))[-1]
        self.assertEqual(last[1], CLOSE)
        self.file.write_bytes(data[:last[0]])
        self.assertIn("ends before the process did", self.replay().stdout)
        # So is one that ends within a record.
        self.file.write_bytes(data[:last[0] - 5])
        self.replay()

    def test_threads_that_take_turns_give_the_same_results(self):
        said = self.record([THREADS])
        self.assertEqual(said["end"], "process")
        lanes = [struct.unpack_from("<I", payload, 16)[0]
                 for _, kind, payload in records(self.file.read_bytes()) if kind == BEGIN]
        # There are 32 rounds, and each has calls of both.
        self.assertGreaterEqual(sum(a != b for a, b in zip(lanes, lanes[1:])), 32)
        found = json.loads(self.replay("--json").stdout)
        self.assertEqual((found["calls"], found["differences"]), (said["calls"], 0))
        # Of each thread a copy to the device and one back in each round.
        self.assertEqual(found["outputs"], 2 * 2 * 32)
        self.assertTrue(found["complete"])

    @unittest.skipIf(LACK, LACK)
    def test_a_full_disk_ends_a_recording_and_not_the_process(self):
        host, environment = self.host()
        mount("none", self.file.parent, "tmpfs", 0, "size=256k")
        self.addCleanup(call, "umount2", str(self.file.parent).encode(), 2)
        ctl = self.begin(host)
        subprocess.run([PROGRAM], env=environment, check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        out, err = ctl.communicate(timeout=60)
        self.assertEqual(ctl.returncode, 1, out + err)
        self.assertIn("No space left on device", err)
        said = json.loads(out)
        self.assertEqual(said["end"], "file")
        self.assertEqual(said["bytes"], self.file.stat().st_size)
        self.assertGreater(said["calls"], 0)
        found = json.loads(self.replay("--json").stdout)
        self.assertEqual((found["calls"], found["differences"], found["complete"]),
                         (said["calls"], 0, False))

    def change(self, kind, choose, offset, text):
        """Changes a number in a record; the sum is right nevertheless."""
        data = self.file.read_bytes()
        at, _, payload = [r for r in records(data) if r[1] == kind and choose(r[2])][-1]
        changed = bytearray(payload)
        changed[offset] ^= 1
        new = record_of(kind, bytes(changed))
        self.file.write_bytes(data[:at] + new + data[at + len(new):])
        number = struct.unpack_from("<Q", payload)[0]
        found = self.replay(code=1).stdout
        self.assertRegex(found, rf"(?m)^call #{number} \w+: {text}")
        self.assertIn(f"1 differ, first at call #{number}\n", found)
        self.file.write_bytes(data)

    def test_what_differs_is_found(self):
        self.record()
        self.change(OUTPUT, lambda payload: True, 24, "the .* bytes that it copied")
        self.change(END, lambda payload: True, 12, "it returns CUDA_SUCCESS, and returned")
        # Of a call with a reply.
        self.change(END, lambda payload: payload[16:20] != b"\xff" * 4, 24, "its reply has")
        # A driver that does nothing.
        found = self.replay("--driver", "null", "--allow-unprivileged", code=1).stdout
        self.assertRegex(found, r"(?m)^call #\d+ \w+: ")

    def test_a_file_that_is_wrong_is_refused(self):
        self.record()
        data = self.file.read_bytes()
        for changed, text in (
                (b"", "it is empty"),
                (data[:100], "it ends within its header"),
                (b"x" * 4096, "it is not a recording"),
                (data[:24] + b"\xff\xff\0\0" + data[28:], "of another version"),
                (data[:200] + b"?" + data[201:], "checksum")):
            self.file.write_bytes(changed)
            self.assertIn(text, self.replay(code=3).stderr)
        at = list(records(data))[5][0]
        self.file.write_bytes(data[:at] + b"\xff" * 16)
        self.assertIn("no known kind", self.replay(code=3).stdout)

    def test_a_killed_worker_leaves_what_it_was_asked(self):
        host, environment = self.host()
        ctl = self.begin(host)
        program = subprocess.Popen([LAST_CALLS, "wait"], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(program.stdout.readline(), "ready\n")
        worker = int(host.wait_for(rf"session opened .* pid={program.pid} .*worker=(\d+)")[1])
        os.kill(worker, signal.SIGKILL)
        said = self.end(ctl)
        program.communicate("go\n")
        self.assertEqual((said["end"], said["process"]), ("worker", program.pid))
        found = json.loads(self.replay("--json").stdout)
        self.assertEqual((found["calls"], found["complete"]), (said["calls"], False))

    def record_fault(self, mode):
        """A kernel that fails after calls that succeed, because its machine is paused."""
        host, environment = self.host(vm="softgpu-launch-timeout = 2")
        ctl = self.begin(host)
        pause = [BUILD / "host-daemon/ctl/vgpuctl", "--socket", f"{host.folder.name}/ctl"]
        program = subprocess.Popen([FAULTS, mode], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "ready\n")
        subprocess.run([*pause, "pause", "raw"], check=True, capture_output=True)
        program.stdin.write("go\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "launched\n")
        subprocess.run([*pause, "resume", "raw"], check=True, capture_output=True)
        program.communicate("go\n", timeout=60)
        self.assertEqual(program.returncode, 0)
        return self.end(ctl)

    def check_fault(self, mode, result, text):
        said = self.record_fault(mode)
        self.assertEqual(said["end"], "process")
        run = self.replay("--json")
        found = json.loads(run.stdout)
        self.assertEqual((found["calls"], found["differences"], found["complete"]),
                         (said["calls"], 0, True), run.stdout)
        fault, = found["faults"]
        self.assertEqual((fault["result"], fault["same"]), (result, True))
        self.assertRegex(fault["text"], text)
        # The same call as the first one that returned it.
        first = min(struct.unpack_from("<Q", payload)[0]
                    for _, kind, payload in records(self.file.read_bytes())
                    if kind == END and struct.unpack_from("<i", payload, 12)[0] >= 700)
        self.assertEqual(fault["call"], first)
        self.assertRegex(self.replay().stdout,
                         rf"(?m)^call #{first} cu\w+: the same fault, {result}: {text}")

    def test_faults_are_the_same(self):
        place = r"in {}, block \(0, 0, 0\), thread \(0, 0, 0\), line \d+"
        self.check_fault("address", "CUDA_ERROR_ILLEGAL_ADDRESS",
                         r"illegal address \(0x40\) " + place.format("store"))
        self.check_fault("trap", "CUDA_ERROR_LAUNCH_FAILED",
                         r"trap instruction \(0x0\) " + place.format("traps"))
        self.check_fault("assert", "CUDA_ERROR_ASSERT",
                         r"failed assertion \(0x0\) " + place.format("asserts"))
        self.check_fault("endless", "CUDA_ERROR_LAUNCH_TIMEOUT",
                         r"time is over .*" + place.format("endless"))

    def test_a_fault_that_differs_is_found(self):
        self.record_fault("address")
        data = self.file.read_bytes()
        (at, _, payload), = [r for r in records(data) if r[1] == FAULT]
        new = record_of(FAULT, struct.pack("<i", 719) + payload[4:])
        self.file.write_bytes(data[:at] + new + data[at + len(new):])
        self.assertRegex(self.replay(code=1).stdout,
                         r"(?m)^call #\d+ cu\w+: the fault is CUDA_ERROR_ILLEGAL_ADDRESS, ")
        # A driver whose kernels do not fail.
        self.file.write_bytes(data)
        found = self.replay("--driver", "null", "--allow-unprivileged", "--lines", "1000",
                            code=1).stdout
        self.assertIn("no kernel fails; when it was recorded one did", found)

    def test_host_memory_at_addresses_of_the_device(self):
        """The guest writes it there, and a copy reads it as the device's."""
        for case in "misuse_is_refused", "copies_and_fills_are_complete_when_they_return":
            self.record([HOST_MEMORY, case])
            found = json.loads(self.replay("--json").stdout)
            self.assertGreater(found["outputs"], 0)
            self.assertTrue(found["complete"])
            self.file.unlink()

    def test_copies_in_graphs_are_compared(self):
        said = self.record([GRAPHS])
        found = json.loads(self.replay("--json").stdout)
        self.assertEqual((found["calls"], found["differences"]), (said["calls"], 0))
        # Of each of two graphs a copy to the device and one back, in three launches.
        self.assertEqual(found["outputs"], 2 * 2 * 3)
        data = self.file.read_bytes()
        outputs = [r for r in records(data) if r[1] == OUTPUT]
        for at, _, payload in outputs:
            changed = bytearray(payload)
            changed[24] ^= 1
            new = record_of(OUTPUT, bytes(changed))
            self.file.write_bytes(data[:at] + new + data[at + len(new):])
            number = struct.unpack_from("<Q", payload)[0]
            self.assertRegex(self.replay(code=1).stdout,
                             rf"(?m)^call #{number} cuGraphLaunch: the 4 bytes that it copied")

    def last_call(self, path):
        """The last one that has begun: of struct vgpu_frame, behind its number."""
        begins = [payload for _, kind, payload in records(path.read_bytes())
                  if kind == BEGIN and len(payload) >= 8 + 16]
        return struct.unpack_from("<H", begins[-1], 8 + 4)[0] if begins else None

    def test_a_worker_that_dies_in_a_call_leaves_a_whole_file(self):
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL):
            host, environment = self.host()
            ctl = self.begin(host)
            program = subprocess.Popen([FAULTS, "endless"], env=environment, text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            self.addCleanup(program.communicate)
            self.addCleanup(program.kill)
            for line in ("ready\n", "launched\n"):
                self.assertEqual(program.stdout.readline(), line)
                program.stdin.write("go\n")
                program.stdin.flush()
            worker = int(host.wait_for(
                rf"session opened .* pid={program.pid} .*worker=(\d+)")[1])
            part = Path(f"{self.file}.part")
            while self.last_call(part) != SYNCHRONIZE:
                self.assertIsNone(program.poll())
                time.sleep(0.01)
            os.kill(worker, number)
            said = self.end(ctl)
            program.communicate(timeout=60)
            self.assertEqual((said["end"], said["process"]), ("worker", program.pid))
            found = json.loads(self.replay("--json").stdout)
            self.assertEqual((found["calls"], found["complete"], found["differences"]),
                             (said["calls"], False, 0))
            call, = found["open"]
            self.assertEqual((call["name"], call["result"]), ("cuCtxSynchronize", None))
            self.assertIn(f"call #{call['call']} cuCtxSynchronize had not returned; "
                          "it does not now\n", self.replay().stdout)

    def test_limits_end_a_recording_and_not_the_process(self):
        host, environment = self.host()
        ctl = self.begin(host, "--size", "64K")
        subprocess.run([PROGRAM], env=environment, check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        said = self.end(ctl)
        self.assertEqual(said["end"], "size")
        self.assertLessEqual(self.file.stat().st_size, 64 << 10)
        self.replay()
        # Another one that waits is refused, and an interrupt leaves no file.
        self.file.unlink()
        ctl = self.begin(host)
        other = self.ctl(host, "record", "raw", "--output", f"{self.file}-2")
        self.assertIn("another vgpuctl waits", other.stderr)
        ctl.send_signal(signal.SIGINT)
        self.assertIn("nothing is recorded", ctl.communicate(timeout=60)[1])
        self.assertEqual(ctl.returncode, 1)
        self.assertFalse(self.file.exists())

    def test_only_the_process_that_was_asked_for_is_recorded(self):
        host, environment = self.host()
        name = Path(PROGRAM).name[:15]
        ctl = self.begin(host, "--command", name)
        program = subprocess.Popen([LAST_CALLS, "wait"], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(program.stdout.readline(), "ready\n")
        late = self.ctl(host, "record", "raw", "--output", f"{self.file}-3", "--process",
                        str(program.pid))
        self.assertIn("uses the device already", late.stderr)
        subprocess.run([PROGRAM], env=environment, check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        said = self.end(ctl)
        program.communicate("go\n")
        self.assertEqual(said["name"], name)
        self.assertTrue(re.search(r"is recorded by a vgpuctl", host.text()))


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
