#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of the kinds that Triton's tutorials have, compiled by Triton and launched by the
Driver API alone: PyTorch, which Triton's own launcher needs, has no CPU package on PyPI.

    kernels_triton.py vectors | softmax | matrices | norm | norm-gradient | dropout

It checks all results and fails by an exception.
"""

import ctypes
import sys
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p

import numpy
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

MINOR, MAJOR = 76, 75  # attributes of the compute capability
DYNAMIC_SHARED = 8  # attribute of a kernel
RNG = numpy.random.default_rng(1)


class Device:
    """The Driver API with a context."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context, major, minor = c_void_p(), c_int(), c_int()
        self.call("Init", 0)
        self.call("DevicePrimaryCtxRetain", byref(context), 0)
        self.call("CtxSetCurrent", context)
        self.call("DeviceGetAttribute", byref(major), MAJOR, 0)
        self.call("DeviceGetAttribute", byref(minor), MINOR, 0)
        self.target = GPUTarget("cuda", major.value * 10 + minor.value, 32)

    def call(self, name, *arguments):
        result = getattr(self.library, f"cu{name}")(*arguments)
        assert not result, f"cu{name}: {result}"

    def compile(self, function, types, constants, **options):
        names = [name for name in function.arg_names if name not in constants]
        signature = dict(zip(names, types.split())) | {name: "constexpr" for name in constants}
        return triton.compile(ASTSource(function, signature, constants), target=self.target,
                              options=options)

    def launch(self, kernel, blocks, *arguments):
        module, function, shared = c_void_p(), c_void_p(), kernel.metadata.shared
        self.call("ModuleLoadData", byref(module), kernel.asm["cubin"])
        self.call("ModuleGetFunction", byref(function), module, kernel.metadata.name.encode())
        if shared > 48 << 10:
            self.call("FuncSetAttribute", function, DYNAMIC_SHARED, shared)
        # Triton adds two pointers to scratch memory.
        words = [word_of(argument) for argument in [*arguments, None, None]]
        params = (c_void_p * len(words))(*map(ctypes.addressof, words))
        self.call("LaunchKernel", function, blocks, 1, 1, 32 * kernel.metadata.num_warps, 1, 1,
                  shared, None, params, None)
        self.call("CtxSynchronize")


class Array:
    """An array in device memory."""

    def __init__(self, device, values):
        self.device, self.like, self.place = device, values, c_void_p()
        device.call("MemAlloc_v2", byref(self.place), c_size_t(values.nbytes))
        device.call("MemcpyHtoD_v2", self.place, c_void_p(values.ctypes.data),
                    c_size_t(values.nbytes))

    def read(self):
        values = numpy.empty_like(self.like)
        self.device.call("MemcpyDtoH_v2", c_void_p(values.ctypes.data), self.place,
                         c_size_t(values.nbytes))
        return values


def word_of(argument):
    if isinstance(argument, Array):
        return c_uint64(argument.place.value)
    if argument is None:
        return c_uint64(0)
    return c_float(argument) if isinstance(argument, float) else c_int(argument)


def zeros(device, shape, kind="float32"):
    return Array(device, numpy.zeros(shape, kind))


def normal(shape, kind="float32"):
    return RNG.standard_normal(shape).astype(kind)


@triton.jit
def add(x, y, out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    there = i < n
    tl.store(out + i, tl.load(x + i, mask=there) + tl.load(y + i, mask=there), mask=there)


def run_vectors(device):
    n = 10007
    x, y, out = normal(n), normal(n), zeros(device, n)
    kernel = device.compile(add, "*fp32 *fp32 *fp32 i32", {"SIZE": 1024})
    device.launch(kernel, -(-n // 1024), Array(device, x), Array(device, y), out, n)
    assert (out.read() == x + y).all()


@triton.jit
def softmax(x, out, rows, columns, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=3):
        part = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
        powers = tl.exp(part - tl.max(part, axis=0))
        tl.store(out + row * columns + i, powers / tl.sum(powers, axis=0), mask=i < columns)


def run_softmax(device):
    rows, columns = 61, 781
    x = normal((rows, columns))
    out = zeros(device, x.shape)
    kernel = device.compile(softmax, "*fp32 *fp32 i32 i32", {"SIZE": 1024}, num_warps=8)
    device.launch(kernel, 8, Array(device, x), out, rows, columns)
    powers = numpy.exp(x - x.max(1, keepdims=True))
    assert numpy.allclose(out.read(), powers / powers.sum(1, keepdims=True), rtol=1e-5)


@triton.jit
def multiply(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) // tl.cdiv(n, N) * M + tl.arange(0, M)
    column = tl.program_id(0) % tl.cdiv(n, N) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for first in range(0, k, K):
        inner = first + tl.arange(0, K)
        left = tl.load(a + row[:, None] * k + inner[None, :],
                       mask=(row[:, None] < m) & (inner[None, :] < k), other=0.0)
        right = tl.load(b + inner[:, None] * n + column[None, :],
                        mask=(inner[:, None] < k) & (column[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    total = tl.where(total > 0, total, total / 128)
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.float16),
             mask=(row[:, None] < m) & (column[None, :] < n))


def run_matrices(device):
    m, n, k = 130, 96, 112
    a, b, c = normal((m, k), "float16"), normal((k, n), "float16"), \
        zeros(device, (m, n), "float16")
    kernel = device.compile(multiply, "*fp16 *fp16 *fp16 i32 i32 i32",
                            {"M": 64, "N": 32, "K": 32}, num_warps=4, num_stages=3)
    device.launch(kernel, -(-m // 64) * -(-n // 32), Array(device, a), Array(device, b), c,
                  m, n, k)
    total = a.astype("float64") @ b.astype("float64")
    assert numpy.allclose(c.read(), numpy.where(total > 0, total, total / 128), rtol=1e-2,
                          atol=1e-2)


@triton.jit
def norm(x, out, weight, bias, means, scales, n, eps, SIZE: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((SIZE,), dtype=tl.float32)
    squares = tl.zeros((SIZE,), dtype=tl.float32)
    for first in range(0, n, SIZE):
        i = first + tl.arange(0, SIZE)
        part = tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32)
        total += part
        squares += part * part
    mean = tl.sum(total, axis=0) / n
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / n - mean * mean + eps)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    for first in range(0, n, SIZE):
        i = first + tl.arange(0, SIZE)
        part = tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32)
        result = (part - mean) * scale * tl.load(weight + i, mask=i < n) + \
            tl.load(bias + i, mask=i < n)
        tl.store(out + row * n + i, result, mask=i < n)


def run_norm(device):
    rows, n = 20, 300
    x, weight, bias = normal((rows, n), "float16"), normal(n, "float16"), normal(n, "float16")
    out, means, scales = zeros(device, x.shape, "float16"), zeros(device, rows), \
        zeros(device, rows)
    kernel = device.compile(norm, "*fp16 *fp16 *fp16 *fp16 *fp32 *fp32 i32 fp32",
                            {"SIZE": 128}, num_warps=2)
    device.launch(kernel, rows, Array(device, x), out, Array(device, weight),
                  Array(device, bias), means, scales, n, 1e-5)
    exact = x.astype("float64")
    expected = (exact - exact.mean(1, keepdims=True)) / numpy.sqrt(
        exact.var(1, keepdims=True) + 1e-5) * weight + bias
    assert numpy.allclose(out.read(), expected, rtol=1e-2, atol=1e-2)
    assert numpy.allclose(means.read(), exact.mean(1), atol=1e-3)


@triton.jit
def gather_gradient(gradient, x, sums, locks, n, GROUPS: tl.constexpr, SIZE: tl.constexpr):
    """Rows add to one of several sums, under a lock for each."""
    row = tl.program_id(0)
    i = tl.arange(0, SIZE)
    part = tl.load(gradient + row * n + i, mask=i < n, other=0.0) * \
        tl.load(x + row * n + i, mask=i < n, other=0.0)
    lock = locks + row % GROUPS
    place = sums + row % GROUPS * n + i
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(place, tl.load(place, mask=i < n) + part, mask=i < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def add_rows(sums, out, rows, n, ROWS: tl.constexpr, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    row = tl.arange(0, ROWS)
    part = tl.load(sums + row[:, None] * n + i[None, :],
                   mask=(row[:, None] < rows) & (i[None, :] < n), other=0.0)
    tl.store(out + i, tl.sum(part, axis=0), mask=i < n)


def run_norm_gradient(device):
    rows, n, groups = 70, 200, 8
    x, gradient = normal((rows, n)), normal((rows, n))
    sums, locks, out = zeros(device, (groups, n)), zeros(device, groups, "int32"), \
        zeros(device, n)
    kernel = device.compile(gather_gradient, "*fp32 *fp32 *fp32 *i32 i32",
                            {"GROUPS": groups, "SIZE": 256}, num_warps=2)
    device.launch(kernel, rows, Array(device, gradient), Array(device, x), sums, locks, n)
    kernel = device.compile(add_rows, "*fp32 *fp32 i32 i32", {"ROWS": 16, "SIZE": 64})
    device.launch(kernel, -(-n // 64), sums, out, groups, n)
    assert numpy.allclose(out.read(), (x.astype("float64") * gradient).sum(0), atol=1e-4)


@triton.jit
def drop(x, out, n, probability, seed, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    kept = tl.rand(seed, i) > probability
    part = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(kept, part / (1 - probability), 0.0), mask=i < n)


def run_dropout(device):
    n, results = 10000, []
    x = RNG.random(n, "float32") + 1
    kernel = device.compile(drop, "*fp32 *fp32 i32 fp32 i32", {"SIZE": 1024})
    for seed in (123, 123, 512):
        out = zeros(device, n)
        device.launch(kernel, -(-n // 1024), Array(device, x), out, n, 0.5, seed)
        results.append(out.read())
    kept = results[0] != 0
    assert (results[0] == results[1]).all() and (results[0] != results[2]).any()
    assert (results[0][kept] == 2 * x[kept]).all() and 0.45 < kept.mean() < 0.55


RUNS = {"vectors": run_vectors, "softmax": run_softmax, "matrices": run_matrices,
        "norm": run_norm, "norm-gradient": run_norm_gradient, "dropout": run_dropout}


if __name__ == "__main__":
    RUNS[sys.argv[1]](Device())
    print("Triton", triton.__version__, sys.argv[1])
