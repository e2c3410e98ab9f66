# SPDX-License-Identifier: Apache-2.0
"""Versions of NVIDIA's runtime library, each as PyPI has it, driven by the program cudart.py;
a case is one of its subjects with one version. `mixed` has all of them in one process. Where
a package has the static library too, it is linked into a shared one, as it is."""

import re
import subprocess
import sys
from pathlib import Path

from cache import tool_of
from suite import Case, Skip, Suite, build

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
# Versions with a static library.
STATIC = ("12.9", "13.0", "13.2", "13.5")
# Functions of the static library are hidden outside of what it is linked into.
FINDER = """#include <string.h>
{declared}
static const struct {{ const char *name; const void *address; }} all[] = {{
{listed}
}};
const void *find_function(const char *name)
{{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, name))
			return all[i].address;
	return NULL;
}}
"""
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

    def build_static(self, version):
        folder = self.folder("static", version)
        archive = next(self.cache.wheel(*PACKAGES[version]).rglob("libcudart_static.a"), None)
        if not archive:
            raise Skip(f"{PACKAGES[version]} of PyPI has no libcudart_static.a")
        listed = subprocess.run([tool_of("nm"), "--defined-only", archive], text=True,
                                check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        names = sorted(set(re.findall(r"^\w+ T ((?:cuda|__cuda)[A-Z]\w*)$", listed.stdout,
                                      re.M)))
        source = folder / "find.c"
        source.write_text(FINDER.format(
            declared="\n".join(f"extern char {name}[];" for name in names),
            listed="\n".join(f'{{ "{name}", {name} }},' for name in names)), encoding="utf-8")
        build([tool_of("gcc"), "-w", "-shared", "-fPIC", source, "-o", "libstatic.so", archive,
               "-ldl", "-lpthread", "-lrt"], folder, folder / "libstatic.so")

    def cases(self):
        libraries = {version: self.library(version) for version in PACKAGES}
        libraries.update({f"static-{version}": self.folder("static", version) / "libstatic.so"
                          for version in STATIC})

        def case(name, subject, *wanted, build=None, **variables):
            words = [libraries[version] for version in wanted]
            return Case(name, [sys.executable, PROGRAM, subject, *words], build=build,
                        variables={"PYTHONDONTWRITEBYTECODE": "1", **variables})

        for version in PACKAGES:
            for subject in SUBJECTS:
                yield case(f"{version}/{subject}", subject, version)
            for subject in EAGER:
                yield case(f"{version}/{subject}-eager", subject, version,
                           CUDA_MODULE_LOADING="EAGER")
        for version in STATIC:
            for subject in SUBJECTS:
                yield case(f"static-{version}/{subject}", subject, f"static-{version}",
                           build=lambda version=version: self.build_static(version))
        yield case("mixed", "mixed", *PACKAGES)
        # A program's own copy and that of a library.
        yield case("mixed-static", "mixed", "static-12.9", "13.0", "static-13.5",
                   build=lambda: [self.build_static(version) for version in STATIC])
