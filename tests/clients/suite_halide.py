# SPDX-License-Identifier: Apache-2.0
"""Halide's correctness tests that schedule something on a GPU, against Debian's libHalide.

Their source is Debian's source package; Halide compiles the pipelines to PTX by its own
LLVM when the test runs.
"""

import re
import subprocess

from cache import tool_of
from suite import Broken, Case, Skip, Suite, build, judge_status

ON_GPU = re.compile(r"\bgpu_(tile|blocks|threads|single_thread|lanes)\b")


class Halide(Suite):
    name = "halide"
    title = "Halide's correctness tests that use a GPU"
    in_all = True
    seconds = 600

    def versions(self):
        return f"{self.title}; {self.cache.version_of('libhalide14-0-dev')}"

    def tests(self):
        place = self.folder("source")
        done = place / "unpacked"
        if not done.exists():
            tarball = self.cache.source_of("halide")
            unpacked = subprocess.run(["tar", "-C", place, "-xf", tarball,
                                       "--strip-components=1", "--wildcards", "*/test/*",
                                       "*/tools/*.h"], check=False)
            if unpacked.returncode:
                raise Skip(f"{tarball} cannot be unpacked")
            done.touch()
        return place

    def cases(self):
        root = self.cache.packages("libhalide14-0-dev")
        include = self.cache.find("usr/include/halide14/Halide.h").parent
        library = self.cache.find("usr/lib/x86_64-linux-gnu/libHalide14.so").parent
        source = self.tests()
        libraries = [*self.cache.library_folders(), root / "usr/lib/llvm-14/lib"]
        compiler = [tool_of("g++"), "-std=c++17", "-O0", "-w", "-pthread"]
        header = self.precompile(compiler, include)
        cases = []
        for file in sorted((source / "test/correctness").glob("*.cpp")):
            if not ON_GPU.search(file.read_text(encoding="utf-8", errors="replace")):
                continue
            folder = self.folder("built", file.stem)
            command = [*compiler, f"-I{header}", f"-I{include}",
                       f"-I{source}/test/common", f"-I{source}/tools", file, "-o", "program",
                       f"-L{library}", "-lHalide14", "-ldl", "-rdynamic",
                       *(f"-Wl,-rpath-link,{place}" for place in libraries)]
            cases.append(Case(
                file.stem, [folder / "program"], folder, libraries=[library, *libraries],
                variables={"HL_JIT_TARGET": "host-cuda", "HL_TARGET": "host-cuda"},
                judge=judge,
                build=lambda command=command, folder=folder:
                build(command, folder, folder / "program")))
        return cases

    def precompile(self, compiler, include):
        """The folder of the large header, precompiled: parsing it takes most of the time."""
        folder = self.folder("header")
        compiled = folder / "Halide.h.gch"
        # A test that includes another header first cannot use it, and gets the text.
        if not (folder / "Halide.h").is_symlink():
            (folder / "Halide.h").symlink_to(include / "Halide.h")
        try:
            build([*compiler, "-x", "c++-header", include / "Halide.h", "-o", compiled],
                  folder, compiled)
        except Broken as broken:
            raise Skip(f"Halide.h: {broken}") from None
        return folder


def judge(status, output):
    skipped = re.search(r"^\[SKIP\] (.*)", output, re.M)
    if skipped and not status:
        raise Skip(f"the test: {skipped[1]}")
    if not status and "Success!" not in output:
        return "it does not say Success!"
    return judge_status(status, output)
