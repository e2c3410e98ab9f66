# SPDX-License-Identifier: Apache-2.0
"""Looks at how the library was linked: check-linking.py LIBRARY ARCHIVE...

The archives are those it is made of: of their objects only generated ones export.
"""

import re
import subprocess
import sys


def output(*command):
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          env=environment).stdout


def exports_by_hand(archives):
    """Yields a sentence for each symbol that a hand-written object exports."""
    n_generated, member = 0, ""
    for line in output("readelf", "-sW", *archives).splitlines():
        if line.startswith("File: "):
            member = line
        elif re.search(r" GLOBAL +DEFAULT +[0-9]", line):
            if "g-entries-" in member:
                n_generated += 1
            else:
                yield f"{line.split()[-1]} is exported by hand-written code ({member})"
    if not n_generated:
        yield "no object exports anything"


def main():
    library = sys.argv[1]
    faults = list(exports_by_hand(sys.argv[2:]))
    dynamic = output("readelf", "-dW", library)
    if "[libcuda.so.1]" not in dynamic:
        faults.append("the soname is not libcuda.so.1")
    for flag in ("SYMBOLIC", "NOW", "NODELETE"):
        if flag not in dynamic:
            faults.append(f"the flag {flag} is missing")
    if "GNU_RELRO" not in output("readelf", "-lW", library):
        faults.append("relocations stay writable")
    # Of glibc: libpthread and libdl are files of their own in guests before 2.34.
    allowed = ("libc.so", "ld-linux", "libm.so", "libpthread.so", "libdl.so", "libasan",
               "libubsan", "libtsan")
    for line in dynamic.splitlines():
        if "(NEEDED)" in line and not any(name in line for name in allowed):
            faults.append("needs " + line.split("[")[1].rstrip("]"))
    notes = output("readelf", "-nW", library)
    if "vGPU" not in notes:
        faults.append("the note of owner vGPU is missing")

    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
