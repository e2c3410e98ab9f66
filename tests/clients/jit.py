#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of NVIDIA's compilers for use at run time, which keeps PTX: by their C interfaces,
or by the packages cuda-bindings and cuda-core.

    jit.py nvrtc NVRTC | relocatable NVRTC | link NVRTC NVJITLINK | bindings | core SUBJECT

It checks all results and fails by an exception.
"""

import ctypes
import struct
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p

N = 1000
GRID, BLOCK = 8, 128
ARCHITECTURE = "80"
SOURCE = r"""
extern "C" __global__ void scale(float *x, float by, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] *= by;
}

template <typename T, int BY> __global__ void add(T *x, int n)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		x[i] += BY;
}
"""
ADD = "add<float, 3>"
# Two sources that are compiled apart and linked.
PARTS = (r"""
extern "C" __device__ float square(float x) { return x * x; }
""", r"""
extern "C" __device__ float square(float x);
extern "C" __global__ void squares(float *x, int n)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		x[i] = square(x[i]) + 1;
}
""")
SQUARES = [i * i + 1.0 for i in range(N)]
SUMS = [2.0 * i + 3 for i in range(N)]
WRONG = "__global__ void wrong() { nothing(); }"


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


class Driver:
    """The Driver API with a context, and memory of N floats."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context, self.memory = c_void_p(), c_void_p()
        self.call("Init", 0)
        self.call("DevicePrimaryCtxRetain", byref(context), 0)
        self.call("CtxSetCurrent", context)
        self.call("MemAlloc_v2", byref(self.memory), c_size_t(N * 4))

    def call(self, name, *arguments):
        result = getattr(self.library, f"cu{name}")(*arguments)
        check(not result, f"cu{name}: {result}")

    def load(self, ptx):
        """Loads PTX with options of its compilation and logs."""
        check(b".target sm_" in ptx, "the compiler's result is no PTX")
        module = c_void_p()
        log = ctypes.create_string_buffer(4096)
        options = (c_int * 3)(5, 6, 7)  # log of errors, its size, optimization level
        values = (c_void_p * 3)(ctypes.addressof(log), len(log), 4)
        self.call("ModuleLoadDataEx", byref(module), ptx, 3, options, values)
        return module

    def run(self, module, name, *more):
        """Runs a kernel whose first parameter is the memory and whose last is N."""
        function = c_void_p()
        self.call("ModuleGetFunction", byref(function), module, name)
        words = [self.memory, *more, c_int(N)]
        params = (c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
        self.call("LaunchKernel", function, GRID, 1, 1, BLOCK, 1, 1, 0, None, params, None)

    def run_one_block(self, module, name):
        function = c_void_p()
        self.call("ModuleGetFunction", byref(function), module, name)
        words = [self.memory, c_int(N)]
        params = (c_void_p * 2)(*(ctypes.addressof(word) for word in words))
        self.call("LaunchKernel", function, 1, 1, 1, BLOCK, 1, 1, 0, None, params, None)

    def write(self):
        data = struct.pack(f"{N}f", *range(N))
        self.call("MemcpyHtoD_v2", self.memory, data, c_size_t(len(data)))

    def read(self):
        data = ctypes.create_string_buffer(N * 4)
        self.call("MemcpyDtoH_v2", data, self.memory, c_size_t(N * 4))
        return list(struct.unpack(f"{N}f", data.raw))


class Compiler:
    """NVRTC."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        major, minor = c_int(), c_int()
        self.call("Version", byref(major), byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def call(self, name, *arguments):
        result = getattr(self.library, f"nvrtc{name}")(*arguments)
        check(not result, f"nvrtc{name}: {result}")

    def program(self, source):
        program = c_void_p()
        self.call("CreateProgram", byref(program), source.encode(), b"source.cu", 0, None, None)
        return program

    def compile(self, program, options):
        words = (c_char_p * len(options))(*(option.encode() for option in options))
        return self.library.nvrtcCompileProgram(program, len(options), words)

    def log(self, program):
        size = c_size_t()
        self.call("GetProgramLogSize", program, byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.call("GetProgramLog", program, log)
        return log.value.decode()

    def result(self, program, kind):
        size = c_size_t()
        self.call(f"Get{kind}Size", program, byref(size))
        code = ctypes.create_string_buffer(size.value)
        self.call(f"Get{kind}", program, code)
        return code.raw

    def compiled(self, source, kind, *options):
        program = self.program(source)
        result = self.compile(program, options)
        check(not result, f"NVRTC: {result}: {self.log(program)}")
        return self.result(program, kind)


def run_nvrtc(path):
    compiler, driver = Compiler(path), Driver()
    program = compiler.program(SOURCE)
    compiler.call("AddNameExpression", program, ADD.encode())
    check(not compiler.compile(program, [f"--gpu-architecture=compute_{ARCHITECTURE}",
                                         "--std=c++14", "-lineinfo"]), compiler.log(program))
    lowered = c_char_p()
    compiler.call("GetLoweredName", program, ADD.encode(), byref(lowered))
    module = driver.load(compiler.result(program, "PTX"))
    driver.write()
    driver.run(module, b"scale", ctypes.c_float(2))
    driver.run_one_block(module, lowered.value)
    check(driver.read() == SUMS, "a compiled kernel's results")
    program = compiler.program(WRONG)
    check(compiler.compile(program, []) and "nothing" in compiler.log(program),
          "a wrong source is no error")
    print("NVRTC", compiler.version)


def run_relocatable(path):
    """Relocatable code is linked by the driver."""
    compiler, driver = Compiler(path), Driver()
    state, image, size = c_void_p(), c_void_p(), c_size_t()
    driver.call("LinkCreate_v2", 0, None, None, byref(state))
    for part in PARTS:
        ptx = compiler.compiled(part, "PTX", f"--gpu-architecture=compute_{ARCHITECTURE}",
                                "-rdc=true")
        driver.call("LinkAddData_v2", state, 1, ptx, c_size_t(len(ptx)), b"part", 0, None, None)
    driver.call("LinkComplete", state, byref(image), byref(size))
    module = c_void_p()
    driver.call("ModuleLoadData", byref(module), image)
    driver.call("LinkDestroy", state)
    driver.write()
    driver.run_one_block(module, b"squares")
    check(driver.read() == SQUARES, "a linked kernel's results")
    print("NVRTC", compiler.version)


class Linker:
    """nvJitLink, whose functions have the library's version in their names."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        major, minor = c_uint(), c_uint()
        check(not self.library.nvJitLinkVersion(byref(major), byref(minor)), "no version")
        self.suffix = f"_{major.value}_{minor.value}"

    def call(self, name, *arguments):
        function = getattr(self.library, f"__nvJitLink{name}{self.suffix}", None) or \
            getattr(self.library, f"nvJitLink{name}")
        result = function(*arguments)
        check(not result, f"nvJitLink{name}: {result}")

    def link(self, parts, *options):
        linker = c_void_p()
        words = (c_char_p * len(options))(*(option.encode() for option in options))
        self.call("Create", byref(linker), len(options), words)
        for part in parts:
            self.call("AddData", linker, 3, part, c_size_t(len(part)), b"part")  # LTO-IR
        self.call("Complete", linker)
        size = c_size_t()
        self.call("GetLinkedPtxSize", linker, byref(size))
        code = ctypes.create_string_buffer(size.value)
        self.call("GetLinkedPtx", linker, code)
        return code.raw


def run_link(nvrtc, path):
    compiler, linker, driver = Compiler(nvrtc), Linker(path), Driver()
    kind = "LTOIR" if hasattr(compiler.library, "nvrtcGetLTOIR") else "NVVM"
    parts = [compiler.compiled(part, kind, f"--gpu-architecture=compute_{ARCHITECTURE}",
                               "-dlto", "-rdc=true") for part in PARTS]
    module = driver.load(linker.link(parts, f"-arch=sm_{ARCHITECTURE}", "-lto", "-ptx"))
    driver.write()
    driver.run_one_block(module, b"squares")
    check(driver.read() == SQUARES, "a linked kernel's results")
    print("NVRTC", compiler.version, "nvJitLink", linker.suffix)


def run_bindings():
    from cuda.bindings import driver, nvrtc
    import numpy

    def call(function, *arguments):
        result, *values = function(*arguments)
        check(not int(result), f"{function.__name__}: {result}")
        return values[0] if len(values) == 1 else values

    call(driver.cuInit, 0)
    context = call(driver.cuDevicePrimaryCtxRetain, call(driver.cuDeviceGet, 0))
    call(driver.cuCtxSetCurrent, context)
    program = call(nvrtc.nvrtcCreateProgram, SOURCE.encode(), b"source.cu", 0, [], [])
    call(nvrtc.nvrtcCompileProgram, program, 1,
         [f"--gpu-architecture=compute_{ARCHITECTURE}".encode()])
    ptx = b" " * call(nvrtc.nvrtcGetPTXSize, program)
    call(nvrtc.nvrtcGetPTX, program, ptx)
    module = call(driver.cuModuleLoadData, numpy.char.array(ptx).ctypes.data)
    kernel = call(driver.cuModuleGetFunction, module, b"scale")
    stream = call(driver.cuStreamCreate, 0)
    values = numpy.arange(N, dtype=numpy.float32)
    memory = call(driver.cuMemAllocAsync, values.nbytes, stream)
    call(driver.cuMemcpyHtoDAsync, memory, values.ctypes.data, values.nbytes, stream)
    params = ((memory, 2.5, N), (None, ctypes.c_float, c_int))
    call(driver.cuLaunchKernel, kernel, GRID, 1, 1, BLOCK, 1, 1, 0, stream, params, 0)
    back = numpy.zeros_like(values)
    call(driver.cuMemcpyDtoHAsync, back.ctypes.data, memory, values.nbytes, stream)
    call(driver.cuMemFreeAsync, memory, stream)
    call(driver.cuStreamSynchronize, stream)
    check((back == values * numpy.float32(2.5)).all(), "a kernel's results")


class Core:
    """cuda.core: its objects for one device."""

    def __init__(self):
        import cuda.core
        self.core = cuda.core
        self.device = cuda.core.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.config = cuda.core.LaunchConfig(grid=GRID, block=BLOCK)
        self.one_block = cuda.core.LaunchConfig(grid=1, block=BLOCK)
        self.buffer = cuda.core.LegacyPinnedMemoryResource().allocate(N * 4)
        self.values = (ctypes.c_float * N).from_address(int(self.buffer.handle))
        self.values[:] = range(N)

    def compile(self, source, kind="ptx", names=(), **options):
        options = self.core.ProgramOptions(**{"arch": f"compute_{ARCHITECTURE}", **options})
        return self.core.Program(source, "c++", options).compile(kind, name_expressions=names)

    def launch(self, stream, config, kernel, *arguments):
        self.core.launch(stream, config, kernel, *arguments)

    def check(self, expected):
        self.stream.sync()
        check(list(self.values) == expected, "a kernel's results")


def core_program(core):
    code = core.compile(SOURCE, names=(ADD,), std="c++17")
    for kernel, config, more in (("scale", core.config, [ctypes.c_float(2)]),
                                 (ADD, core.one_block, [])):
        core.launch(core.stream, config, code.get_kernel(kernel), core.buffer, *more, c_int(N))
    core.check(SUMS)
    kernel = code.get_kernel("scale")
    check(kernel.num_arguments == 3, "the number of a kernel's parameters")
    check(kernel.attributes[core.device].max_threads_per_block > 0, "attributes of a kernel")


def core_memory(core):
    """Device memory of pools and of address ranges."""
    code = core.compile(SOURCE)
    resources = [core.core.DeviceMemoryResource(
        core.device, core.core.DeviceMemoryResourceOptions(max_size=1 << 24)), core.device,
        core.core.VirtualMemoryResource(core.device)]
    # The last gives memory in its own unit.
    pinned = core.core.LegacyPinnedMemoryResource().allocate(1 << 21)
    core.values = (ctypes.c_float * N).from_address(int(pinned.handle))
    core.values[:] = range(N)
    for turn, resource in enumerate(resources):
        buffer = resource.allocate(1 << 21, stream=core.stream)
        buffer.copy_from(pinned, stream=core.stream)
        core.launch(core.stream, core.config, code.get_kernel("scale"), buffer,
                    ctypes.c_float(2), c_int(N))
        buffer.copy_to(pinned, stream=core.stream)
        core.check([float(i << (turn + 1)) for i in range(N)])
        buffer.fill(0, stream=core.stream)
        buffer.close(core.stream)
    core.stream.sync()


def core_graph(core):
    kernel = core.compile(SOURCE).get_kernel("scale")
    builder = core.device.create_graph_builder()
    builder.begin_building()
    core.launch(builder, core.config, kernel, core.buffer, ctypes.c_float(2), c_int(N))
    left, right = builder.split(2)
    for branch in (left, right):
        core.launch(branch, core.config, kernel, core.buffer, ctypes.c_float(1), c_int(0))
    joined = type(builder).join(left, right)
    core.launch(joined, core.config, kernel, core.buffer, ctypes.c_float(3), c_int(N))
    graph = joined.end_building().complete()
    graph.upload(core.stream)
    for _ in range(2):
        graph.launch(core.stream)
    core.check([float(36 * i) for i in range(N)])


def core_link(core):
    parts = [core.compile(part, "ltoir", relocatable_device_code=True,
                          link_time_optimization=True) for part in PARTS]
    options = core.core.LinkerOptions(arch=f"sm_{ARCHITECTURE}", link_time_optimization=True,
                                      ptx=True)
    code = core.core.Linker(*parts, options=options).link("ptx")
    core.launch(core.stream, core.one_block, code.get_kernel("squares"), core.buffer, c_int(N))
    core.check(SQUARES)


def core_events(core):
    kernel = core.compile(SOURCE).get_kernel("scale")
    other = core.device.create_stream()
    core.launch(other, core.config, kernel, core.buffer, ctypes.c_float(2), c_int(N))
    event = other.record()
    core.stream.wait(event)
    core.launch(core.stream, core.config, kernel, core.buffer, ctypes.c_float(3), c_int(N))
    event.sync()
    check(event.is_done, "an event is not done after a wait for it")
    core.check([float(6 * i) for i in range(N)])


def main():
    kind, *words = sys.argv[1:]
    if kind == "core":
        globals()[f"core_{words[0]}"](Core())
    else:
        {"nvrtc": run_nvrtc, "relocatable": run_relocatable, "link": run_link,
         "bindings": run_bindings}[kind](*words)


if __name__ == "__main__":
    main()
