#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What guests use needs no newer C library than README.md promises.

    test_glibc.py SOURCE FILE...

The functions of each file and their versions are read by objdump. They have to be of the
library that had them in that version of glibc, whose loader looks no further: functions of
threads and of dlopen() were not in libc.so.6, but for some.
"""

import re
import subprocess
import sys
from pathlib import Path


# Not in libc.so.6 of glibc 2.28, with these exceptions.
ELSEWHERE = r"(__)?pthread_|dl|sem_|shm_|mq_|aio_|lio_|timer_"
OF_LIBC = (r"pthread_(attr_(destroy|init|[gs]et(detachstate|inheritsched|schedparam|schedpolicy"
           r"|scope))|cond_(broadcast|destroy|init|signal|timedwait|wait)"
           r"|condattr_(destroy|init)|equal|exit|[gs]etschedparam|mutex_(destroy|init|lock|unlock)"
           r"|self|setcancel(state|type))|dl_iterate_phdr")


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


def misplaced(path):
    """Functions of libc.so.6 that were elsewhere, by readelf."""
    text = subprocess.run(["readelf", "-W", "-V", "--dyn-syms", path], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    files, file = {}, None
    for line in text.splitlines():
        if found := re.search(r"Version: \d+  File: (\S+)", line):
            file = found[1]
        elif found := re.search(r"Name: GLIBC_\S+ .* Version: (\d+)$", line):
            files[found[1]] = file
    functions = re.findall(r"\bUND (\w+)@GLIBC_\S+ \((\d+)\)$", text, re.M)
    assert len(functions) > 10, f"{path}: only {functions} are of glibc"
    return [name for name, index in functions
            if files[index] == "libc.so.6" and re.match(ELSEWHERE, name)
            and not re.fullmatch(OF_LIBC, name)]


def main():
    limit = promised((Path(sys.argv[1]) / "README.md").read_text(encoding="utf-8"))
    wrong = []
    for path in map(Path, sys.argv[2:]):
        functions = needed(path)
        assert len(functions) > 10, f"{path}: only {functions} are of glibc"
        wrong += [f"{path.name}: {name} needs glibc {version}, README.md says {limit}: see "
                  "guest-shim/glibc/glibc.c"
                  for name, version in functions if number(version) > number(limit)]
        wrong += [f"{path.name}: {name} is to be found in libc.so.6, where it was not: see "
                  "guest-shim/glibc/stand-in.c" for name in misplaced(path)]
    print("\n".join(wrong) or f"{len(sys.argv) - 2} files")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
