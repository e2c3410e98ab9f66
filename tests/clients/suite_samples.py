# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's public cuda-samples; their source is an option (--source samples=FOLDER).

Each sample is copied into the cache and built there by nvcc for PTX alone, from the sources,
libraries and kernel files in its CMakeLists.txt, and run with the arguments in the samples'
test_args.json.
"""

import json
import re
import shutil

from cache import CUDA, cuda_tool
from suite import Case, Skip, Suite, build, judge_status

ARCHITECTURE = "80"
# Packages in CMakeLists.txt for graphics or for other systems.
GRAPHICAL = ("OpenGL", "GLUT", "EGL", "Vulkan", "X11", "FreeImage", "NVSCI", "MPI")
# Data that is missing in copies of the source without its large files.
DATA = {"dwtHaar1D": "data/signal.dat", "randomFog": "data/ref_randomFog.bin"}
# Dependencies of libraries, as in CMake's FindCUDAToolkit.
REFERRED = {"cusolver": ("cublas", "cusparse")}
NVVM = "7_libNVVM"
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
            raise Skip("the source of cuda-samples is missing (--source samples=FOLDER)")
        if not (self.source / "Common/helper_cuda.h").exists():
            raise Skip(f"{self.source} is not the source of cuda-samples")
        nvcc = cuda_tool("nvcc")
        file = self.source / "test_args.json"
        told = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        cases = [case for path in sorted(self.source.glob("Samples/[0-6]_*/*/CMakeLists.txt"))
                 for case in self.sample(nvcc, path.parent, told)]
        cases += self.nvvm_samples()
        return cases + [Case(f"{path.parent.name}/{path.name}", [], skip="it is for Tegra alone")
                        for path in sorted(self.source.glob("Samples/8_*/Tegra/*"))
                        if path.is_dir()]

    def nvvm_samples(self):
        """The samples of libNVVM; other folders have only text that ptxgen compiles."""
        for source in sorted((self.source / "Samples" / NVVM).glob("*/")):
            programs = list(source.glob("*.c"))
            name = f"{NVVM}/{source.name}"
            if source.name == "cuda-c-linking":
                yield Case(name, [], skip="its own CMakeLists.txt leaves it out without LLVM")
            for program in programs:
                folder = self.cache.root / "suites/samples/Samples" / NVVM / source.name
                words = ["test.ll"] if program.stem == "ptxgen" else []
                yield Case(name, [folder / program.stem, *words], folder, judge=judge,
                           libraries=[CUDA / "lib64"],
                           build=lambda s=source, f=folder, p=program: self.build_nvvm(s, f, p))

    @staticmethod
    def build_nvvm(source, folder, program):
        header = next((place for place in (CUDA / "nvvm/include", CUDA / "include")
                       if (place / "nvvm.h").exists()), None)
        library = next((place for place in (CUDA / "nvvm/lib64", CUDA / "lib64")
                        if (place / "libnvvm.so").exists()), None)
        if not header or not library:
            raise Skip("the CUDA toolkit here has no libnvvm")
        if not folder.exists():
            shutil.copytree(source, folder)
        build(["gcc", "-w", f"-I{header}", f"-I{CUDA}/include",
               f'-DLIBCUDADEVRT="{CUDA}/lib64/libcudadevrt.a"',
               f"-DLIBNVVM_HOME={CUDA}/nvvm", "-DLIBDEVICE_MAJOR_VERSION=1",
               "-DLIBDEVICE_MINOR_VERSION=0", program.name, "-o", program.stem,
               f"-L{library}", f"-L{CUDA}/lib64/stubs", f"-Wl,-rpath,{library}", "-lnvvm",
               "-lcuda", "-lm"], folder, folder / program.stem)

    def sample(self, nvcc, source, told):
        """The cases of one sample: one for each run."""
        make = (source / "CMakeLists.txt").read_text(encoding="utf-8")
        make = re.sub(r"^\s*#.*$", "", make, flags=re.M)
        name = source.name
        told = told.get(name, {})
        folder = self.cache.root / "suites/samples/Samples" / source.parent.name / name
        found = re.search(r"add_executable\(\s*(\S+)\s+([^)]*)\)", make)
        skip = self.reason_to_skip(make, told, found)
        if name in DATA and not (source / DATA[name]).exists():
            skip = f"the source has no {DATA[name]}"
        program = folder / (found[1] if found else name)
        # Some find their data from the path of the program, some from the current folder.
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
        if found and ("WIN32" in found[2].split() or "Windows-only" in make):
            return "it is for Windows alone"
        needed = NEEDS.search(make)
        if needed and "find_package(" + needed[1] in make and needed[1] != "MPI":
            return f"it needs {needed[1]}"
        if needed:
            return "it needs MPI"
        return None if found else "its CMakeLists.txt makes no program"

    def build(self, nvcc, source, folder, program, make, sources):
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            # A sample finds shared files of Common beside a copy of its data.
            shutil.copytree(source, folder)
        common = self.cache.root / "suites/samples/Common"
        if not common.exists():
            common.symlink_to(self.source / "Common")
        if "cooperative_groups" in make:
            self.add_headers(folder)
        target = ["-gencode", f"arch=compute_{ARCHITECTURE},code=compute_{ARCHITECTURE}"]
        flags = ["-std=c++17", "-O2", "-w", "--extended-lambda", f"-I{self.source}/Common",
                 f"-I{CUDA}/include", f"-I{folder}", *self.folders(folder, make)]
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
    def folders(folder, make):
        """The include folders of the sample."""
        named = re.findall(r"target_include_directories\(\s*\S+\s+\w+([^)]*)\)", make)
        words = [word for text in named for word in text.split() if "$" not in word]
        return [f"-I{folder / word}" for word in words if (folder / word).is_dir()]

    @staticmethod
    def add_headers(folder):
        """The files that a sample compiles at run time."""
        include = CUDA / "include"
        wanted = [*include.glob("cooperative_groups*"),
                  *(path for path in (include / "cccl/nv", include / "cccl/cuda")
                    if path.exists())]
        for path in wanted:
            if not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)

    @staticmethod
    def libraries(make):
        words = []
        named = set(re.findall(r"CUDA::(\w+)", make)) | {"cuda_driver"}
        named |= {other for name in named for other in REFERRED.get(name, ())}
        for name in sorted(named):
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
