#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An access beside an array is tolerated, and a fault with softgpu-check = yes.

    test_check.py BUILD PROGRAM
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from host import Host  # noqa: E402


def status(build, program, extra):
    with Host(build, extra=extra) as host:
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        environment["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        return subprocess.run([program], env=environment, timeout=60,
                              check=False).returncode


def main():
    build, program = sys.argv[1:]
    assert status(build, program, "") == 0
    assert status(build, program, "softgpu-check = no") == 0
    assert status(build, program, "softgpu-check = yes") == 1
    assert status(build, program, "softgpu-check = race, uninitialised, fatal") == 0
    assert status(build, program, "softgpu-check = memory, race") == 1


if __name__ == "__main__":
    main()
