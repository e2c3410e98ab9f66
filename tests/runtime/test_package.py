#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guest package has our CUDA runtime on request only.

    test_package.py SOURCE BUILD
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

from tap import functions, run  # noqa: E402

SOURCE, BUILD = sys.argv[1:]
RUNTIMES = {"lib/runtime/12/libcudart.so.12", "lib/runtime/13/libcudart.so.13"}


def package(*options):
    """Returns the names of the files in a new package, without its first folder."""
    with tempfile.TemporaryDirectory(prefix="vgpu-package-") as folder:
        file = f"{folder}/package.tar.gz"
        subprocess.run([f"{SOURCE}/scripts/make-guest-package", "--output", file, *options],
                       env=dict(os.environ, VGPU_BUILD=BUILD), check=True,
                       stdout=subprocess.DEVNULL)
        with tarfile.open(file) as tar:
            return {name.partition("/")[2] for name in tar.getnames()}


def test_a_package_has_no_runtime():
    names = package()
    assert "lib/libcuda.so.1" in names
    assert not any("cudart" in name or "runtime" in name for name in names), names


def test_a_package_has_both_runtimes_on_request():
    names = package("--runtime")
    assert RUNTIMES | {"lib/libcuda.so.1", "runtime.md"} <= names, names


if __name__ == "__main__":
    sys.exit(run(functions(globals())))
