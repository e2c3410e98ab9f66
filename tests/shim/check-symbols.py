# SPDX-License-Identifier: Apache-2.0
"""Compares what a library exports with a list, and looks at how it was linked.

	check-symbols.py LIBRARY LIST

After a wanted change: nm -D --defined-only LIBRARY | awk '{print $3}' | sort > LIST
"""

import subprocess
import sys


def output(*command):
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          env=environment).stdout


def main():
    library, path = sys.argv[1:]
    exported = {line.split()[-1] for line in output("nm", "-D", "--defined-only",
                                                    library).splitlines()}
    with open(path, encoding="utf-8") as file:
        expected = set(file.read().split())
    faults = [f"{name} is missing" for name in sorted(expected - exported)]
    faults += [f"{name} is exported" for name in sorted(exported - expected)]

    dynamic = output("readelf", "-dW", library)
    if "[libcuda.so.1]" not in dynamic:
        faults.append("the soname is not libcuda.so.1")
    for flag in ("SYMBOLIC", "NOW", "NODELETE"):
        if flag not in dynamic:
            faults.append(f"the flag {flag} is missing")
    if "GNU_RELRO" not in output("readelf", "-lW", library):
        faults.append("relocations stay writable")
    allowed = ("libc.so", "ld-linux", "libasan", "libubsan", "libtsan", "libm.so")
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
