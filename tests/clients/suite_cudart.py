# SPDX-License-Identifier: Apache-2.0
"""Versions of NVIDIA's runtime library, each as PyPI has it, driven by the program cudart.py;
a case is one of its subjects with one version. `mixed` has all of them in one process."""

import sys
from pathlib import Path

from suite import Case, Skip, Suite

PROGRAM = Path(__file__).resolve().parent / "cudart.py"
PACKAGES = {
    "11.7": ("nvidia-cuda-runtime-cu11", "11.7.99"),
    "11.8": ("nvidia-cuda-runtime-cu11", "11.8.89"),
    "12.0": ("nvidia-cuda-runtime-cu12", "12.0.146"),
    "12.1": ("nvidia-cuda-runtime-cu12", "12.1.105"),
    "12.4": ("nvidia-cuda-runtime-cu12", "12.4.127"),
    "12.8": ("nvidia-cuda-runtime-cu12", "12.8.90"),
    "12.9": ("nvidia-cuda-runtime-cu12", "12.9.79"),
    "13.0": ("nvidia-cuda-runtime", "13.0.88"),
    "13.2": ("nvidia-cuda-runtime", "13.2.75"),
    "13.5": ("nvidia-cuda-runtime", "13.5.37"),
}
SUBJECTS = ("device", "errors", "graphs", "host", "ipc", "launch", "managed", "memory",
            "pools", "reset", "streams", "threads")
# Subjects that depend on when code is loaded, which is lazily unless told.
EAGER = ("launch", "managed", "reset")


class Cudart(Suite):
    name = "cudart"
    title = "NVIDIA's runtime library, by its C interface"
    in_all = True
    seconds = 60

    def versions(self):
        return f"{self.title}; {', '.join(version for _, version in PACKAGES.values())}"

    def library(self, version):
        package, release = PACKAGES[version]
        place = self.cache.wheel(package, release)
        found = next(iter(place.rglob("libcudart.so.*")), None)
        if not found:
            raise Skip(f"{package} {release} of PyPI has no libcudart.so")
        return found

    def cases(self):
        libraries = {version: self.library(version) for version in PACKAGES}

        def case(name, subject, *wanted, **variables):
            words = [libraries[version] for version in wanted]
            return Case(name, [sys.executable, PROGRAM, subject, *words],
                        variables={"PYTHONDONTWRITEBYTECODE": "1", **variables})

        for version in PACKAGES:
            for subject in SUBJECTS:
                yield case(f"{version}/{subject}", subject, version)
            for subject in EAGER:
                yield case(f"{version}/{subject}-eager", subject, version,
                           CUDA_MODULE_LOADING="EAGER")
        yield case("mixed", "mixed", *PACKAGES)
