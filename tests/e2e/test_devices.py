#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which of a host's four devices a VM has, and in which order: for CUDA and for NVML, with
other VMs beside it, and when it changes.

    test_devices.py BUILD
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

CTL = BUILD / "host-daemon/ctl/vgpuctl"
NO_DEVICE = 100


class Guest:
    """A process of a VM."""

    def __init__(self, test, socket, *words):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, Path(__file__).parent / "list_devices.py",
             BUILD / "guest-shim/libcuda.so.1", BUILD / "guest-shim/nvml/libnvidia-ml.so.1",
             *words],
            env=dict(os.environ, VGPU_SOCKET=str(socket)), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        self.answer = json.loads(self.process.stdout.readline())

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(60)
            self.process.stdout.close()
        return self.process.returncode


class Devices(unittest.TestCase):
    def setUp(self):
        self.host = Host(BUILD, extra="softgpu-devices = 4\n", prepare=self.prepare)
        self.host.__enter__()
        self.addCleanup(self.host.__exit__, None, None, None)
        everything = self.guest(self.host.socket)["cuda"]
        self.uuids = [uuid for uuid, _, _ in everything]
        self.places = [place for _, place, _ in everything]
        self.assertEqual(len(set(self.uuids)), 4, everything)
        self.assertEqual(len(set(self.places)), 4, everything)

    def prepare(self, folder):
        self.control, self.folder = folder / "control", folder / "vm.d"
        self.folder.mkdir()
        return f"\nctl-socket = {self.control}\n"

    def guest(self, socket, *words):
        """What a process saw that has ended."""
        guest = Guest(self, socket, *words)
        self.assertEqual(guest.end(), 0)
        return guest.answer

    def vgpuctl(self, *arguments):
        return subprocess.run([CTL, "--socket", self.control, *arguments], text=True,
                              capture_output=True, check=False)

    def attach(self, name, devices):
        """One VM more."""
        socket = self.folder.parent / name
        (self.folder / f"{name}.conf").write_text(
            f"[vm {name}]\ntransport = socket\nsocket = {socket}\nsize = 256M\n"
            f"devices = {devices}\n")
        self.host.reload()
        return socket

    def check(self, answer, *numbers):
        self.assertEqual(answer["cuda"], [[self.uuids[number], self.places[number], 7 + i]
                                          for i, number in enumerate(numbers)])
        # The page counts the memory on the device that has it.
        self.assertEqual([[uuid, used >> 20] for uuid, used in answer["nvml"]],
                         [[self.uuids[number], i + 1] for i, number in enumerate(numbers)])

    def test_order_and_number_are_those_of_the_list(self):
        self.check(self.guest(self.attach("two", "2, 0")), 2, 0)

    def test_vms_with_different_lists_work_at_once(self):
        lists = {"2,0": (2, 0), "0,2": (0, 2), self.uuids[3][:12]: (3,),
                 f"{self.uuids[1]},2,3": (1, 2, 3)}
        sockets = [self.attach(f"v{i}", devices) for i, devices in enumerate(lists)]
        guests = [Guest(self, socket) for socket in [*sockets, self.host.socket]]
        for guest, numbers in zip(guests, [*lists.values(), (0, 1, 2, 3)]):
            with self.subTest(numbers):
                self.check(guest.answer, *numbers)

    def test_a_change_is_for_new_processes(self):
        socket = self.attach("two", "1")
        old = Guest(self, socket)
        self.check(old.answer, 1)
        done = self.vgpuctl("set", "two", "devices=3,1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3,1", self.vgpuctl("show", "two").stdout)
        new = self.guest(socket, "beside")
        self.assertEqual([uuid for uuid, _, _ in new["cuda"]], [self.uuids[3], self.uuids[1]])
        self.assertEqual(old.end(), 0)
        self.check(self.guest(socket), 3, 1)
        done = self.vgpuctl("set", "two", "devices=")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check(self.guest(socket), 0, 1, 2, 3)

    def test_a_device_that_the_driver_lacks(self):
        """It is refused with a line of the log, and other VMs are served."""
        for i, devices in enumerate(("4", "0,7", "GPU-00000000")):
            with self.subTest(devices):
                socket = self.attach(f"v{i}", devices)
                self.assertEqual(self.guest(socket)["result"], NO_DEVICE)
                self.host.wait_for(f"no driver to serve with, devices {devices}: ")
                self.check(self.guest(self.host.socket), 0, 1, 2, 3)

    def test_a_list_that_is_wrong(self):
        done = self.vgpuctl("set", "raw", "devices=1,1")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r'vgpud\.conf:\d+: "1" is there twice')


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
