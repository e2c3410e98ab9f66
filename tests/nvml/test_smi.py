#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-smi against a vgpud with softgpu: its options and exit statuses.

    test_smi.py BUILD SOURCE
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import test_nvml as nvml
from test_nvml import BUILD

import tap  # pylint: disable=wrong-import-order
from host import Host  # pylint: disable=wrong-import-order

SMI = BUILD / "guest-shim/smi/vgpu-smi"
FOLDER = str(BUILD / "guest-shim/nvml")
# Of confidential computing, NVLink and NVIDIA's vGPU, which neither a guest nor the tables
# of a host's users need.
NAMELESS = """addressing_mode c2c.mode fabric.state fabric.status
protected_memory.total protected_memory.used protected_memory.free""".split()
ECC = [f"ecc.errors.{kind}.{counter}.{place}" for kind in ("corrected", "uncorrected")
       for counter in ("volatile", "aggregate")
       for place in ("device_memory", "dram", "register_file", "l1_cache", "l2_cache",
                     "texture_memory", "cbu", "sram", "total")]
REASONS = [f"clocks_{kind}_reasons.{reason}" for kind in ("event", "throttle")
           for reason in ("supported", "active", "gpu_idle", "applications_clocks_setting",
                          "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
                          "hw_power_brake_slowdown", "sw_thermal_slowdown", "sync_boost")]
DOCUMENTED = """timestamp driver_version count name gpu_name serial gpu_serial uuid gpu_uuid
pci.bus_id gpu_bus_id pci.domain pci.bus pci.device pci.device_id pci.sub_device_id
pcie.link.gen.current pcie.link.gen.gpucurrent pcie.link.gen.max pcie.link.gen.gpumax
pcie.link.gen.hostmax pcie.link.width.current pcie.link.width.max index display_mode
display_active persistence_mode accounting.mode accounting.buffer_size driver_model.current
driver_model.pending vbios_version inforom.img inforom.image inforom.oem inforom.ecc
inforom.pwr inforom.power gom.current gpu_operation_mode.current gom.pending
gpu_operation_mode.pending fan.speed pstate memory.total memory.reserved memory.used
memory.free compute_mode compute_cap utilization.gpu utilization.memory utilization.encoder
utilization.decoder utilization.jpeg utilization.ofa encoder.stats.sessionCount
encoder.stats.averageFps encoder.stats.averageLatency ecc.mode.current ecc.mode.pending
retired_pages.single_bit_ecc.count retired_pages.sbe retired_pages.double_bit.count
retired_pages.dbe retired_pages.pending temperature.gpu temperature.gpu.tlimit
temperature.memory power.management power.draw power.draw.average power.draw.instant
power.limit enforced.power.limit power.default_limit power.min_limit power.max_limit
clocks.current.graphics clocks.gr clocks.current.sm clocks.sm clocks.current.memory clocks.mem
clocks.current.video clocks.video clocks.applications.graphics clocks.applications.gr
clocks.applications.memory clocks.applications.mem clocks.default_applications.graphics
clocks.default_applications.gr clocks.default_applications.memory
clocks.default_applications.mem clocks.max.graphics clocks.max.gr clocks.max.sm
clocks.max.memory clocks.max.mem mig.mode.current mig.mode.pending gsp.mode.current
gsp.mode.default""".split() + ECC + REASONS + NAMELESS

NO_DEVICE, UNKNOWN_DEVICE, NO_DRIVER, NO_LIBRARY, OTHER = 2, 6, 9, 12, 255


def run(*words, status=0, program=SMI):
    """Returns what it prints, and what it complains about."""
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False,
                          timeout=60)
    assert done.returncode == status, (words, done)
    return done.stdout, done.stderr


def names_of_help(of="gpu"):
    """Programs find them in this way: in quotation marks after an empty line."""
    return re.findall(r'\n\s*\n"([^"]+)"', run(f"--help-query-{of}")[0])


class Smi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host(BUILD).__enter__()
        os.environ["VGPU_SOCKET"] = str(cls.host.socket)
        os.environ["LD_LIBRARY_PATH"] = FOLDER

    @classmethod
    def tearDownClass(cls):
        cls.host.__exit__()

    def value(self, name):
        return run(f"--query-gpu={name}", "--format=csv,noheader,nounits")[0].strip()

    def test_the_table_fits_a_terminal(self):
        lines = run()[0].splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertIn("softgpu", "".join(lines))
        self.assertIn("No running processes found", "".join(lines))

    def test_the_list_has_name_and_uuid(self):
        self.assertRegex(run("-L")[0], r"\AGPU 0: .*softgpu.* \(UUID: GPU-[0-9a-f-]{36}\)\n\Z")

    def test_values_can_be_asked_for_by_name(self):
        out, _ = run("--query-gpu=index,memory.total", "--format=csv")
        self.assertRegex(out, r"\Aindex, memory.total \[MiB\]\n0, \d+ MiB\n\Z")
        names = names_of_help()
        self.assertGreater(len(names), 50)
        self.assertIn("process_name", names_of_help("compute-apps"))
        line = self.value(",".join(names))
        self.assertEqual(len(line.split(", ")), len(names), line)

    def test_names_are_those_of_nvidia_smi(self):
        """As its --help-query-gpu documents them; NAMELESS are those that we do not have."""
        names = names_of_help()
        for name in DOCUMENTED:
            with self.subTest(name):
                if name in NAMELESS:
                    self.assertNotIn(name, names)
                    run(f"--query-gpu={name}", "--format=csv", status=NO_DEVICE)
                else:
                    self.value(name)
        self.assertEqual(self.value("clocks_throttle_reasons.active"),
                         self.value("clocks_event_reasons.active"))

    def test_a_process_is_shown_in_each_form(self):
        child = nvml.start_user()
        pid = str(child.pid)
        nvml.wait_until(lambda: pid in run()[0], "the process in the table")
        out, _ = run("--query-compute-apps=pid,name,used_memory", "--format=csv,noheader")
        self.assertRegex(out, rf"\A{pid}, .*python.*, \d+ MiB\n\Z")
        self.assertIn(pid, run("-q", "-d", "PIDS")[0])
        self.assertIn(pid, run("pmon", "-c", "1")[0])
        everything = json.loads(run("--json")[0])
        self.assertEqual([p["pid"] for p in everything["gpus"][0]["processes"]], [child.pid])
        nvml.end_user(child)

    def test_json_has_each_value(self):
        everything = json.loads(run("--json")[0])
        self.assertEqual(everything["cuda_version"], "13.0")
        (gpu,) = everything["gpus"]
        for name in names_of_help():
            self.assertIn(name, gpu)
        self.assertIsNone(gpu["temperature.gpu"])
        self.assertEqual(gpu["memory.total"], gpu["memory.used"] + gpu["memory.free"])

    def test_a_device_is_named_in_three_ways(self):
        for name in ("0", self.value("uuid"), self.value("pci.bus_id")):
            self.assertIn("GPU 0", run("-L", "-i", name)[0])
        run("-i", "1", status=NO_DEVICE)
        run("-i", "GPU-1", status=UNKNOWN_DEVICE)
        run("-i", "0000:ff:00.0", status=UNKNOWN_DEVICE)

    def test_a_loop_ends_after_its_count(self):
        query = ("--query-gpu=index", "--format=csv")
        self.assertEqual(run("-lms", "1", "-c", "3", *query)[0], "index\n0\n0\n0\n")
        self.assertEqual(run("-lms=1", "-c", "2", *query)[0], "index\n0\n0\n")
        self.assertEqual(run("--loop-ms=1", "-c", "2", *query)[0], "index\n0\n0\n")
        self.assertEqual(run("-l", "1", "-c", "1", *query)[0], "index\n0\n")
        self.assertEqual(len(run("dmon", "-d", "1", "-c", "2")[0].splitlines()), 4)

    def test_the_output_goes_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "out"
            self.assertEqual(run("-L", "-f", path)[0], "")
            self.assertIn("GPU 0", path.read_text("utf-8"))
            run("-L", "-f", Path(folder) / "none" / "out", status=OTHER)

    def test_a_full_disk_is_told(self):
        self.assertIn("No space", run("-L", "-f", "/dev/full", status=OTHER)[1])

    def test_wrong_usage_is_told(self):
        for words in (["--fog"], ["fog"], ["-d", "FOG"], ["-l", "x"], ["-l0"], ["-c", "-1"],
                      ["--query-gpu=fog", "--format=csv"], ["--query-gpu=index"],
                      ["--format=csv"], ["--query-gpu=index", "--format=xml"], ["-lms"]):
            with self.subTest(words):
                self.assertIn("--help", run(*words, status=NO_DEVICE)[1])
        self.assertIn("usage:", run("--help")[0])
        self.assertLessEqual(max(map(len, run("--help")[0].splitlines())), 80)
        self.assertRegex(run("--version")[0], r"\Avgpu-smi \d+\.\d+\.\d+\n\Z")

    def test_without_a_host_there_is_no_driver(self):
        os.environ["VGPU_SOCKET"] = "/nowhere"
        try:
            self.assertIn("no way to a driver", run(status=NO_DRIVER)[1])
        finally:
            os.environ["VGPU_SOCKET"] = str(self.host.socket)

    def test_without_a_library_nothing_is_known(self):
        del os.environ["LD_LIBRARY_PATH"]
        try:
            done = subprocess.run([SMI, "-L"], capture_output=True, text=True, check=False)
        finally:
            os.environ["LD_LIBRARY_PATH"] = FOLDER
        if done.returncode != NO_LIBRARY:
            self.skipTest("a libnvidia-ml.so.1 is installed here")
        self.assertIn("libnvidia-ml.so.1", done.stderr)


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
