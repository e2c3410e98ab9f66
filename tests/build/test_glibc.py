#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What guests use needs no newer C library than README.md promises.

    test_glibc.py SOURCE FILE...

The functions of each file and their versions are read by objdump.
"""

import re
import subprocess
import sys
from pathlib import Path


def number(version):
    return tuple(map(int, version.split(".")))


def promised(source):
    row = re.search(r"^\| guest \| .*\bglibc (\d+\.\d+) or later", source, re.M)
    assert row, "README.md promises no version of glibc"
    return row[1]


def needed(path):
    """Pairs of a function and its version."""
    text = subprocess.run(["objdump", "-T", path], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return [(name, version) for version, name in
            re.findall(r"\*UND\*.*\bGLIBC_([\d.]+)\)? +(\S+)$", text, re.M)]


def main():
    limit = promised((Path(sys.argv[1]) / "README.md").read_text(encoding="utf-8"))
    wrong = []
    for path in map(Path, sys.argv[2:]):
        functions = needed(path)
        assert len(functions) > 10, f"{path}: only {functions} are of glibc"
        wrong += [f"{path.name}: {name} needs glibc {version}, README.md says {limit}: see "
                  "guest-shim/glibc/glibc.c"
                  for name, version in functions if number(version) > number(limit)]
    print("\n".join(wrong) or f"{len(sys.argv) - 2} files")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
