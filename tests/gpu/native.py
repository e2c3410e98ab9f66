# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's driver on this machine: whether it works, and how programs find it."""

import ctypes
import os
import sys
from pathlib import Path


def leave_ours_behind(build):
    """Executes itself again without the folders of the build in the loader's path.

    The test runner adds them, and the programs have them in their run path: the loader
    would load the guest library as NVIDIA's. The loader reads its path only once.
    """
    before = os.environ.get("LD_LIBRARY_PATH", "")
    kept = [
        p for p in before.split(":") if p and not Path(p).resolve().is_relative_to(build)
    ]
    if ":".join(kept) != before:
        os.environ["LD_LIBRARY_PATH"] = ":".join(kept)
        os.execv(sys.executable, [sys.executable, *sys.argv])


def native_environment():
    """The folder of the driver loaded here, before those that programs name."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = [line.split()[-1] for line in maps if "/libcuda.so" in line]
    return {"LD_LIBRARY_PATH": os.path.dirname(paths[0])}


def nvidia_answers():
    """Returns (devices, sentence): how many devices the installed driver shows."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return 0, str(error)
    result = library.cuInit(0)
    if result:
        return 0, f"cuInit of libcuda.so.1 returns {result}"
    count = ctypes.c_int()
    library.cuDeviceGetCount(ctypes.byref(count))
    return count.value, f"{count.value} devices"
