#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""meson setup prints no warning, and leaves out the tests, or the host's part, on request.

    test_setup.py SOURCE
"""

import json
import os
import re
import subprocess
import sys
import tempfile

MESON = os.environ.get("MESON", "meson").split()
PRODUCTS = {"vgpud", "vgpu-worker", "cuda", "vgpu-softgpu", "vgpu-null", "libcuda-check"}


def setup(source, folder, *options):
    """Returns the targets and the tests, by name."""
    done = subprocess.run([*MESON, "setup", *options, folder, source], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    complaints = [line for line in done.stdout.splitlines()
                  if re.search(r"\b(DEPRECATION|WARNING)\b", line)]
    assert not complaints, "\n".join(complaints)
    return [{entry["name"] for entry in json.loads(subprocess.run(
        [*MESON, "introspect", folder, what], stdout=subprocess.PIPE, check=True).stdout)}
        for what in ("--targets", "--tests")]


def main():
    with tempfile.TemporaryDirectory(prefix="vgpu-setup-") as folder:
        targets, tests = setup(sys.argv[1], f"{folder}/all")
        assert PRODUCTS <= targets and "test-ring" in targets and tests, targets
        targets, tests = setup(sys.argv[1], f"{folder}/product", "-Dtests=disabled")
        assert PRODUCTS <= targets, PRODUCTS - targets
        assert not tests, tests
        left = {name for name in targets
                if re.search(r"^(test|e2e|fuzz|make-seeds|nvcc)-|-fixture$|bench|checked", name)}
        assert not left, left
        targets, tests = setup(sys.argv[1], f"{folder}/guest", "-Dhost_daemon=disabled")
        assert {"cuda", "libcuda-check", "test-ring"} <= targets and tests, targets
        assert not targets & {"vgpud", "vgpu-worker", "vgpu-softgpu"}, targets


if __name__ == "__main__":
    main()
