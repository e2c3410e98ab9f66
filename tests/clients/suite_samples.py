# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's public cuda-samples, whose source has to be given (--source samples=FOLDER).

Each sample is copied into the cache and built there by nvcc for PTX alone, of the sources,
libraries and kernel files that its CMakeLists.txt names; its arguments are those of the
samples' own test_args.json.
"""

import json
import re
import shutil

from cache import CUDA, cuda_tool
from suite import Case, Skip, Suite, build, judge_status

ARCHITECTURE = "80"
# Packages that samples ask CMake for and that are about showing pictures, or other systems.
GRAPHICAL = ("OpenGL", "GLUT", "EGL", "Vulkan", "X11", "FreeImage", "NVSCI", "MPI")
NEEDS = re.compile(rf"find_package\(({'|'.join(GRAPHICAL)})\b(?!.*QUIET)")
EXIT_WAIVED = 2
SAYS_FAILED = re.compile(r"Result = FAIL|[Tt]est failed|\bFAILED\b|Test summary: FAIL|"
                         r"[Rr]esults? (?:are )?incorrect")


class Samples(Suite):
    name = "samples"
    title = "NVIDIA's cuda-samples, built for PTX"
    in_all = True
    seconds = 240

    def cases(self):
        if not self.source:
            raise Skip("the source of cuda-samples is not at hand (--source samples=FOLDER)")
        if not (self.source / "Common/helper_cuda.h").exists():
            raise Skip(f"{self.source} is not the source of cuda-samples")
        nvcc = cuda_tool("nvcc")
        file = self.source / "test_args.json"
        told = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return [case for path in sorted(self.source.glob("Samples/[0-6]_*/*/CMakeLists.txt"))
                for case in self.sample(nvcc, path.parent, told)]

    def sample(self, nvcc, source, told):
        """The cases of one sample: for each of its runs one."""
        make = (source / "CMakeLists.txt").read_text(encoding="utf-8")
        make = re.sub(r"^\s*#.*$", "", make, flags=re.M)
        name = source.name
        told = told.get(name, {})
        folder = self.cache.root / "suites/samples/Samples" / source.parent.name / name
        found = re.search(r"add_executable\(\s*(\S+)\s+([^)]*)\)", make)
        skip = self.reason_to_skip(make, told, found)
        program = folder / (found[1] if found else name)
        # Some look for their data from their own place, some from where they are started.
        runs = told.get("runs") or [told]
        for number, run in enumerate(runs):
            yield Case(
                name if len(runs) == 1 else f"{name}/{number + 1}",
                [program, *run.get("args", [])], folder, skip=skip, judge=judge,
                libraries=[CUDA / "lib64"],
                build=lambda: self.build(nvcc, source, folder, program, make,
                                         found[2].split()))

    @staticmethod
    def reason_to_skip(make, told, found):
        if told.get("skip"):
            return "its test_args.json leaves it out"
        needed = NEEDS.search(make)
        if needed and "find_package(" + needed[1] in make and needed[1] != "MPI":
            return f"it needs {needed[1]}"
        if needed:
            return "it needs MPI"
        return None if found else "its CMakeLists.txt makes no program"

    def build(self, nvcc, source, folder, program, make, sources):
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            # Beside a copy of its own data a sample finds what others keep in Common.
            shutil.copytree(source, folder)
        common = self.cache.root / "suites/samples/Common"
        if not common.exists():
            common.symlink_to(self.source / "Common")
        if "cooperative_groups" in make:
            self.add_headers(folder)
        target = ["-gencode", f"arch=compute_{ARCHITECTURE},code=compute_{ARCHITECTURE}"]
        flags = ["-std=c++17", "-O2", "-w", "--extended-lambda", f"-I{self.source}/Common",
                 f"-I{CUDA}/include", f"-I{folder}"]
        for kernel in re.findall(r"CUDA_KERNEL_SOURCE \"\$\{CMAKE_CURRENT_SOURCE_DIR\}/(\S+)\"",
                                 make):
            fatbins = re.findall(r"set\(CUDA_(?:FATBIN|PTX)_FILE \"[^\"]*/([^/\"]+)\"", make)
            for made in fatbins:
                kind = "-ptx" if made.endswith(".ptx") else "-fatbin"
                shown = [f"-arch=compute_{ARCHITECTURE}"] if kind == "-ptx" else target
                build([nvcc, *flags, *shown, kind, "-o", made, kernel], folder, folder / made)
        if "cudadevrt" in make or source.name.startswith("cdp") or \
                "graphConditional" in source.name:
            flags += ["-rdc=true"]
        build([nvcc, *flags, *target, *sources, "-o", program.name, *self.libraries(make)],
              folder, program)

    @staticmethod
    def add_headers(folder):
        """What a sample that compiles at run time looks for beside itself."""
        for path in (CUDA / "include").glob("cooperative_groups*"):
            if not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)

    @staticmethod
    def libraries(make):
        words = []
        for name in sorted(set(re.findall(r"CUDA::(\w+)", make)) | {"cuda_driver"}):
            name = {"cuda_driver": "cuda", "cudart": "cudart_static"}.get(name, name)
            if name in ("nvrtc_static", "toolkit"):
                continue
            if not any((CUDA / folder / f"lib{name}.{end}").exists() for end in ("so", "a")
                       for folder in ("lib64", "lib64/stubs")):
                raise Skip(f"the CUDA toolkit here has no lib{name}")
            words.append(f"-l{name}")
        if "NVJITLINK_LIB" in make:
            words.append("-lnvJitLink")
        if "OpenMP" in make:
            words += ["-Xcompiler", "-fopenmp"]
        return [f"-L{CUDA}/lib64/stubs", f"-L{CUDA}/lib64", *words, "-ldl", "-lpthread", "-lrt"]


def judge(status, output):
    if status == EXIT_WAIVED:
        said = re.search(r"^.*(?:waiv|not support|requires|need).*$", output, re.M | re.I)
        raise Skip(f"it waives: {said[0].strip() if said else 'without a reason'}")
    failed = SAYS_FAILED.search(output)
    if not status and failed:
        return "it says so"
    return judge_status(status, output)
