#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of NVML by NVIDIA's bindings for Python, the module pynvml: makes each call of a
device that needs nothing but the device, and fails if one raises what NVML does not document
for a device without the feature.
"""

import inspect
import sys

import pynvml

# A call that a device without the feature refuses, or of a newer library.
REFUSED = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
           pynvml.NVML_ERROR_NOT_FOUND)
# These have no handle of a MIG device.
MIG = ("nvmlDeviceGetDeviceHandleFromMigDeviceHandle",)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def calls_of_a_device():
    for name, function in inspect.getmembers(pynvml, inspect.isfunction):
        if name.startswith("nvmlDeviceGet") and not name.startswith("nvmlDeviceGetHandleBy"):
            words = inspect.signature(function).parameters.values()
            if sum(word.default is word.empty for word in words) == 1:
                yield name, function


def main():
    pynvml.nvmlInit()
    assert text(pynvml.nvmlSystemGetDriverVersion())[0].isdigit()
    assert pynvml.nvmlDeviceGetCount() == 1
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    uuid = pynvml.nvmlDeviceGetUUID(device)
    same = pynvml.nvmlDeviceGetHandleByUUID(uuid if isinstance(uuid, bytes) else uuid.encode())
    assert pynvml.nvmlDeviceGetUUID(same) == uuid
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    assert memory.total == memory.used + memory.free > 0, memory
    n_answered, wrong = 0, []
    for name, function in calls_of_a_device():
        try:
            function(device)
            n_answered += 1
        except pynvml.NVMLError as error:
            if error.value not in REFUSED and name not in MIG:
                wrong.append(f"{name}: {error}")
        except TypeError as error:
            # Of the bindings themselves: some pass what they did not ask for.
            print(f"{name} of the bindings: {error}")
    pynvml.nvmlShutdown()
    print(f"{n_answered} calls were answered")
    assert n_answered > 25, n_answered
    return "\n".join(wrong) or 0


if __name__ == "__main__":
    sys.exit(main())
