#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program with a kernel that launches kernels: only that one is refused, with a message."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))
from host import Host  # noqa: E402


def main():
    build, program = sys.argv[1:]
    with Host(build) as host:
        environment = {**os.environ, "VGPU_SOCKET": str(host.socket), "VGPU_LOG": "error",
                       "LD_LIBRARY_PATH": str(Path(build) / "guest-shim")}
        done = subprocess.run([program, "launch"], env=environment, text=True,
                              capture_output=True, timeout=100, check=False)
    lines = [line for line in done.stderr.splitlines() if "dynamic parallelism" in line]
    assert done.returncode == 0, done
    assert "kernels: cudaErrorNotSupported" in done.stdout, done.stdout
    assert len(lines) == 1 and "parent" in lines[0], done.stderr


main()
