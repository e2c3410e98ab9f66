# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's compilers for use at run time, and the Python packages on top of them, as PyPI has
them; the program jit.py keeps the PTX, which the device compiles."""

import os
import sys
from pathlib import Path

from cache import CUDA
from suite import Case, Skip, Suite

PROGRAM = Path(__file__).resolve().parent / "jit.py"
# NVRTC and nvJitLink, if that release has it and it gives PTX.
COMPILERS = {
    "11.8": (("nvidia-cuda-nvrtc-cu11", "11.8.89"), None),
    "12.4": (("nvidia-cuda-nvrtc-cu12", "12.4.127"), None),
    "12.8": (("nvidia-cuda-nvrtc-cu12", "12.8.93"), ("nvidia-nvjitlink-cu12", "12.8.93")),
    "13.0": (("nvidia-cuda-nvrtc", "13.0.88"), ("nvidia-nvjitlink", "13.0.88")),
}
BINDINGS = {"12.8": "12.9.10", "13.0": "13.0.3"}
CORE = "1.2.2"
OTHERS = (("cuda-pathfinder", "1.9.0"), ("numpy", "2.2.6"))
SUBJECTS = ("events", "graph", "link", "memory", "program")


class Jit(Suite):
    name = "jit"
    title = "PTX of NVRTC, nvJitLink, cuda-bindings and cuda-core"
    in_all = True
    seconds = 120

    def versions(self):
        names = [f"{package} {release}" for pair in COMPILERS.values()
                 for package, release in filter(None, pair)]
        names += [f"cuda-bindings {release}" for release in BINDINGS.values()]
        return f"{self.title}; {', '.join(names)}, cuda-core {CORE}"

    def library(self, package, pattern):
        found = sorted(path for path in self.cache.wheel(*package).rglob(pattern)
                       if "builtins" not in path.name and ".alt." not in path.name)
        if not found:
            raise Skip(f"{package[0]} {package[1]} of PyPI has no {pattern}")
        return found[0]

    def cases(self):
        for version, (nvrtc, nvjitlink) in COMPILERS.items():
            compiler = self.library(nvrtc, "libnvrtc.so.*")
            yield self.case(f"{version}/nvrtc", ["nvrtc", compiler], [compiler])
            yield self.case(f"{version}/relocatable", ["relocatable", compiler], [compiler])
            if not nvjitlink:
                continue
            linker = self.library(nvjitlink, "libnvJitLink.so.*")
            libraries = [compiler, linker]
            yield self.case(f"{version}/nvjitlink", ["link", compiler, linker], libraries)
            if version in BINDINGS:
                yield from self.python_cases(version, libraries)
        yield from self.toolkit_cases()

    def toolkit_cases(self):
        """The libraries of the toolkit, if it is installed."""
        compiler, linker = (next(iter((CUDA / "lib64").glob(f"{name}.so.1?")), None)
                            for name in ("libnvrtc", "libnvJitLink"))
        skip = None if compiler and linker else "there is no CUDA toolkit (CUDA_HOME)"
        yield self.case("toolkit/nvrtc", ["nvrtc", compiler], [compiler], skip=skip)
        yield self.case("toolkit/relocatable", ["relocatable", compiler], [compiler], skip=skip)
        yield self.case("toolkit/nvjitlink", ["link", compiler, linker], [compiler, linker],
                        skip=skip)

    def python_cases(self, version, libraries):
        packages = [("cuda-bindings", BINDINGS[version]), ("cuda-core", CORE), *OTHERS]
        path = os.pathsep.join(str(self.cache.wheel(*package)) for package in packages)
        yield self.case(f"{version}/bindings", ["bindings"], libraries, PYTHONPATH=path)
        for subject in SUBJECTS:
            yield self.case(f"{version}/core-{subject}", ["core", subject], libraries,
                            PYTHONPATH=path)

    @staticmethod
    def case(name, words, libraries, skip=None, **variables):
        return Case(name, [sys.executable, PROGRAM, *words], skip=skip,
                    libraries=[library.parent for library in libraries if library],
                    variables={"PYTHONDONTWRITEBYTECODE": "1", **variables})
