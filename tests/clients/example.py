# SPDX-License-Identifier: Apache-2.0
"""A client of the Driver API: it launches, idles, or ends badly.

    example.py launch N | refused | idle | bad-image | abort | sleep
"""

import ctypes
import os
import subprocess
import sys
import time

PTX = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
"""
# An instruction of compute capability 9.0a alone.
UNSUPPORTED = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { wgmma.fence.sync.aligned; ret; }
"""


def main():
    what, cuda = sys.argv[1], ctypes.CDLL("libcuda.so.1")
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0):
        return 9
    if what == "idle":
        return 0
    if what == "abort":
        os.abort()
    if what == "sleep":
        # A child too, which must not outlive the time limit.
        subprocess.Popen(["sleep", "600"]).wait()
        time.sleep(600)
    text = {"launch": PTX, "refused": UNSUPPORTED}.get(what, b"no image at all")
    if cuda.cuModuleLoadData(ctypes.byref(module), text):
        print("the module was not loaded: error")
        return 3
    if cuda.cuModuleGetFunction(ctypes.byref(function), module, b"nothing"):
        return 4
    if what == "refused":
        # As a program that checks nothing.
        cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)
        return 0
    for _ in range(int(sys.argv[2])):
        if cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None):
            return 5
    if cuda.cuCtxSynchronize():
        return 6
    print(f"launched {sys.argv[2]}", "on a terminal" if os.isatty(1) else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
