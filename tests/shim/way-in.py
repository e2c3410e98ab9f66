# SPDX-License-Identifier: Apache-2.0
"""Loads libcuda by ctypes; prints the number of devices."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
count = ctypes.c_int()
result = library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count))
if result:
    sys.exit(f"result {result}")
print(f"devices={count.value}")
