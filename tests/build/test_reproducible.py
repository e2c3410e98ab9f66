#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of the guest package, in folders of different names, are the same bytes.

    test_reproducible.py SOURCE
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MESON = os.environ.get("MESON", "meson").split()
TARGETS = ("guest-shim/libcuda.so.1", "guest-shim/nvml/libnvidia-ml.so.1",
           "guest-shim/smi/vgpu-smi", "guest-shim/doctor/vgpu-doctor",
           "scripts/libcuda-check",
           "protocol/libcuda-symbols.json")
OMITTED = shutil.ignore_patterns(".git", "build*", "__pycache__")


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def package(source, folder):
    """Builds a copy of the source in a folder. Returns the package and what it consists of."""
    tree, build = folder / "source", folder / "output"
    # tests/build and the like are sources.
    shutil.copytree(source, tree, ignore=lambda path, names:
                    OMITTED(path, names) if Path(path) == source else ())
    run(*MESON, "setup", "-Dtests=disabled", "-Dhost_daemon=disabled", build, tree)
    run("ninja", "-C", build, *TARGETS)
    found = {target: hashlib.sha256((build / target).read_bytes()).hexdigest()
             for target in TARGETS}
    name = folder / "package.tar.gz"
    run(tree / "scripts/make-guest-package", "--output", name,
        env=dict(os.environ, VGPU_BUILD=str(build)))
    return dict(found, package=hashlib.sha256(name.read_bytes()).hexdigest())


def main():
    source = Path(sys.argv[1]).resolve()
    # Compilers find what an earlier build left behind elsewhere.
    os.environ["CCACHE_DISABLE"] = "1"
    with tempfile.TemporaryDirectory(prefix="vgpu-a-") as first, \
            tempfile.TemporaryDirectory(prefix="vgpu-second-build-") as second:
        os.mkdir(f"{second}/deeper")
        a, b = package(source, Path(first)), package(source, Path(second) / "deeper")
    assert a == b, f"{a}\n{b}"


if __name__ == "__main__":
    main()
