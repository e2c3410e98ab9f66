#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of NVIDIA's runtime library, by its C interface: no compiler is involved, so that
one program drives every version.

    cudart.py SUBJECT LIBRARY...

It registers a fat binary as the code that nvcc generates does, and checks all results. The
subject `mixed` drives several libraries in one process. It fails by an exception.
"""

import ctypes
import struct
import subprocess
import sys
import threading
from array import array
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p

HOST, TO_DEVICE, TO_HOST, ON_DEVICE, ANY = range(5)  # cudaMemcpyKind
N = 1000
INVALID_VALUE, INVALID_CONFIGURATION, INVALID_SYMBOL = 1, 9, 13
INVALID_DEVICE_FUNCTION, NOT_READY = 98, 600
NON_BLOCKING = 1
INTERPROCESS_EVENT = 2 | 4  # and no timing
PER_THREAD = 2  # the handle of a thread's default stream

PTX = b""".version 6.3
.target sm_75
.address_size 64
.visible .const .align 4 .u32 factor = 1;
.visible .global .align 4 .u32 total;
.visible .global .attribute(.managed) .align 4 .u32 managed = 5;

.visible .entry add(.param .u64 to, .param .u64 from, .param .u32 n) {
	.reg .pred %p;
	.reg .u32 %i, %t, %b, %n, %x, %y, %f;
	.reg .u64 %to, %from, %o;
	mov.u32 %i, %ctaid.x;
	mov.u32 %b, %ntid.x;
	mov.u32 %t, %tid.x;
	mad.lo.u32 %i, %i, %b, %t;
	ld.param.u32 %n, [n];
	setp.ge.u32 %p, %i, %n;
	@%p ret;
	ld.param.u64 %to, [to];
	ld.param.u64 %from, [from];
	mul.wide.u32 %o, %i, 4;
	add.u64 %to, %to, %o;
	add.u64 %from, %from, %o;
	ld.u32 %x, [%to];
	ld.u32 %y, [%from];
	ld.const.u32 %f, [factor];
	mad.lo.u32 %x, %y, %f, %x;
	st.u32 [%to], %x;
	ret;
}

.visible .entry count() {
	.reg .u32 %old;
	.reg .u64 %at;
	mov.u64 %at, total;
	atom.global.add.u32 %old, [%at], 1;
	mov.u64 %at, managed;
	atom.global.add.u32 %old, [%at], 1;
	ret;
}

.visible .entry fault() {
	trap;
	ret;
}
"""
# The library keeps these pointers.
NAMES = {name: ctypes.create_string_buffer(name.encode())
         for name in ("add", "count", "fault", "factor", "total", "managed")}


class Dim(ctypes.Structure):
    _fields_ = [(name, c_uint) for name in "xyz"]


class Extent(ctypes.Structure):
    _fields_ = [(name, c_size_t) for name in ("width", "height", "depth")]


class Pitched(ctypes.Structure):
    _fields_ = [("ptr", c_void_p), ("pitch", c_size_t), ("xsize", c_size_t),
                ("ysize", c_size_t)]


class Copy3d(ctypes.Structure):
    _fields_ = [("from_array", c_void_p), ("from_pos", Extent), ("from_ptr", Pitched),
                ("to_array", c_void_p), ("to_pos", Extent), ("to_ptr", Pitched),
                ("extent", Extent), ("kind", c_int)]


class Fill(ctypes.Structure):
    _fields_ = [("dst", c_void_p), ("pitch", c_size_t), ("value", c_uint),
                ("element", c_uint), ("width", c_size_t), ("height", c_size_t)]


class KernelNode(ctypes.Structure):
    _fields_ = [("func", c_void_p), ("grid", Dim), ("block", Dim), ("shared", c_uint),
                ("params", ctypes.POINTER(c_void_p)), ("extra", c_void_p)]


class PoolProps(ctypes.Structure):
    _fields_ = [("alloc_type", c_int), ("handle_types", c_int), ("place", c_int),
                ("place_id", c_int), ("security", c_void_p), ("rest", ctypes.c_ubyte * 64)]


class AllocNode(ctypes.Structure):
    _fields_ = [("props", PoolProps), ("access", c_void_p), ("n_access", c_size_t),
                ("size", c_size_t), ("ptr", c_void_p)]


class PointerAttributes(ctypes.Structure):
    _fields_ = [("type", c_int), ("device", c_int), ("on_device", c_void_p),
                ("on_host", c_void_p), ("reserved", ctypes.c_long * 8)]


class Handle(ctypes.Structure):
    """Of memory or an event of another process."""
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


HOST_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p)
CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p)


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


class FatBinary:
    """A container with one entry of plain PTX, and the structure that refers to it."""

    def __init__(self, ptx):
        payload = ptx + bytes(8 - len(ptx) % 8)
        entry = struct.pack("<HHIQIIHHIIIQQQ", 1, 0x101, 64, len(payload), 0, 0, 3, 6, 75,
                            0, 0, 0x11, 0, 0) + payload
        container = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry
        self.container = ctypes.create_string_buffer(container, len(container))
        self.wrapper = ctypes.create_string_buffer(
            struct.pack("<IIQQ", 0x466243B1, 1, ctypes.addressof(self.container), 0), 24)


class Runtime:
    """One copy of the library, with a fat binary registered."""

    def __init__(self, path):
        self.path = path
        self.library = ctypes.CDLL(path)
        # A static library in a shared one hides its functions; that one finds them.
        self.find = getattr(self.library, "find_function", None)
        if self.find:
            self.find.restype = c_void_p
        self.binary = FatBinary(PTX)
        # The addresses of the program's own copies identify functions and variables.
        self.functions = {name: ctypes.create_string_buffer(1)
                          for name in ("add", "count", "fault")}
        self.variables = {name: ctypes.create_string_buffer(4) for name in ("factor", "total")}
        self.managed = c_void_p()
        self.register()

    def register(self):
        binary = c_void_p(self.hidden("RegisterFatBinary", self.binary.wrapper))
        for name, key in self.functions.items():
            self.hidden("RegisterFunction", binary, key, NAMES[name], NAMES[name], -1,
                        None, None, None, None, None)
        for name, key in self.variables.items():
            self.hidden("RegisterVar", binary, key, NAMES[name], NAMES[name], 0,
                        c_size_t(4), int(name == "factor"), 0)
        self.hidden("RegisterManagedVar", binary, byref(self.managed), NAMES["managed"],
                    NAMES["managed"], 0, c_size_t(4), 0, 0)
        self.hidden("RegisterFatBinaryEnd", binary)
        self.handle = binary

    def function(self, name, restype=c_int):
        if self.find:
            address = self.find(name.encode())
            check(address, f"there is no {name}")
            return ctypes.CFUNCTYPE(restype)(address)
        function = getattr(self.library, name)
        function.restype = restype
        return function

    def hidden(self, name, *arguments):
        return self.function(f"__cuda{name}", c_void_p)(*arguments)

    def result(self, name, *arguments):
        return self.function(f"cuda{name}")(*arguments)

    def call(self, name, *arguments):
        result = self.result(name, *arguments)
        if result:
            said = self.function("cudaGetErrorName", ctypes.c_char_p)(result)
            raise Failure(f"cuda{name}: {result} {said.decode() if said else ''}")

    def expect(self, wanted, name, *arguments):
        result = self.result(name, *arguments)
        check(result == wanted, f"cuda{name}: {result}, and {wanted} was expected")
        self.result("GetLastError")

    def made(self, name, *arguments):
        """Calls a function whose first parameter returns a handle."""
        handle = c_void_p()
        self.call(name, byref(handle), *arguments)
        return handle

    def number(self, name, *arguments):
        value = c_int(-1)
        self.call(name, byref(value), *arguments)
        return value.value

    def version(self):
        return self.number("RuntimeGetVersion")

    def memory(self, values):
        """Device memory with these values."""
        data = array("I", values)
        size = len(data) * 4
        place = self.made("Malloc", c_size_t(size))
        self.call("Memcpy", place, address(data), c_size_t(size), TO_DEVICE)
        return place

    def read(self, place, n=N):
        data = array("I", [0xdead] * n)
        self.call("Memcpy", address(data), place, c_size_t(n * 4), TO_HOST)
        return list(data)

    def launch(self, name, words, stream=None, grid=8, block=128, suffix=""):
        self.call(f"LaunchKernel{suffix}", self.functions[name], Dim(grid, 1, 1),
                  Dim(block, 1, 1), pointers(words), c_size_t(0), stream)

    def add(self, to, other, stream=None, suffix=""):
        self.launch("add", [to, other, c_uint(N)], stream, suffix=suffix)


def address(data):
    return c_void_p(data.buffer_info()[0])


def pointers(words):
    """The parameters of a kernel; the array keeps what it refers to."""
    made = (c_void_p * (len(words) or 1))(*(ctypes.addressof(word) for word in words))
    made.words = words
    return made


def numbers(first=0, step=1):
    return [(first + step * i) & 0xffffffff for i in range(N)]


def check_add(rt):
    """Whether the device still does what it is told."""
    to, other = rt.memory(numbers()), rt.memory(numbers(7, 3))
    rt.add(to, other)
    check(rt.read(to) == numbers(7, 4), "a kernel's sums are wrong")
    for place in (to, other):
        rt.call("Free", place)


def test_launch(rt):
    check_add(rt)
    factor = array("I", [10])
    rt.call("MemcpyToSymbol", rt.variables["factor"], address(factor), c_size_t(4),
            c_size_t(0), TO_DEVICE)
    to, other = rt.memory(numbers()), rt.memory(numbers(1, 1))
    rt.add(to, other)
    check(rt.read(to) == numbers(10, 11), "a constant's new value is not used")
    for _ in range(3):
        rt.launch("count", [], grid=2, block=32)
    total = array("I", [0])
    rt.call("MemcpyFromSymbol", address(total), rt.variables["total"], c_size_t(4),
            c_size_t(0), TO_HOST)
    check(total[0] == 3 * 64, f"{total[0]} threads counted themselves")
    size = c_size_t()
    rt.call("GetSymbolSize", byref(size), rt.variables["total"])
    check(size.value == 4, "the size of a symbol")
    place = rt.made("GetSymbolAddress", rt.variables["total"])
    check(rt.read(place, 1) == [3 * 64], "the address of a symbol")
    attributes = (ctypes.c_ubyte * 512)()
    rt.call("FuncGetAttributes", attributes, rt.functions["add"])
    rt.call("OccupancyMaxActiveBlocksPerMultiprocessor", byref(c_int()),
            rt.functions["add"], 128, c_size_t(0))
    rt.call("FuncSetCacheConfig", rt.functions["add"], 1)
    rt.call("LaunchCooperativeKernel", rt.functions["count"], Dim(1, 1, 1), Dim(32, 1, 1),
            pointers([]), c_size_t(0), None)
    rt.call("DeviceSynchronize")
    check(rt.read(place, 1) == [7 * 32], "a cooperative launch")


def test_device(rt):
    count = rt.number("GetDeviceCount")
    check(count >= 1, "no device")
    check(rt.number("DriverGetVersion") >= rt.version() // 1000 * 1000, "the driver is older")
    properties = ctypes.create_string_buffer(4096)
    rt.call("GetDeviceProperties", properties, 0)
    check(properties.value, "the device has no name")
    for attribute in range(1, 112):
        rt.result("DeviceGetAttribute", byref(c_int()), attribute, 0)
        rt.result("GetLastError")
    major = rt.number("DeviceGetAttribute", 75, 0)
    check(major >= 7, f"compute capability {major}")
    text = ctypes.create_string_buffer(64)
    rt.call("DeviceGetPCIBusId", text, 64, 0)
    check(rt.number("DeviceGetByPCIBusId", text) == 0, "the device at its PCI address")
    low, high = c_int(), c_int()
    rt.call("DeviceGetStreamPriorityRange", byref(low), byref(high))
    rt.call("SetDevice", 0)
    check(rt.number("GetDevice") == 0, "the current device")
    free, total = c_size_t(), c_size_t()
    rt.call("MemGetInfo", byref(free), byref(total))
    check(0 < free.value <= total.value, "free memory")
    limit = c_size_t()
    rt.call("DeviceSetLimit", 1, c_size_t(1 << 21))
    rt.call("DeviceGetLimit", byref(limit), 1)
    check(limit.value == 1 << 21, "the limit that was set")
    rt.call("GetDeviceFlags", byref(c_uint()))
    ask_entry_points(rt)
    check_add(rt)


def ask_entry_points(rt):
    """Of the driver, as applications get them. Runtimes 11 write no status."""
    for name in (b"cuMemAlloc", b"cuCtxSynchronize", b"cuMemcpyAsync"):
        function, status = c_void_p(), c_int(0)
        if rt.version() < 13000:
            rt.call("GetDriverEntryPoint", name, byref(function), c_ulonglong(0),
                    byref(status))
        else:
            rt.call("GetDriverEntryPointByVersion", name, byref(function), 12000,
                    c_ulonglong(0), byref(status))
        check(function.value and not status.value, f"the entry point of {name.decode()}")


def test_memory(rt):
    first = rt.memory(numbers(1))
    second = rt.made("Malloc", c_size_t(N * 4))
    rt.call("Memset", second, 0xab, c_size_t(N * 4))
    check(rt.read(second) == [0xabababab] * N, "a fill")
    rt.call("Memcpy", second, first, c_size_t(N * 4), ON_DEVICE)
    check(rt.read(second) == numbers(1), "a copy on the device")
    host = array("I", [0] * N)
    rt.call("Memcpy", address(host), second, c_size_t(N * 4), ANY)
    check(list(host) == numbers(1), "a copy of the default kind")
    other = array("I", [0] * N)
    rt.call("Memcpy", address(other), address(host), c_size_t(N * 4), HOST)
    check(list(other) == numbers(1), "a copy on the host")
    attributes = PointerAttributes()
    rt.call("PointerGetAttributes", byref(attributes), second)
    check(attributes.type == 2 and attributes.on_device == second.value,
          "the attributes of device memory")
    rt.call("PointerGetAttributes", byref(attributes), address(host))
    check(attributes.type == 0, "the attributes of a program's memory")
    pitch = c_size_t()
    rows = c_void_p()
    rt.call("MallocPitch", byref(rows), byref(pitch), c_size_t(40), c_size_t(25))
    check(pitch.value >= 40, "the pitch")
    rt.call("Memcpy2D", rows, pitch, address(host), c_size_t(40), c_size_t(40), c_size_t(25),
            TO_DEVICE)
    back = array("I", [0] * N)
    rt.call("Memcpy2D", address(back), c_size_t(40), rows, pitch, c_size_t(40), c_size_t(25),
            TO_HOST)
    check(list(back)[:250] == numbers(1)[:250] and back[250] == 0, "a copy of a rectangle")
    copy_array(rt, host)
    for place in (first, second, rows):
        rt.call("Free", place)
    rt.expect(INVALID_VALUE, "Free", second)
    check_add(rt)


def copy_array(rt, host):
    """A two-dimensional array of words, 10 by 20."""
    format_of = struct.pack("<5i", 32, 0, 0, 0, 1)
    made = rt.made("MallocArray", format_of, c_size_t(10), c_size_t(20), 0)
    rt.call("Memcpy2DToArray", made, c_size_t(0), c_size_t(0), address(host), c_size_t(40),
            c_size_t(40), c_size_t(20), TO_DEVICE)
    back = array("I", [0] * 200)
    copy = Copy3d(from_array=made, to_ptr=Pitched(address(back), 40, 10, 20),
                  extent=Extent(10, 20, 1), kind=TO_HOST)
    rt.call("Memcpy3D", byref(copy))
    check(list(back) == list(host)[:200], "a copy from an array")
    rt.call("FreeArray", made)


def test_streams(rt):
    stream, other = rt.made("StreamCreate"), rt.made("StreamCreateWithFlags", NON_BLOCKING)
    rt.made("StreamCreateWithPriority", NON_BLOCKING, -1)
    begin, end = rt.made("EventCreate"), rt.made("EventCreate")
    to, one = rt.memory(numbers()), rt.memory([1] * N)
    rt.call("EventRecord", begin, stream)
    for _ in range(20):
        rt.add(to, one, stream)
    rt.call("EventRecord", end, stream)
    rt.call("StreamWaitEvent", other, end, 0)
    rt.add(to, one, other)
    host = rt.made("MallocHost", c_size_t(N * 4))
    rt.call("MemcpyAsync", host, to, c_size_t(N * 4), TO_HOST, other)
    rt.call("StreamSynchronize", other)
    check(list((c_uint * N).from_address(host.value)) == numbers(21), "two streams' order")
    elapsed = c_float(-1)
    rt.call("EventElapsedTime", byref(elapsed), begin, end)
    check(0 <= elapsed.value < 1e6, f"{elapsed.value} ms elapsed")
    check(rt.result("StreamQuery", stream) in (0, NOT_READY), "the state of a stream")
    rt.call("EventSynchronize", end)
    rt.call("EventQuery", end)
    run_callbacks(rt, stream)
    for name, handles in (("EventDestroy", (begin, end)), ("StreamDestroy", (stream, other)),
                          ("FreeHost", (host,)), ("Free", (to, one))):
        for handle in handles:
            rt.call(name, handle)


def run_callbacks(rt, stream):
    said = []
    function = HOST_FUNCTION(lambda data: said.append(("function", data)))
    callback = CALLBACK(lambda _stream, status, data: said.append((status, data)))
    rt.call("LaunchHostFunc", stream, function, c_void_p(11))
    rt.call("StreamAddCallback", stream, callback, c_void_p(12), 0)
    rt.call("StreamSynchronize", stream)
    check(said == [("function", 11), (0, 12)], f"the functions of a stream: {said}")


def test_pools(rt):
    stream = rt.made("StreamCreate")
    pool = rt.made("DeviceGetDefaultMemPool", 0)
    keep = c_ulonglong(1 << 20)
    rt.call("MemPoolSetAttribute", pool, 4, byref(keep))
    for turn in range(3):
        to = rt.made("MallocAsync", c_size_t(N * 4), stream)
        rt.call("MemsetAsync", to, 0, c_size_t(N * 4), stream)
        other = rt.made("MallocFromPoolAsync", c_size_t(N * 4), pool, stream)
        data = array("I", numbers(turn))
        rt.call("MemcpyAsync", other, address(data), c_size_t(N * 4), TO_DEVICE, stream)
        rt.add(to, other, stream)
        rt.call("StreamSynchronize", stream)
        check(rt.read(to) == numbers(turn), "sums in memory of a pool")
        for place in (to, other):
            rt.call("FreeAsync", place, stream)
    rt.call("StreamSynchronize", stream)
    used = c_ulonglong(1)
    rt.call("MemPoolGetAttribute", pool, 7, byref(used))  # of memory in use
    check(used.value == 0, f"{used.value} bytes of the pool remain in use")
    rt.call("MemPoolTrimTo", pool, c_size_t(0))
    props = PoolProps(alloc_type=1, place=1)
    own = rt.made("MemPoolCreate", byref(props))
    place = rt.made("MallocFromPoolAsync", c_size_t(N * 4), own, stream)
    rt.call("FreeAsync", place, stream)
    rt.call("StreamSynchronize", stream)
    rt.call("MemPoolDestroy", own)


def end_capture(rt, stream):
    graph = c_void_p()
    rt.call("StreamEndCapture", stream, byref(graph))
    return graph


def run_graph(rt, graph, stream, times=1):
    made = rt.made("GraphInstantiateWithFlags", graph, c_ulonglong(0))
    for _ in range(times):
        rt.call("GraphLaunch", made, stream)
    rt.call("StreamSynchronize", stream)
    rt.call("GraphExecDestroy", made)
    rt.call("GraphDestroy", graph)


def test_graphs(rt):
    stream = rt.made("StreamCreate")
    to, one = rt.memory(numbers()), rt.memory([1] * N)
    said = []
    function = HOST_FUNCTION(said.append)
    data = array("I", [0] * N)  # pageable
    rt.call("StreamBeginCapture", stream, 0)
    rt.add(to, one, stream)
    rt.call("LaunchHostFunc", stream, function, c_void_p(3))
    rt.call("MemcpyAsync", address(data), to, c_size_t(N * 4), TO_HOST, stream)
    run_graph(rt, end_capture(rt, stream), stream, 2)
    check(said == [3, 3] and list(data) == numbers(2), "a captured graph")
    rt.call("StreamBeginCapture", stream, 0)
    place = rt.made("MallocAsync", c_size_t(N * 4), stream)
    rt.call("MemsetAsync", place, 1, c_size_t(N * 4), stream)
    rt.add(to, place, stream)
    rt.call("FreeAsync", place, stream)
    run_graph(rt, end_capture(rt, stream), stream, 2)
    check(rt.read(to) == numbers(2 + 2 * 0x01010101), "a captured graph with memory")
    run_nodes(rt, to, one, stream)


def run_nodes(rt, to, one, stream):
    graph = rt.made("GraphCreate", 0)
    fill = Fill(to, 0, 5, 4, N, 1)
    first = rt.made("GraphAddMemsetNode", graph, None, c_size_t(0), byref(fill))
    words = pointers([to, one, c_uint(N)])
    params = KernelNode(ctypes.addressof(rt.functions["add"]), Dim(8, 1, 1), Dim(128, 1, 1), 0,
                        words, None)
    second = rt.made("GraphAddKernelNode", graph, byref(first), c_size_t(1), byref(params))
    data = array("I", [0] * N)
    rt.made("GraphAddMemcpyNode1D", graph, byref(second), c_size_t(1), address(data), to,
            c_size_t(N * 4), TO_HOST)
    outer = rt.made("GraphCreate", 0)
    rt.made("GraphAddChildGraphNode", outer, None, c_size_t(0), graph)
    rt.call("GraphDestroy", graph)
    run_graph(rt, outer, stream)
    check(list(data) == [6] * N, "a graph of nodes")


def test_host(rt):
    other = rt.memory(numbers(3))
    host = rt.made("HostAlloc", c_size_t(N * 4), 2)  # mapped
    place = rt.made("HostGetDevicePointer", host, 0)
    values = (c_uint * N).from_address(host.value)
    values[:] = numbers(1)
    rt.add(place, other)
    rt.call("DeviceSynchronize")
    check(list(values) == numbers(4, 2), "sums in mapped memory")
    rt.call("FreeHost", host)
    data = ctypes.create_string_buffer(1 << 20)
    start = c_void_p((ctypes.addressof(data) + 65535) & -65536)
    rt.call("HostRegister", start, c_size_t(1 << 19), 2)
    place = rt.made("HostGetDevicePointer", start, 0)
    values = (c_uint * N).from_address(start.value)
    values[:] = numbers(1)
    rt.add(place, other)
    rt.call("DeviceSynchronize")
    check(list(values) == numbers(4, 2), "sums in registered memory")
    rt.call("HostUnregister", start)
    check(list(values) == numbers(4, 2), "memory that is no longer registered")


def test_managed(rt):
    place = rt.made("MallocManaged", c_size_t(N * 4), 1)
    values = (c_uint * N).from_address(place.value)
    values[:] = numbers(2)
    other = rt.memory(numbers(3))
    rt.add(place, other)
    rt.call("DeviceSynchronize")
    check(list(values) == numbers(5, 2), "sums in managed memory")
    rt.call("Free", place)
    # As the code that nvcc generates does before it accesses a managed variable.
    rt.hidden("InitModule", rt.handle)
    check(rt.managed.value, "the managed variable has no address")
    variable = c_uint.from_address(rt.managed.value)
    check(variable.value == 5, "a managed variable's first value")
    variable.value = 100
    rt.launch("count", [], grid=1, block=32)
    rt.call("DeviceSynchronize")
    check(variable.value == 132, "a managed variable that a kernel changed")


def test_reset(rt):
    for _ in range(3):
        check_add(rt)
        place = rt.memory(numbers())
        rt.made("StreamCreate")
        rt.call("DeviceReset")
        rt.expect(INVALID_VALUE, "Free", place)
    check_add(rt)


def test_errors(rt):
    shape = (Dim(1, 1, 1), Dim(32, 1, 1))
    rt.expect(INVALID_CONFIGURATION, "LaunchKernel", rt.functions["count"], Dim(1, 1, 1),
              Dim(4096, 1, 1), pointers([]), c_size_t(0), None)
    rt.expect(INVALID_DEVICE_FUNCTION, "LaunchKernel", ctypes.create_string_buffer(1), *shape,
              pointers([]), c_size_t(0), None)
    rt.expect(INVALID_SYMBOL, "GetSymbolSize", byref(c_size_t()),
              ctypes.create_string_buffer(4))
    rt.expect(INVALID_VALUE, "Memcpy", None, None, c_size_t(4), TO_DEVICE)
    check_add(rt)
    rt.launch("fault", [], grid=1, block=1)
    first = rt.result("DeviceSynchronize")
    check(first, "a kernel's trap is no error")
    for name, arguments in (("Malloc", [byref(c_void_p()), c_size_t(4)]),
                            ("DeviceSynchronize", []), ("GetLastError", [])):
        check(rt.result(name, *arguments) == first, f"cuda{name}: the error does not remain")


def test_threads(rt):
    """Each thread has a default stream: symbols with a suffix, and a handle."""
    failures = []

    def work(number):
        try:
            to, other = rt.memory(numbers(number)), rt.memory([number] * N)
            data = array("I", [0] * N)
            for _ in range(5):
                rt.add(to, other, suffix="_ptsz")
                rt.add(to, other, c_void_p(PER_THREAD))
            rt.call("MemcpyAsync_ptsz", address(data), to, c_size_t(N * 4), TO_HOST, None)
            rt.call("StreamSynchronize_ptsz", None)
            check(list(data) == numbers(11 * number), "sums of a thread")
            rt.call("Memset_ptds", to, 0, c_size_t(N * 4))
            rt.call("Memcpy_ptds", address(data), to, c_size_t(N * 4), TO_HOST)
            check(list(data) == [0] * N, "a fill of a thread")
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    check_add(rt)


def test_ipc(rt):
    """Another process adds to memory of this one, and records an event of it."""
    place, one = rt.memory(numbers()), rt.memory([1] * N)
    event = rt.made("EventCreateWithFlags", INTERPROCESS_EVENT)
    rt.add(place, one)
    rt.call("EventRecord", event, None)
    memory, shared = Handle(), Handle()
    rt.call("IpcGetMemHandle", byref(memory), place)
    rt.call("IpcGetEventHandle", byref(shared), event)
    done = subprocess.run([sys.executable, __file__, "child", rt.path,
                           bytes(memory).hex(), bytes(shared).hex()], check=False)
    check(done.returncode == 0, f"the other process: {done.returncode}")
    rt.call("EventSynchronize", event)
    check(rt.read(place) == numbers(3), "sums of another process")


def run_child(rt, memory, shared):
    place = rt.made("IpcOpenMemHandle", Handle.from_buffer_copy(bytes.fromhex(memory)), 1)
    event = rt.made("IpcOpenEventHandle", Handle.from_buffer_copy(bytes.fromhex(shared)))
    one = rt.memory([2] * N)
    stream = rt.made("StreamCreate")
    rt.call("StreamWaitEvent", stream, event, 0)
    rt.add(place, one, stream)
    rt.call("EventRecord", event, stream)
    rt.call("StreamSynchronize", stream)
    rt.call("EventDestroy", event)
    rt.call("IpcCloseMemHandle", place)


def test_mixed(*runtimes):
    """Several copies share the primary context: memory and streams of one work in another."""
    to, one = runtimes[0].memory(numbers()), runtimes[-1].memory([1] * N)
    stream = runtimes[0].made("StreamCreate")
    for _ in range(3):
        for rt in runtimes:
            rt.add(to, one, stream)
    runtimes[-1].call("StreamSynchronize", stream)
    check(runtimes[1].read(to) == numbers(3 * len(runtimes)), "sums of several runtimes")
    for rt in runtimes:
        check_add(rt)
    runtimes[1].call("DeviceReset")
    for rt in reversed(runtimes):
        check_add(rt)


SUBJECTS = {name.removeprefix("test_"): value for name, value in list(globals().items())
            if name.startswith("test_")}


def main():
    subject, *words = sys.argv[1:]
    if subject == "child":
        run_child(Runtime(words[0]), *words[1:])
        return
    runtimes = [Runtime(path) for path in words]
    SUBJECTS[subject](*runtimes)
    print(subject, *(rt.version() for rt in runtimes))


if __name__ == "__main__":
    main()
