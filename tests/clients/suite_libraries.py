# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libraries of algorithms, as PyPI and the toolkit have them, each driven by the
program libraries.py, which compares their results with its own."""

import sys
from pathlib import Path

from cache import CUDA
from libraries import SUBJECTS
from suite import Case, Skip, Suite

PROGRAM = Path(__file__).resolve().parent / "libraries.py"
# By the first word of a subject: the package, and the library in it.
PACKAGES = {
    "blas": (("nvidia-cublas", "13.1.0.3"), "libcublas.so.13"),
    "sparse": (("nvidia-cusparse", "12.6.3.3"), "libcusparse.so.12"),
    "solver": (("nvidia-cusolver", "12.0.4.66"), "libcusolver.so.12"),
    "rand": (("nvidia-curand", "10.4.0.35"), "libcurand.so.10"),
    "dnn": (("nvidia-cudnn-cu13", "9.19.0.56"), "libcudnn.so.9"),
    "nccl": (("nvidia-nccl-cu13", "2.28.9"), "libnccl.so.2"),
}
# What libraries load besides.
NEEDED = {
    "sparse": [("nvidia-nvjitlink", "13.0.88")],
    "solver": [PACKAGES["blas"][0], PACKAGES["sparse"][0], ("nvidia-nvjitlink", "13.0.88")],
    "dnn": [PACKAGES["blas"][0], ("nvidia-cuda-nvrtc", "13.0.88")],
}


class Libraries(Suite):
    name = "libraries"
    title = "cuBLAS, cuSPARSE, cuSOLVER, cuRAND, cuDNN and NCCL"
    in_all = True
    seconds = 300

    def versions(self):
        return ", ".join(" ".join(package) for package, _ in PACKAGES.values())

    def cases(self):
        for subject in SUBJECTS:
            family = subject.split("-")[0]
            package, name = PACKAGES[family]
            yield self.pypi_case(subject, family, package, name)
            place = CUDA / "lib64" / name
            skip = None if place.exists() else "there is no CUDA toolkit (CUDA_HOME), or not all"
            yield self.case(f"toolkit/{subject}", subject, place, [place.parent], skip)

    def pypi_case(self, subject, family, package, name):
        folders, skip, path = [], None, Path(name)
        try:
            path = next(iter(self.cache.wheel(*package).rglob(name)))
            folders = [path.parent]
            for needed in NEEDED.get(family, []):
                libraries = self.cache.wheel(*needed).rglob("lib*.so.*")
                folders += sorted({library.parent for library in libraries})
        except Skip as reason:
            skip = str(reason)
        return self.case(f"pypi/{subject}", subject, path, folders, skip)

    @staticmethod
    def case(name, subject, path, libraries, skip):
        return Case(name, [sys.executable, PROGRAM, subject, path], skip=skip,
                    libraries=libraries, variables={"PYTHONDONTWRITEBYTECODE": "1"})
