# SPDX-License-Identifier: Apache-2.0
"""CUDA programs compiled by Debian's clang instead of nvcc: the programs of tests/e2e/nvcc
and, if its source exists, of LLVM's test suite (External/CUDA)."""

from pathlib import Path

import tool
from cache import CUDA, cuda_tool
from suite import Case, Suite, build, judge_status

CLANG = "19"
ARCHITECTURE = "80"
# clang uses options of fatbinary that CUDA 13 has removed.
FATBINARY = f"""#!/bin/sh
for word; do
	shift
	case $word in
	--image=profile=sm_*) word=--image3=kind=elf,sm=${{word#*=sm_}} ;;
	--image=profile=compute_*) word=--image3=kind=ptx,sm=${{word#*=compute_}} ;;
	esac
	set -- "$@" "$word"
done
exec {CUDA}/bin/fatbinary "$@"
"""
# In tests/e2e/nvcc: parts of other programs, and programs that clang cannot compile.
OWN = ("calls", "fault", "graphs", "grid", "heap", "histogram", "matrixmul", "printing",
       "properties", "reduction", "streams", "threads", "vectoradd", "callbacks", "managed",
       "half")


class Clang(Suite):
    name = "clang"
    title = "CUDA programs compiled by clang"
    in_all = True
    seconds = 300

    def versions(self):
        return f"{self.title}; {self.cache.version_of(f'clang-{CLANG}')}"

    def toolkit(self):
        """A CUDA toolkit with the layout that clang expects, which newer toolkits have changed."""
        cuda_tool("ptxas")
        place = self.folder("toolkit")
        (place / "bin").mkdir(exist_ok=True)
        for name in ("include", "nvvm", "lib64", "bin/ptxas"):
            if not (place / name).is_symlink():
                (place / name).symlink_to(CUDA / name)
        fatbinary = place / "bin/fatbinary"
        fatbinary.write_text(FATBINARY, encoding="utf-8")
        fatbinary.chmod(0o755)
        # The header of texture references, which CUDA 13 lacks and clang always includes.
        (self.folder("include") / "texture_fetch_functions.h").touch()
        return place

    def cases(self):
        toolkit = self.toolkit()
        self.cache.packages(f"clang-{CLANG}")
        clang = self.cache.find(f"usr/lib/llvm-{CLANG}/bin/clang++")
        libraries = [*self.cache.library_folders(), clang.parent.parent / "lib"]
        command = ["env", f"LD_LIBRARY_PATH={':'.join(map(str, libraries))}", clang,
                   "-O2", f"-I{self.folder('include')}",
                   f"-I{CUDA}/include/cccl", f"--cuda-path={toolkit}",
                   "-Wno-unknown-cuda-version", f"--cuda-gpu-arch=sm_{ARCHITECTURE}"]
        return [*self.own_cases(command), *self.llvm_cases(command)]

    def case(self, name, command, file, judge=judge_status):
        folder = self.folder("built", name)
        words = [*command, "-x", "cuda", file, "-o", "program", f"-L{CUDA}/lib64",
                 "-lcudart_static", "-ldl", "-lrt", "-pthread"]
        return Case(name, [folder / "program"], folder, judge=judge,
                    build=lambda: build(words, folder, folder / "program"))

    def own_cases(self, command):
        tests = Path(tool.TOP) / "tests/e2e/nvcc"
        return [self.case(f"own/{name}", [*command, "-std=c++17"], tests / f"{name}.cu")
                for name in OWN]

    def llvm_cases(self, command):
        if not self.source:
            print("skip: clang: llvm/*: the source of LLVM's test suite is missing "
                  "(--source clang=FOLDER)", flush=True)
            return
        tests = self.source / "External/CUDA"
        for file in sorted(tests.glob("*.cu")):
            reference = file.with_suffix(".reference_output")

            def judge(status, output, reference=reference):
                wanted = reference.read_text(encoding="utf-8") if reference.exists() else ""
                said, _, _ = wanted.partition("exit ")
                if not status and said.strip() not in output:
                    return "its output is not the reference's"
                return judge_status(status, output)

            yield self.case(f"llvm/{file.stem}", [*command, "-std=c++14"], file, judge)
