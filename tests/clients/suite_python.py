# SPDX-License-Identifier: Apache-2.0
"""Python packages that compile kernels at run time, with the switches by which they keep
PTX: "Machine code only" in docs/softgpu.md has the table."""

import os
import sys
from pathlib import Path

from cache import CUDA
from suite import Case, Skip, Suite
from vgpud import product

FOLDER = Path(__file__).resolve().parent
NUMPY = ("numpy", "2.2.6")
TRITON = ("triton", "3.9.0")
TRITON_PROGRAMS = ("vectors", "softmax", "matrices", "norm", "norm-gradient", "dropout")
# The program, its packages, and its switch.
PACKAGES = {
    "cupy": ([("cupy-cuda13x", "14.2.0"), ("cuda-pathfinder", "1.9.0"), NUMPY],
             {"CUPY_COMPILE_WITH_PTX": "1", "CUPY_ACCELERATORS": "",
              "CUPY_CACHE_IN_MEMORY": "1"}),
    "numba": ([("numba-cuda", "0.18.1"), ("numba", "0.60.0"), ("llvmlite", "0.43.0"),
               ("packaging", "25.0"), ("numpy", "2.0.2")],
              {"NUMBA_CUDA_USE_NVIDIA_BINDING": "0"}),
    "warp": ([("warp-lang", "1.10.0"), NUMPY], {}),
}


class Python(Suite):
    name = "python"
    title = "Triton, CuPy, Numba and Warp, told to keep PTX"
    in_all = True
    seconds = 300

    def versions(self):
        names = [" ".join(package) for packages, _ in PACKAGES.values()
                 for package in packages[:1]]
        return f"{self.title}; {', '.join([' '.join(TRITON), *names])}"

    def path(self, packages):
        return os.pathsep.join(str(self.cache.wheel(*package)) for package in packages)

    def cases(self):
        ptxas = str(product("vgpu-ptxas"))
        path = self.path([TRITON, NUMPY])
        for program in TRITON_PROGRAMS:
            yield Case(f"triton/{program}",
                       [sys.executable, FOLDER / "kernels_triton.py", program],
                       variables={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1",
                                  "TRITON_PTXAS_PATH": ptxas,
                                  "TRITON_PTXAS_BLACKWELL_PATH": ptxas,
                                  "TRITON_CACHE_DIR": str(self.folder("triton"))})
        if not (CUDA / "lib64").exists():
            raise Skip("there is no CUDA toolkit (CUDA_HOME), whose NVRTC and NVVM these use")
        for name, (packages, switches) in PACKAGES.items():
            yield Case(name, [sys.executable, FOLDER / "kernels_python.py", name],
                       libraries=[CUDA / "lib64"],
                       variables={"PYTHONPATH": self.path(packages),
                                  "PYTHONDONTWRITEBYTECODE": "1", "CUDA_PATH": str(CUDA),
                                  "CUDA_HOME": str(CUDA), "HOME": str(self.folder("home")),
                                  **switches})
