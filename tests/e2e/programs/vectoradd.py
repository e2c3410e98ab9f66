#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""c = a + b through ctypes: a program that finds its functions one by one with dlsym.

    vectoradd.py PTX
"""

import ctypes
import sys

N = 100_000


def main():
    cuda = ctypes.CDLL("libcuda.so.1")
    name = ctypes.create_string_buffer(256)

    def call(function, *arguments):
        result = getattr(cuda, function)(*arguments)
        if result:
            text = ctypes.c_char_p()
            cuda.cuGetErrorName(result, ctypes.byref(text))
            sys.exit(f"{function}: {(text.value or b'?').decode()} ({result})")

    call("cuInit", 0)
    call("cuDeviceGetName", name, len(name), 0)
    print(f"device: {name.value.decode()}")
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    with open(sys.argv[1], "rb") as f:
        image = ctypes.create_string_buffer(f.read())
    call("cuModuleLoadData", ctypes.byref(module), image)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"vector_add")

    floats = ctypes.c_float * N
    a, b, c = floats(*range(N)), floats(*range(0, 3 * N, 3)), floats()
    size = ctypes.c_size_t(ctypes.sizeof(floats))
    pointers = [ctypes.c_uint64() for _ in range(3)]
    for pointer in pointers:
        call("cuMemAlloc_v2", ctypes.byref(pointer), size)
    call("cuMemcpyHtoD_v2", pointers[0], a, size)
    call("cuMemcpyHtoD_v2", pointers[1], b, size)
    values = [*pointers, ctypes.c_int(N)]
    parameters = (ctypes.c_void_p * 4)(
        *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values)
    )
    grid = ((N + 127) // 128, 1, 1, 128, 1, 1, 0)
    call("cuLaunchKernel", function, *grid, None, parameters, None)
    call("cuMemcpyDtoH_v2", c, pointers[2], size)
    n_wrong = sum(c[i] != a[i] + b[i] for i in range(N))
    for pointer in pointers:
        call("cuMemFree_v2", pointer)
    call("cuModuleUnload", module)
    call("cuDevicePrimaryCtxRelease", 0)
    print(f"vectorAdd: {N} values, {n_wrong} wrong: {'FAIL' if n_wrong else 'PASS'}")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
