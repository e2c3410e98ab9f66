#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An endless kernel under softgpu-kernel-timeout: its process gets 702, another works.

    test_timeout.py BUILD PROGRAM
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from host import Host  # noqa: E402


def main():
    build, program = sys.argv[1:]
    with Host(build, extra="softgpu-kernel-timeout = 1") as host:
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        environment["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        # Endless on purpose: these two run side by side.
        endless = subprocess.Popen([program, "endless"], env=environment)
        subprocess.run([program, "short"], env=environment, check=True, timeout=60)
        assert endless.wait(timeout=60) == 0
        host.wait_for(r"CUDA error 702: .* in spin, block \(0, 0, 0\)")


if __name__ == "__main__":
    main()
