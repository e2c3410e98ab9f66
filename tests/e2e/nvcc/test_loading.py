#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The variables of module loading decide which device code is loaded, and sent.

    test_loading.py BUILD PROGRAM
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "lib"))

from host import Host  # noqa: E402
from through import sessions  # noqa: E402

# The runtime library itself reads the last one.
MODE, LAZY = "CUDA_MODULE_LOADING", "CUDA_ENABLE_MODULE_LAZY_LOADING"
N_PARTS = 3
CASES = [
    # The variables, the parts whose kernel runs, the parts that are loaded.
    ({}, 0, 0),
    ({}, 1, 1),
    ({MODE: "LAZY"}, 2, 2),
    ({MODE: "DEFAULT"}, 0, 0),
    ({MODE: "EAGER"}, 0, N_PARTS),
    ({MODE: "EAGER"}, 1, N_PARTS),
    ({MODE: "EAGER", LAZY: "1"}, 1, 1),
]


class Runs:
    def __init__(self, build, host, program):
        self.host, self.program, self.n = host, program, 0
        self.environment = {k: v for k, v in os.environ.items() if k not in (MODE, LAZY)}
        self.environment["VGPU_SOCKET"] = str(host.socket)
        self.environment["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")

    def count(self, variables, n_used, cache):
        """Loads by the driver, images sent, images that the host had."""
        trace = Path(self.host.folder.name) / "trace"
        trace.write_text("")
        subprocess.run([self.program, str(n_used)], check=True,
                       env=dict(self.environment, **variables, VGPU_TRACE=str(trace),
                                XDG_RUNTIME_DIR=str(cache)))
        self.n += 1
        self.host.wait_for(r"session ended", self.n)
        book = sessions(self.host.text())[self.n - 1]
        loads = re.findall(r" cuLibraryLoadData\(.* = CUDA_SUCCESS ", trace.read_text())
        return len(loads), int(book["images_sent"]), int(book["images_found"])


def main():
    build, program = sys.argv[1:]
    # Files that changed recently are not cached (guest-shim/src/memory/backing.c).
    while int(time.time()) <= int(os.stat(program).st_ctime) + 2:
        time.sleep(0.1)
    with Host(build) as host:
        runs = Runs(build, host, program)
        cache = Path(host.folder.name) / "cache"
        for variables, n_used, expected in CASES:
            cache.mkdir()
            for counts in (expected, expected, 0), (expected, 0, expected):
                found = runs.count(variables, n_used, cache)
                assert found == counts, f"{variables}, {n_used} used: {found}, not {counts}"
            shutil.rmtree(cache)


if __name__ == "__main__":
    main()
