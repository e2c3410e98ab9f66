# SPDX-License-Identifier: Apache-2.0
"""GCC's own tests of offloading by OpenMP and OpenACC, in C and Fortran.

They are in Debian's gcc-12-source, and use DejaGnu; of the variants of a test in its .exp
files (option sets, the host as an OpenACC device) only one is run, -O2 and the nvptx
device, and of the OpenMP tests only tests that offload.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from cache import CUDA, tool_of
from dejagnu import Target, Test, Unknown
from suite import Case, Skip, Suite, build

TREES = ("libgomp.c", "libgomp.c-c++-common", "libgomp.fortran", "libgomp.oacc-c",
         "libgomp.oacc-c-c++-common", "libgomp.oacc-fortran")
# Some tests include one of the compiler's.
MEMBERS = ["*/libgomp/testsuite", "*/libgomp/*.h", "*/include/*.h",
           "*/gcc/testsuite/c-c++-common/goacc", "*/gcc/testsuite/gfortran.dg/goacc"]
SUFFIXES = (".c", ".f", ".F", ".f90", ".F90", ".f95", ".f03", ".f08")
OFFLOADS = re.compile(r"\bomp\s+(?:[a-z]+\s+)*target\b|\bomp_target_|"
                      r"\bomp_is_initial_device\b")
# nvptx-as runs ptxas for an architecture that newer toolkits do not support.
OFFLOAD = ["-foffload=nvptx-none", "-foffload-options=-Wa,--no-verify"]


def cpu_has(flag):
    return re.search(rf"^flags\s*:.*\b{flag}\b", Path("/proc/cpuinfo").read_text(), re.M) \
        is not None


def properties(is_acc, is_optimized):
    """The values of GCC's effective-target keywords."""
    has_cuda = (CUDA / "include/cuda.h").exists()
    return {
        "openacc_nvidia_accel_selected": is_acc, "openacc_host_selected": False,
        "openacc_radeon_accel_selected": False, "openacc_nvidia_accel_present": True,
        "offload_device": True, "offload_device_nonshared_as": True,
        "offload_device_shared_as": False, "offload_device_nvptx": True,
        "offload_device_intel_mic": False, "offload_device_any_intel_mic": False,
        "offload_target_nvptx": True, "offload_target_amdgcn": False,
        "offloading_enabled": True, "run_expensive_tests": False,
        "openacc_cuda": has_cuda, "openacc_cudart": has_cuda,
        "openacc_cublas": (CUDA / "include/cublas_v2.h").exists(),
        "lp64": True, "ia32": False, "ilp32": False, "size32plus": True, "int128": True,
        "tls_runtime": True, "sync_int_long": True, "sync_char_short": True, "lto": True,
        "alloca": True, "fopenmp": True, "c": True, "c++": False, "c99_runtime": True,
        "vect_simd_clones": True, "sse2_runtime": True, "avx_runtime": cpu_has("avx"),
        "fortran_real_16": True, "large_long_double": True, "weak_undefined": True,
        "__float128": True, "__OPTIMIZE__": is_optimized, "skip-all-targets": False,
        "this-really-should-fail": False,
    }


class Libgomp(Suite):
    name = "libgomp"
    title = "GCC's OpenMP and OpenACC offloading tests, C and Fortran"
    in_all = True
    seconds = 60

    def versions(self):
        done = subprocess.run([tool_of("gcc-12"), "--version"], text=True, check=True,
                              stdout=subprocess.PIPE)
        return f"{self.title}; {done.stdout.splitlines()[0]}"

    def testsuite(self):
        """The folder of the tests, unpacked from the package once."""
        place = self.folder("source")
        done = place / "unpacked"
        if not done.exists() or done.read_text(encoding="utf-8") != repr(MEMBERS):
            packed = self.cache.one_package("gcc-12-source") / "usr/src/gcc-12"
            tarball = next(packed.glob("gcc-*.tar.*"), None)
            if not tarball:
                raise Skip("gcc-12-source has no tarball")
            subprocess.run(["tar", "-C", place, "-xf", tarball, "--strip-components=1",
                            "--wildcards", *MEMBERS], check=True)
            done.write_text(repr(MEMBERS), encoding="utf-8")
        return place / "libgomp/testsuite"

    def cases(self):
        for package, program in (("gcc-12", "gcc-12"), ("gfortran-12", "gfortran-12")):
            if not shutil.which(program):
                raise Skip(f"{package} is not installed")
        if not list(Path("/usr/lib/gcc/x86_64-linux-gnu/12").glob("libgomp-plugin-nvptx*")) and \
                not Path("/usr/lib/x86_64-linux-gnu/libgomp-plugin-nvptx.so.1").exists():
            raise Skip("libgomp-plugin-nvptx1 is not installed")
        if not shutil.which("x86_64-linux-gnu-accel-nvptx-none-gcc-12"):
            raise Skip("gcc-12-offload-nvptx is not installed")
        top = self.testsuite()
        return [case for tree in TREES for file in sorted((top / tree).iterdir())
                if file.suffix in SUFFIXES for case in self.case(top, file)]

    def case(self, top, file):
        """The case of one source; empty unless it is a test that runs."""
        text = file.read_text(encoding="utf-8", errors="replace")
        is_acc = ".oacc-" in file.parent.name
        if not is_acc and not OFFLOADS.search(text):
            return []
        name = f"{file.parent.name.removeprefix('libgomp.')}/{file.name}"
        flags = ["-O2"]
        if is_acc:
            flags += ["-DACC_DEVICE_TYPE_nvidia=1", "-DACC_MEM_SHARED=0"]
        target = Target(properties(is_acc, True), [*flags, "-foffload=nvptx-none"])
        try:
            test = Test(text, target, [])
        except Unknown as unknown:
            return [Case(name, [], skip=str(unknown))]
        if test.action != "run":
            return []
        if not re.search(r"dg-do\s+run|int\s+main|^\s*(end\s+)?program\b|\bmain\s*\(",
                         text, re.M | re.I):
            return []  # a part of another test
        folder = self.folder("built", name)
        command, libraries = self.command(top, file, test, is_acc, flags)
        variables = dict({"ACC_DEVICE_TYPE": "nvidia"} if is_acc else {}, **test.variables)
        return [Case(
            name, [folder / "program"], folder, skip=test.skip, judge=test.judge,
            variables=variables, libraries=libraries, seconds=test.seconds and 60,
            may_fail=test.may_fail, on_terminal=True,  # as DejaGnu has it
            build=lambda: self.build(command, folder, top))]

    def command(self, top, file, test, is_acc, flags):
        """How it is compiled, and the library folders that it needs to run."""
        is_fortran = file.suffix != ".c"
        words = ["gfortran-12" if is_fortran else "gcc-12", *OFFLOAD,
                 "-fopenacc" if is_acc else "-fopenmp", *flags, f"-I{top}/../../include",
                 f"-I{top}/..", f"-I{top}/libgomp.oacc-c-c++-common"]
        libraries = []
        if is_fortran:
            words += ["-foffload-options=-lgfortran -lm"]
        if re.search(r"-l(cuda|cublas|cudart)\b", " ".join(test.options)):
            words += [f"-I{CUDA}/include", f"-L{CUDA}/lib64", f"-L{CUDA}/lib64/stubs"]
            libraries = [CUDA / "lib64"]
        sources = [file, *(file.parent / name for name in test.sources)]
        return [*words, *sources, "-o", "program", *test.options, "-lm"], libraries

    @staticmethod
    def build(command, folder, top):
        # A library that one of the tests loads by this name.
        subr = top / "libgomp.oacc-c-c++-common/subr.ptx"
        if subr.exists() and not os.path.lexists(folder / "subr.ptx"):
            shutil.copy(subr, folder)
        build(command, folder, folder / "program")
