#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-smi on a host, whose NVML is not ours: one of known values.

    test_smi.py BUILD SOURCE
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "tests/lib"))

import tap  # noqa: E402

SMI = BUILD / "guest-shim/smi/vgpu-smi"
UUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"
NO_DRIVER = 9


class OnHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        (Path(cls.folder.name) / "libnvidia-ml.so.1").symlink_to(
            BUILD / "tests/foreign/libforeign-nvml.so")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_smi(self, *words, status=0, uuid=UUID):
        environment = dict(os.environ, LD_LIBRARY_PATH=self.folder.name)
        environment.pop("FAKE_NVML_UUID", None)
        if uuid:
            environment["FAKE_NVML_UUID"] = uuid
        done = subprocess.run([SMI, *words], capture_output=True, text=True, check=False,
                              env=environment, timeout=60)
        self.assertEqual(done.returncode, status, done)
        return done.stdout

    def test_values_are_those_of_its_library(self):
        out = self.run_smi(
            "--query-gpu=name,uuid,temperature.gpu,temperature.memory,power.draw,clocks.sm,"
            "driver_version,ecc.errors.uncorrected.aggregate.total",
            "--format=csv,noheader")
        self.assertEqual(out, f"Foreign Card, {UUID}, 41, 77, 123.46 W, 1001 MHz, 580.1.2, "
                              "17\n")

    def test_what_its_library_lacks_is_not_available(self):
        # It refuses one, and has no function for the other two.
        out = self.run_smi("--query-gpu=fan.speed,pstate,memory.total",
                           "--format=csv,noheader")
        self.assertEqual(out, "[N/A], [N/A], [N/A]\n")

    def test_each_form_shows_what_there_is(self):
        self.assertIn("Foreign Card", self.run_smi())
        self.assertLessEqual(max(map(len, self.run_smi().splitlines())), 80)
        self.assertIn(f"(UUID: {UUID})", self.run_smi("-L"))
        self.assertIn("123.46 W", self.run_smi("-q", "-d", "POWER"))
        gpu, = json.loads(self.run_smi("--json"))["gpus"]
        self.assertEqual(gpu["temperature.gpu"], 41)
        self.assertIsNone(gpu["memory.total"])
        line = self.run_smi("dmon", "-c", "1").splitlines()[-1].split()
        self.assertEqual(line[1:4], ["123", "41", "77"])

    def test_a_library_without_a_driver_is_told_by_the_status(self):
        self.run_smi(status=NO_DRIVER, uuid=None)


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
