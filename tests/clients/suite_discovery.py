# SPDX-License-Identifier: Apache-2.0
"""How programs find a GPU before they compute: discovery.py makes the look-ups and the calls
of programs that cannot be run here, and drives PyTorch's and CuPy's own."""

import os
import subprocess
import sys
from pathlib import Path

from suite import Case, Skip, Suite
from vgpud import product

PROGRAM = Path(__file__).resolve().parent / "discovery.py"
NUMPY = ("numpy", "2.2.6")
NVML = ("nvidia-ml-py", "13.580.126")
RUNTIME = ("nvidia-cuda-runtime", "13.0.96")
OLD_RUNTIME = ("nvidia-cuda-runtime-cu11", "11.8.89")
TORCH = ("torch", "2.11.0")
# What it needs to be imported, and the libraries that it is linked to.
TORCH_PACKAGES = (("typing-extensions", "4.16.0"), ("sympy", "1.14.0"), ("mpmath", "1.3.0"),
                  ("networkx", "3.6.1"), ("jinja2", "3.1.6"), ("markupsafe", "3.0.4"),
                  ("fsspec", "2026.9.0"), ("filelock", "4.3.1"), NUMPY, NVML)
TORCH_LIBRARIES = (("nvidia-cublas", "13.1.0.3"), ("nvidia-cusparse", "12.6.3.3"),
                   ("nvidia-cusolver", "12.0.4.66"), ("nvidia-curand", "10.4.0.35"),
                   ("nvidia-cudnn-cu13", "9.19.0.56"), ("nvidia-nccl-cu13", "2.28.9"),
                   ("nvidia-nvjitlink", "13.0.88"), ("nvidia-cuda-nvrtc", "13.0.88"), RUNTIME,
                   ("nvidia-cufft", "12.0.0.61"), ("nvidia-cufile", "1.15.1.6"),
                   ("nvidia-cuda-cupti", "13.0.85"), ("nvidia-nvtx", "13.0.85"),
                   ("nvidia-cusparselt-cu13", "0.8.0"), ("nvidia-nvshmem-cu13", "3.4.5"))
CUPY = ("cupy-cuda13x", "14.2.0")
CUPY_PACKAGES = (("cuda-pathfinder", "1.9.0"), NUMPY)
EXPORTER = (("nvitop-exporter", "1.6.2"), ("nvitop", "1.7.2"), ("prometheus-client", "0.26.0"),
            ("psutil", "7.2.2"), NVML)

# Runs a command without the environment, but for the socket, which takes the place of a
# virtual machine's device; the libraries are where ldconfig knows them.
CLEARED = """
printf 'include /etc/ld.so.conf\\n%s\\n' "${LD_LIBRARY_PATH%%:*}" >conf
/sbin/ldconfig -X -f conf -C cache
exec unshare --map-root-user --mount sh -ec '
mount --bind cache /etc/ld.so.cache
exec env -i VGPU_SOCKET="$VGPU_SOCKET" "$@"' sh "$@"
"""


class Discovery(Suite):
    name = "discovery"
    title = "how programs find a GPU"
    in_all = True

    def versions(self):
        packages = (TORCH, CUPY, NVML, EXPORTER[0])
        names = [" ".join(package) for package in packages]
        return ", ".join([f"{self.title}; {self.cache.version_of('hwloc-nox')}", *names])

    def cases(self):
        yield self.case("ollama")
        yield self.case("ollama-older")
        yield self.cleared()
        yield self.case("llama", libraries=[RUNTIME])
        yield self.case("exporter-nvml")
        yield self.case("exporter-smi", PATH=f"{self.smi()}{os.pathsep}{os.environ['PATH']}")
        yield self.case("exporter-nvitop", EXPORTER)
        torch = [(TORCH, *TORCH_PACKAGES), TORCH_LIBRARIES]
        yield self.case("torch", *torch)
        yield self.case("torch-nvml", *torch, PYTORCH_NVML_BASED_CUDA_CHECK="1")
        yield self.case("torch-details", *torch)
        yield self.hwloc()
        yield self.nvtop()
        yield self.case("cupy", (CUPY, *CUPY_PACKAGES), [RUNTIME])

    def hwloc(self):
        """lstopo with the plugins that need CUDA and NVML; they are linked to CUDA 11."""
        folders, skip, variables = [], None, {}
        try:
            self.cache.packages("hwloc-nox")
            self.cache.contrib_package("libhwloc-contrib-plugins")
            plugins = self.cache.find("usr/lib/x86_64-linux-gnu/hwloc")
            folders = [*self.cache.library_folders(), *self.library_folders(OLD_RUNTIME)]
            variables = {"HWLOC_PLUGINS_PATH": str(plugins),
                         "LSTOPO": str(self.cache.find("usr/bin/lstopo-no-graphics"))}
        except Skip as reason:
            skip = str(reason)
        return Case("hwloc", [sys.executable, PROGRAM, "hwloc"], libraries=folders,
                    variables=variables, skip=skip)

    def nvtop(self):
        skip, program = None, None
        try:
            program = self.cache.contrib_package("nvtop") / "usr/bin/nvtop"
        except Skip as reason:
            skip = str(reason)
        return Case("nvtop", [sys.executable, PROGRAM, "nvtop"], skip=skip,
                    variables={"NVTOP": str(program), "TERM": "xterm", "LC_ALL": "C.UTF-8"})

    def smi(self):
        """A folder with vgpu-smi under the name that programs look for."""
        place = self.folder("bin")
        link = place / "nvidia-smi"
        link.unlink(missing_ok=True)
        link.symlink_to(product("vgpu-smi"))
        return place

    @staticmethod
    def cleared():
        tried = subprocess.run(["unshare", "--map-root-user", "--mount", "true"], check=False,
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return Case("ollama-cleared", ["sh", "-ec", CLEARED, "sh", sys.executable, PROGRAM,
                                       "ollama"],
                    skip=f"unshare: {tried.returncode}" if tried.returncode else None)

    def library_folders(self, *packages):
        return sorted({library.parent for package in packages
                       for library in self.cache.wheel(*package).rglob("lib*.so.*")})

    def case(self, subject, packages=(), libraries=(), **variables):
        """Packages are imported, and libraries of packages loaded."""
        variables["PYTHONDONTWRITEBYTECODE"] = "1"
        folders, skip = [], None
        try:
            variables["PYTHONPATH"] = os.pathsep.join(
                str(self.cache.wheel(*package)) for package in packages)
            folders = self.library_folders(*libraries)
        except Skip as reason:
            skip = str(reason)
        return Case(subject, [sys.executable, PROGRAM, subject], libraries=folders,
                    variables=variables, skip=skip)
