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
PRODUCTS = {"vgpud", "vgpu-worker", "cuda", "vgpu-softgpu", "vgpu-null", "libcuda-check",
            "vgpu-softgpu-info", "vgpu-ptxas"}


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


def installed_runtimes(folder):
    """Returns the places where libcudart.so.N is installed, by name."""
    plan = json.loads(subprocess.run([*MESON, "introspect", folder, "--installed"],
                                     stdout=subprocess.PIPE, check=True).stdout)
    places = {os.path.basename(place): os.path.dirname(place) for place in plan.values()}
    return {name: place for name, place in places.items()
            if re.fullmatch(r"libcudart\.so\.\d+", name)}


def check_runtimes(folder):
    """Our CUDA runtime is in folders that no configuration of the loader names."""
    places = installed_runtimes(folder)
    assert set(places) == {"libcudart.so.12", "libcudart.so.13"}, places
    for name, place in places.items():
        assert place.endswith(f"/vgpu/runtime/{name.rpartition('.')[2]}"), places
    with open(f"{folder}/docs/vgpu.conf", encoding="utf-8") as f:
        searched = [line.strip() for line in f if not line.startswith("#")]
    assert searched and not set(searched) & set(places.values()), (searched, places)


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
        assert not installed_runtimes(f"{folder}/product")
        setup(sys.argv[1], f"{folder}/runtime", "-Dtests=disabled", "-Druntime=enabled")
        check_runtimes(f"{folder}/runtime")
        targets, tests = setup(sys.argv[1], f"{folder}/guest", "-Dhost_daemon=disabled")
        assert {"cuda", "libcuda-check", "test-ring"} <= targets and tests, targets
        assert not targets & {"vgpud", "vgpu-worker", "vgpu-softgpu"}, targets


if __name__ == "__main__":
    main()
