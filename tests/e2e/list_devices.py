#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest process that writes what it sees of its devices as a line of JSON, and stays until
its input ends. It takes one MiB more on each device than on the one before, and has a
kernel there write a number.

    list_devices.py LIBCUDA LIBNVML [beside]

Without the last word it is the only process of its machine, and waits until NVML shows that.
"""

import ctypes
import json
import sys
import uuid

PTX = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry write(.param .u64 to, .param .u32 value)
{
    .reg .u64 %to;
    .reg .u32 %value;
    ld.param.u64 %to, [to];
    ld.param.u32 %value, [value];
    st.global.u32 [%to], %value;
    ret;
}
"""


def check(result):
    assert result == 0, result


def use_device(cuda, number):
    """Its UUID, its address, and what the kernel wrote."""
    raw, text = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(32)
    context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
    value, back = ctypes.c_uint(7 + number), ctypes.c_uint()
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(value))
    check(cuda.cuDeviceGetUuid(raw, number))
    check(cuda.cuDeviceGetPCIBusId(text, 32, number))
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, number))
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"write"))
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t((number + 1) << 20)))
    check(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
    check(cuda.cuMemcpyDtoH_v2(ctypes.byref(back), memory, ctypes.c_size_t(4)))
    return "GPU-" + str(uuid.UUID(bytes=bytes(raw))), text.value.decode(), back.value


def look(nvml):
    """The UUID and the memory in use of each device."""
    count, devices = ctypes.c_uint(), []
    check(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
    for i in range(count.value):
        device, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        memory = (ctypes.c_ulonglong * 3)()
        check(nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)))
        check(nvml.nvmlDeviceGetUUID(device, text, 96))
        check(nvml.nvmlDeviceGetMemoryInfo(device, memory))
        devices.append((text.value.decode(), memory[2]))
    return devices


def main():
    cuda, nvml = (ctypes.CDLL(path) for path in sys.argv[1:3])
    result, count = cuda.cuInit(0), ctypes.c_int()
    answer = {"result": result}
    if not result:
        check(cuda.cuDeviceGetCount(ctypes.byref(count)))
        answer["cuda"] = [use_device(cuda, i) for i in range(count.value)]
        check(nvml.nvmlInit_v2())
        answer["nvml"] = look(nvml)
        # The page is renewed some times a second.
        expected = sum(range(count.value + 1)) << 20
        while not sys.argv[3:] and sum(used for _, used in answer["nvml"]) != expected:
            answer["nvml"] = look(nvml)
    print(json.dumps(answer), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
