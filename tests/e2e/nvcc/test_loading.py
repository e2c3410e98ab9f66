#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The variables of module loading decide whether unused device code is loaded.

    test_loading.py BUILD PROGRAM
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "lib"))

from host import Host  # noqa: E402

# The runtime library itself reads the last one.
MODE, LAZY = "CUDA_MODULE_LOADING", "CUDA_ENABLE_MODULE_LAZY_LOADING"
CASES = [
    ({}, 0),
    ({MODE: "LAZY"}, 0),
    ({MODE: "DEFAULT"}, 0),
    ({MODE: "EAGER"}, 1),
    ({MODE: "EAGER", LAZY: "1"}, 0),
]


def count_loads(build, host, program, variables):
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as trace:
        environment = {k: v for k, v in os.environ.items() if k not in (MODE, LAZY)}
        environment.update(variables, VGPU_SOCKET=str(host.socket), VGPU_TRACE=trace.name)
        environment["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")
        subprocess.run([program], env=environment, check=True)
        return len(re.findall(r" cuLibraryLoadData\(.* = CUDA_SUCCESS ", trace.read()))


def main():
    build, program = sys.argv[1:]
    with Host(build) as host:
        for variables, expected in CASES:
            found = count_loads(build, host, program, variables)
            assert found == expected, f"{variables}: {found} loads, not {expected}"


if __name__ == "__main__":
    main()
