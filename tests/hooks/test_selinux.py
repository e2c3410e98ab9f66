#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The policy module for SELinux compiles, by the lines of qemu/README.md.

    test_selinux.py SOURCE
"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(sys.argv[1]).absolute()
sys.path.insert(0, str(TOP / "tests/lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position

POLICY = TOP / "qemu/selinux/vgpu.te"
PROGRAMS = ("checkmodule", "semodule_package")
LACKING = [name for name in PROGRAMS if not shutil.which(name)]


def commands():
    """Those of the README that compile; the others are for a host with SELinux."""
    text = (TOP / "qemu/README.md").read_text(encoding="utf-8")
    found = re.search(r"^ *```sh\n *(checkmodule .*\n *semodule_package .*\n)", text, re.M)
    return found[1]


@unittest.skipIf(LACKING, f"not installed: {', '.join(LACKING)}")
class Policy(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="vgpu-selinux-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        shutil.copytree(POLICY.parent, self.folder / "qemu/selinux")

    def compile(self):
        return subprocess.run(["bash", "-euc", commands()], cwd=self.folder, text=True,
                              capture_output=True, check=False)

    def test_the_module_compiles(self):
        done = self.compile()
        self.assertEqual(done.returncode, 0, done)
        self.assertGreater((self.folder / "vgpu.pp").stat().st_size, 0)

    def test_a_rule_for_a_type_that_is_not_required_does_not_compile(self):
        file = self.folder / "qemu/selinux/vgpu.te"
        file.write_text(POLICY.read_text(encoding="utf-8").replace("\ttype svirt_t;\n", ""))
        done = self.compile()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("svirt_t", done.stdout + done.stderr)


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
