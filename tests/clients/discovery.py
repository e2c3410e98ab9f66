#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for GPUs as a program does before it computes: the same look-ups, the same calls.

    discovery.py SUBJECT

What it finds is compared with NVML, by the UUID of the device. It fails by an exception.
"""

import ctypes
import fcntl
import glob
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_uint64, c_void_p

MAJOR, MINOR, INTEGRATED, HAS_VIRTUAL_MEMORY = 75, 76, 18, 102  # CUdevice_attribute
NOT_SUPPORTED = 3  # of NVML


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def load(*names):
    """The first of some libraries, as dlopen finds it, and only its own symbols."""
    reasons = []
    for name in names:
        try:
            return ctypes.CDLL(name, mode=os.RTLD_LAZY | os.RTLD_LOCAL)
        except OSError as error:
            reasons.append(str(error))
    raise Failure("; ".join(reasons))


def functions(library, *names):
    """Programs look all up before they call the first."""
    missing = [name for name in names if not hasattr(library, name)]
    check(not missing, f"not in the library: {', '.join(missing)}")
    return [getattr(library, name) for name in names]


def call(function, *arguments):
    result = function(*arguments)
    check(not result, f"{function.__name__}: {result}")


class Nvml:
    """The devices as NVML has them."""

    def __init__(self):
        self.library = load("libnvidia-ml.so.1", "libnvidia-ml.so")
        call(self.library.nvmlInit_v2)

    def count(self):
        count = c_uint()
        call(self.library.nvmlDeviceGetCount_v2, byref(count))
        return count.value

    def device(self, uuid):
        device = c_void_p()
        call(self.library.nvmlDeviceGetHandleByUUID, uuid.encode(), byref(device))
        return device

    def name(self, device):
        name = (c_char * 96)()
        call(self.library.nvmlDeviceGetName, device, name, len(name))
        return name.value.decode()

    def memory(self, device):
        """All, free and used bytes."""
        memory = (c_uint64 * 3)()
        call(self.library.nvmlDeviceGetMemoryInfo, device, memory)
        return list(memory)


def text_of(uuid):
    digits = bytes(uuid).hex()
    return "GPU-" + "-".join(digits[a:b] for a, b in
                             ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))


#
# Ollama
#

# Where older versions look for libcuda.so besides the folders of LD_LIBRARY_PATH
# (discover/gpu_linux.go).
PLACES = ("/usr/local/cuda*/targets/*/lib", "/usr/lib/*-linux-gnu/nvidia/current",
          "/usr/lib/*-linux-gnu", "/usr/lib/wsl/lib", "/usr/lib/wsl/drivers/*",
          "/opt/cuda/lib*", "/usr/local/cuda/lib*", "/usr/lib*", "/usr/local/lib*")


def candidates(pattern):
    """Files of that name, by their true paths; stubs of the toolkit are passed over."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    found = {}
    for folder in (*filter(None, folders), *PLACES):
        for path in sorted(glob.glob(os.path.join(folder, pattern))):
            path = os.path.realpath(path)
            if "/stubs/" not in path:
                found[path] = None
    return list(found)


def ollama_older():
    """Files by their paths (discover/gpu_info_nvcuda.c), then NVML for the free memory
    (discover/gpu_info_nvml.c)."""
    paths = candidates("libcuda.so*")
    check(paths, "no libcuda.so in any of the folders")
    library = load(*paths)
    (init, version, count, get, attribute, uuid_of, name_of, create, memory_info,
     destroy) = functions(
        library, "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet",
        "cuDeviceGetAttribute", "cuDeviceGetUuid", "cuDeviceGetName", "cuCtxCreate_v3",
        "cuMemGetInfo_v2", "cuCtxDestroy")
    number, device, major, minor = c_int(), c_int(), c_int(), c_int()
    call(init, 0)
    call(version, byref(number))
    check(number.value >= 12000, f"driver version {number.value}")
    call(count, byref(number))
    check(number.value == 1, f"{number.value} devices")
    call(get, byref(device), 0)
    call(attribute, byref(major), MAJOR, device)
    call(attribute, byref(minor), MINOR, device)
    check(major.value >= 5, f"compute capability {major.value}.{minor.value}")
    uuid, name, context = (c_char * 16)(), (c_char * 256)(), c_void_p()
    call(uuid_of, uuid, device)
    call(name_of, name, len(name), device)
    call(create, byref(context), None, 0, 0, device)
    free, total = c_uint64(), c_uint64()
    call(memory_info, byref(free), byref(total))
    call(destroy, context)
    nvml = Nvml()
    same = nvml.device(text_of(uuid))
    check(nvml.name(same) == name.value.decode(), f"{nvml.name(same)}, not {name.value}")
    check(nvml.memory(same)[0] == total.value, f"{nvml.memory(same)}, not {total.value} bytes")
    check(0 < free.value <= total.value, f"{free.value} bytes free")
    call(nvml.library.nvmlShutdown)


def ollama():
    """By names (discover/native_probe_linux.go)."""
    library = load("libcuda.so.1", "libcuda.so")
    init, version, count, get, attribute, name_of, total_of, bus_of = functions(
        library, "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet",
        "cuDeviceGetAttribute", "cuDeviceGetName", "cuDeviceTotalMem_v2",
        "cuDeviceGetPCIBusId")
    call(init, 0)
    nvml = load("libnvidia-ml.so.1", "libnvidia-ml.so")
    start, stop, driver_version = functions(
        nvml, "nvmlInit_v2", "nvmlShutdown", "nvmlSystemGetDriverVersion")
    number, device, text = c_int(), c_int(), (c_char * 80)()
    call(version, byref(number))
    check(number.value >= 12000, f"driver version {number.value}")
    call(start)
    call(driver_version, text, len(text))
    call(stop)
    check(int(text.value.split(b".")[0]) > 0, f"driver {text.value}")
    call(count, byref(number))
    check(number.value == 1, f"{number.value} devices")
    call(get, byref(device), 0)
    for kind in (MAJOR, MINOR, INTEGRATED):
        call(attribute, byref(number), kind, device)
    name, bus, total = (c_char * 128)(), (c_char * 32)(), c_size_t()
    call(name_of, name, len(name), device)
    call(total_of, byref(total), device)
    call(bus_of, bus, len(bus), device)
    check(total.value and re.fullmatch(rb"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]",
                                       bus.value.lower()), f"{total.value} bytes, {bus.value}")


#
# llama.cpp
#


class Properties(ctypes.Structure):
    """The beginning of cudaDeviceProp, which is the same in all versions, and enough room."""

    _fields_ = [("name", c_char * 256), ("uuid", c_char * 16), ("luid", c_char * 8),
                ("mask", c_uint), ("memory", c_size_t), ("rest", c_char * 4096)]


def llama():
    """As ggml_cuda_init() and the first pool of memory (ggml/src/ggml-cuda/ggml-cuda.cu) do:
    the runtime library, and virtual memory by the driver."""
    runtime, driver = load("libcudart.so.13", "libcudart.so.12"), load("libcuda.so.1")
    count, device, number = c_int(), c_int(), c_int()
    properties = Properties()
    call(runtime.cudaGetDeviceCount, byref(count))
    check(count.value == 1, f"{count.value} devices")
    call(driver.cuDeviceGet, byref(device), 0)
    call(driver.cuDeviceGetAttribute, byref(number), HAS_VIRTUAL_MEMORY, device)
    call(runtime.cudaGetDeviceProperties if hasattr(runtime, "cudaGetDeviceProperties")
         else runtime.cudaGetDeviceProperties_v2, byref(properties), 0)
    bus, free, total = (c_char * 16)(), c_size_t(), c_size_t()
    call(runtime.cudaSetDevice, 0)
    call(runtime.cudaDeviceGetPCIBusId, bus, len(bus), 0)
    call(runtime.cudaMemGetInfo, byref(free), byref(total))
    check(0 < free.value <= total.value == properties.memory,
          f"{free.value} of {total.value} bytes, {properties.memory}")
    nvml = Nvml()
    check(nvml.memory(nvml.device(text_of(properties.uuid.ljust(16, b"\0"))))[0] == total.value,
          "NVML has another size")
    if number.value:
        virtual_memory(driver)
    stream, host = c_void_p(), c_void_p()
    call(runtime.cudaStreamCreateWithFlags, byref(stream), 1)
    call(runtime.cudaMallocHost, byref(host), c_size_t(1 << 20))
    call(runtime.cudaFreeHost, host)
    call(runtime.cudaStreamDestroy, stream)


class Placement(ctypes.Structure):
    """CUmemAllocationProp of memory on a device."""

    _fields_ = [("type", c_int), ("handles", c_int), ("location", c_int), ("id", c_int),
                ("rest", c_uint64 * 2)]


def virtual_memory(driver):
    """The pool reserves 32 GiB of addresses, and maps memory into them as it is needed."""
    size, address, handle = c_size_t(), c_uint64(), c_uint64()
    placement, access = Placement(1, 0, 1, 0), (c_int * 3)(1, 0, 3)
    call(driver.cuMemGetAllocationGranularity, byref(size), byref(placement), 1)
    call(driver.cuMemAddressReserve, byref(address), c_size_t(1 << 35), c_size_t(0),
         c_uint64(0), c_uint64(0))
    call(driver.cuMemCreate, byref(handle), size, byref(placement), c_uint64(0))
    call(driver.cuMemMap, address, size, c_size_t(0), handle, c_uint64(0))
    call(driver.cuMemRelease, handle)
    call(driver.cuMemSetAccess, address, size, access, c_size_t(1))
    call(driver.cuMemsetD8_v2, address, 1, size)
    call(driver.cuMemUnmap, address, size)
    call(driver.cuMemAddressFree, address, c_size_t(1 << 35))


#
# Exporters of Prometheus
#


def exporter_by_nvml():
    """The calls of nvidia_gpu_prometheus_exporter, whose bindings are gonvml: what is not
    supported is left out."""
    nvml, device = Nvml(), c_void_p()
    check(nvml.count() == 1, f"{nvml.count()} devices")
    call(nvml.library.nvmlDeviceGetHandleByIndex_v2, 0, byref(device))
    uuid, text, rates = (c_char * 96)(), (c_char * 96)(), (c_uint * 2)()
    call(nvml.library.nvmlDeviceGetUUID, device, uuid, len(uuid))
    call(nvml.library.nvmlDeviceGetName, device, text, len(text))
    total, free, used = nvml.memory(device)
    check(total == free + used, f"{total} bytes, {free} free, {used} used")
    call(nvml.library.nvmlDeviceGetUtilizationRates, device, rates)
    check(max(rates) <= 100, f"rates {list(rates)}")
    number = c_uint()
    for name, words in (("PowerUsage", ()), ("Temperature", (0,)), ("FanSpeed", ())):
        function = getattr(nvml.library, f"nvmlDeviceGet{name}")
        result = function(device, *words, byref(number))
        check(result in (0, NOT_SUPPORTED), f"{function.__name__}: {result}")


def exporter_by_smi():
    """As nvidia_gpu_exporter: it takes the names of the values from the help, and asks for
    all of them."""
    def output(*words):
        done = subprocess.run(["nvidia-smi", *words], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(not done.returncode, f"{words}: {done.returncode}: {done.stdout[:200]}")
        return done.stdout

    # A name in quotation marks at the start of a line, after an empty one.
    names = re.findall(r'\n\s*\n^"([^"]+)"', output("--help-query-gpu"), re.M)
    check({"uuid", "name", "memory.used", "utilization.gpu"} <= set(names), f"names {names}")
    lines = output(f"--query-gpu={','.join(names)}", "--format=csv").strip().splitlines()
    check(len(lines) == 2, f"{len(lines)} lines")
    values = dict(zip(names, lines[1].split(", ")))
    check(values["uuid"].startswith("GPU-"), values["uuid"])
    check(re.fullmatch(r"\d+ MiB", values["memory.total"]), values["memory.total"])
    nvml = Nvml()
    device = nvml.device(values["uuid"])
    check(values["name"] == nvml.name(device), values["name"])
    check(int(values["memory.total"].split()[0]) == nvml.memory(device)[0] >> 20,
          values["memory.total"])


def exporter_nvitop():
    """The page of nvitop-exporter, as soon as it has the device."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "nvitop_exporter", "--bind-address", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen([sys.executable, *words]) as exporter:
        try:
            page = wait_for_page(exporter, f"http://127.0.0.1:{port}/metrics")
        finally:
            exporter.terminate()
    found = {name: float(value) for name, value in
             re.findall(r"^(gpu_memory_\w+|gpu_utilization_\w+)\{.*\} (\S+)$", page, re.M)}
    nvml, device = Nvml(), c_void_p()
    call(nvml.library.nvmlDeviceGetHandleByIndex_v2, 0, byref(device))
    check(found["gpu_memory_total_MiB"] == nvml.memory(device)[0] / (1 << 20), f"{found}")
    check(0 <= found["gpu_utilization_Percentage"] <= 100, f"{found}")
    check(nvml.name(device) in page, "the name of the device is missing")


def wait_for_page(exporter, address):
    while exporter.poll() is None:
        try:
            with urllib.request.urlopen(address) as answer:
                page = answer.read().decode()
            if "gpu_memory_total_MiB{" in page:
                return page
        except urllib.error.URLError:
            pass
        time.sleep(0.2)
    raise Failure(f"it ended with status {exporter.returncode}")


#
# Programs that show devices
#


def hwloc():
    """lstopo, whose plugins add the devices of CUDA and of NVML to the topology."""
    done = subprocess.run([os.environ["LSTOPO"], "--of", "console", "-v"], text=True,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(not done.returncode, f"lstopo: {done.returncode}: {done.stdout[-200:]}")
    nvml, device = Nvml(), c_void_p()
    call(nvml.library.nvmlDeviceGetHandleByIndex_v2, 0, byref(device))
    shown = dict(re.findall(r'Backend=(CUDA|NVML) .*GPUModel="([^"]*)"', done.stdout))
    check(shown == dict.fromkeys(("CUDA", "NVML"), nvml.name(device)), f"{shown}")
    uuid = re.search(r"NVIDIAUUID=(GPU-[0-9a-f-]+)", done.stdout)
    check(uuid, "no UUID")
    nvml.device(uuid[1])
    memory = re.search(r"CUDAGlobalMemorySize=(\d+)", done.stdout)
    check(memory and int(memory[1]) == nvml.memory(device)[0] >> 10, "another size")


def nvtop():
    """The program on a terminal, until it shows the device; then its key for the end."""
    pid, terminal = pty.fork()
    if not pid:
        os.execv(os.environ["NVTOP"], ["nvtop", "-C", "-p"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
    shown = b""
    while b"softgpu" not in shown:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            raise Failure(f"it ended: {shown[-200:]!r}") from None
    os.write(terminal, b"q")
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass
    status = os.waitpid(pid, 0)[1]
    check(not status, f"status {status}")


#
# Libraries of Python
#


def torch_available():
    """Whether a device is there; a child process may use it then, as the answer of NVML
    initialises nothing."""
    import torch

    check(torch.cuda.is_available(), "not available")
    check(torch.cuda.device_count() == 1, f"{torch.cuda.device_count()} devices")
    by_nvml = os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK") == "1"
    if by_nvml:
        child = os.fork()
        if not child:
            os._exit(0 if torch_copies(torch) else 1)
        check(not os.waitpid(child, 0)[1], "a child cannot use the device")
    check(torch_copies(torch), "copies are wrong")


def torch_copies(torch):
    x = torch.arange(1000, dtype=torch.float32)
    return bool((x.to("cuda").clone().cpu() == x).all())


def torch_details():
    """What is asked of the runtime library, and of NVML by its bindings."""
    import pynvml
    import torch

    nvml = Nvml()
    properties = torch.cuda.get_device_properties(0)
    device = nvml.device(f"GPU-{properties.uuid}")
    check(properties.name == torch.cuda.get_device_name(0) == nvml.name(device), properties.name)
    check((properties.major, properties.minor) == torch.cuda.get_device_capability(0),
          "compute capability")
    free, total = torch.cuda.mem_get_info()
    check(0 < free <= total == properties.total_memory == nvml.memory(device)[0],
          f"{free} of {total} bytes")
    x = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    check(torch.cuda.mem_get_info()[0] <= free - x.numel(), "no less is free")
    check(torch.cuda.utilization() in range(101), "utilization")
    check(torch.cuda.memory_usage() in range(101), "memory_usage")
    # The state of the devices reaches NVML with the next heartbeat of vgpud.
    while torch.cuda.device_memory_used() < x.numel():
        time.sleep(0.05)
    check(str(os.getpid()) in torch.cuda.list_gpu_processes(), torch.cuda.list_gpu_processes())
    for function in (torch.cuda.temperature, torch.cuda.power_draw, torch.cuda.clock_rate):
        try:
            function()
        except pynvml.NVMLError as error:
            check(error.value == NOT_SUPPORTED, f"{function.__name__}: {error}")


def cupy():
    import cupy

    nvml, runtime = Nvml(), cupy.cuda.runtime
    check(cupy.cuda.is_available() and runtime.getDeviceCount() == 1, "no device")
    check(runtime.driverGetVersion() >= 12000, f"driver version {runtime.driverGetVersion()}")
    properties, device = runtime.getDeviceProperties(0), cupy.cuda.Device(0)
    same = nvml.device(text_of(properties["uuid"]))
    check(properties["name"].decode() == nvml.name(same), properties["name"])
    check(device.compute_capability == f"{properties['major']}{properties['minor']}",
          device.compute_capability)
    check(device.mem_info[1] == properties["totalGlobalMem"] == nvml.memory(same)[0],
          f"{device.mem_info}")
    check(re.fullmatch(r"[0-9A-F]{4}:[0-9A-F]{2}:[0-9A-F]{2}\.\d", device.pci_bus_id),
          device.pci_bus_id)
    check(len(device.attributes) > 80, f"{len(device.attributes)} attributes")
    cupy.show_config()


SUBJECTS = {
    "ollama-older": ollama_older,
    "ollama": ollama,
    "llama": llama,
    "exporter-nvml": exporter_by_nvml,
    "exporter-smi": exporter_by_smi,
    "exporter-nvitop": exporter_nvitop,
    "hwloc": hwloc,
    "nvtop": nvtop,
    "torch": torch_available,
    "torch-nvml": torch_available,
    "torch-details": torch_details,
    "cupy": cupy,
}


def main():
    (subject,) = sys.argv[1:]
    try:
        SUBJECTS[subject]()
    except Failure as failure:
        sys.exit(f"{subject}: {failure}")
    print(f"{subject}: right")


if __name__ == "__main__":
    main()
