# SPDX-License-Identifier: Apache-2.0
"""numba-cuda's own tests, a module at a time, linked by the driver so that the PTX is kept;
numba_tests.py knows the tests that do not pass."""

import os
import sys
from pathlib import Path

from cache import CUDA
from suite import Case, Skip, Suite

FOLDER = Path(__file__).resolve().parent
NUMBA = ("numba-cuda", "0.18.1")
PACKAGES = (("numba", "0.60.0"), ("llvmlite", "0.43.0"), ("packaging", "25.0"),
            ("numpy", "2.0.2"), ("psutil", "7.2.2"), ("cffi", "2.0.0"), ("pycparser", "2.23"),
            ("pytest", "8.4.2"), ("iniconfig", "2.1.0"), ("pluggy", "1.6.0"),
            ("pygments", "2.19.2"), ("filecheck", "1.0.3"))
KINDS = ("core", "cudadrv", "cudapy", "doc_examples", "nocuda", "nrt")


class Numba(Suite):
    name = "numba"
    title = "numba-cuda's own tests"
    in_all = True
    seconds = 900

    def versions(self):
        return ", ".join(" ".join(package) for package in (NUMBA, *PACKAGES[:2]))

    def cases(self):
        if not (CUDA / "lib64").exists():
            raise Skip("there is no CUDA toolkit (CUDA_HOME), whose NVVM and NVRTC they use")
        folders = [self.cache.wheel(*package) for package in (NUMBA, *PACKAGES)]
        variables = {"PYTHONPATH": os.pathsep.join(map(str, [FOLDER / "numba-site", *folders])),
                     "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CUDA_USE_NVIDIA_BINDING": "0",
                     "CUDA_HOME": str(CUDA), "CUDA_PATH": str(CUDA),
                     "HOME": str(self.folder("home"))}
        tests = folders[0] / "numba_cuda/numba/cuda/tests"
        for kind in KINDS:
            for path in sorted((tests / kind).glob("test_*.py")):
                yield Case(f"{kind}.{path.stem}",
                           [sys.executable, FOLDER / "numba_tests.py", f"{kind}.{path.stem}"],
                           libraries=[CUDA / "lib64"], variables=variables)
