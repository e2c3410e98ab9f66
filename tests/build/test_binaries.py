#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hardening of the installed files, according to readelf.

    test_binaries.py SOURCE BUILD optimised|plain FILE...

Full RELRO; a stack protector, and no executable stack; position-independent programs; in an
optimised build the fortified functions of the C library. No file has a path of the source
or build folder, so that a build in another folder makes the same bytes.
"""

import os
import re
import subprocess
import sys
from pathlib import Path


def readelf(path):
    return subprocess.run(["readelf", "--wide", "-h", "-l", "-d", "--dyn-syms", "-n", path],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def check(path, text, optimised):
    """Yields a sentence for each thing that is missing."""
    is_program = not re.search(r"\.so(\.|$)", path.name)
    if not re.search(r"^ *GNU_RELRO ", text, re.M):
        yield "no GNU_RELRO"
    if not re.search(r"\(FLAGS_1\) .*\bNOW\b", text):
        yield "no BIND_NOW"
    if not re.search(r"^ *GNU_STACK .* RW ", text, re.M):
        yield "an executable stack"
    if "__stack_chk_fail" not in text:
        yield "no stack protector"
    if not re.search(r"^ *Type: +DYN ", text, re.M) or \
            is_program != bool(re.search(r"\(FLAGS_1\) .*\bPIE\b", text)):
        yield "not position independent as a program or a library is"
    if optimised and not re.search(r"\b__\w+_chk(@|$)", text, re.M):
        yield "no _FORTIFY_SOURCE"
    if "Build ID:" not in text:
        yield "no build-id"
    if re.search(r"\((RPATH|RUNPATH)\)", text):
        yield "a path to libraries"


def folders(source, build):
    """All paths that a compiler that runs in the build folder could write into a file."""
    return {str(source), str(build), str(source.resolve()), str(build.resolve()),
            os.path.join(os.path.relpath(source, build), "host-daemon"),
            os.path.join(os.path.relpath(source, build), "guest-shim"),
            os.path.join(os.path.relpath(source, build), "protocol")}


def main():
    source, build, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    wrong = []
    for path in map(Path, sys.argv[4:]):
        found = list(check(path, readelf(path), how == "optimised"))
        data = path.read_bytes()
        found += [f"names {name}" for name in folders(source, build)
                  if name.encode() + b"/" in data]
        wrong += [f"{path.name}: {what}" for what in found]
    print("\n".join(wrong) or f"{len(sys.argv) - 4} files")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
