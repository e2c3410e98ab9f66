#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of NVIDIA's libraries of algorithms, by their C interfaces.

    libraries.py SUBJECT LIBRARY

It compares all results with its own, and fails by an exception.
"""

import ctypes
import math
import struct
import sys
from ctypes import byref, c_double, c_float, c_int, c_int64, c_longlong, c_size_t, c_void_p

F32, F16 = 0, 2  # cudaDataType
COMPUTE_F32 = 68


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def near(what, found, expected, tolerance):
    check(len(found) == len(expected), f"{what}: {len(found)} numbers, not {len(expected)}")
    for i, (a, b) in enumerate(zip(found, expected)):
        check(abs(a - b) <= tolerance, f"{what}: number {i} is {a}, not {b}")


def numbers(n, seed):
    """From -1 to 1, the same each time, exact in 16 bits."""
    result = []
    for _ in range(n):
        seed = (seed * 1664525 + 1013904223) % 2**32
        result.append((seed >> 8) % 257 / 128 - 1)
    return result


class Memory:
    """Numbers of one format in memory of the device."""

    def __init__(self, driver, form, values):
        self.driver, self.form, self.n = driver, form, len(values)
        self.size = struct.calcsize(f"{self.n}{form}")
        self.address = c_void_p()
        driver.call("MemAlloc_v2", byref(self.address), c_size_t(self.size + 1))
        driver.call("MemcpyHtoD_v2", self.address, struct.pack(f"{self.n}{form}", *values),
                    c_size_t(self.size))

    def read(self):
        data = ctypes.create_string_buffer(self.size)
        self.driver.call("MemcpyDtoH_v2", data, self.address, c_size_t(self.size))
        return list(struct.unpack(f"{self.n}{self.form}", data.raw))


class Driver:
    """The Driver API with the primary context, which the libraries' runtime uses too."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context = c_void_p()
        self.call("Init", 0)
        self.call("DevicePrimaryCtxRetain", byref(context), 0)
        self.call("CtxSetCurrent", context)

    def call(self, name, *arguments):
        result = getattr(self.library, f"cu{name}")(*arguments)
        check(not result, f"cu{name}: {result}")

    def put(self, form, values):
        return Memory(self, form, values)

    def room(self, size):
        return self.put("b", [0] * (size + 1)).address


class Library:
    """A library whose functions return 0, most of which take a handle."""

    def __init__(self, driver, prefix, path, create="Create"):
        self.driver, self.prefix = driver, prefix
        self.library = ctypes.CDLL(path)
        self.handle = c_void_p()
        if create:
            self.plain(create, byref(self.handle))

    def plain(self, name, *arguments):
        result = getattr(self.library, self.prefix + name)(*arguments)
        check(not result, f"{self.prefix}{name}: {result}")

    def __call__(self, name, *arguments):
        self.plain(name, self.handle, *arguments)


def matrix_product(a, b, n, transposed=False):
    """Of matrices by columns."""
    return [sum((a[i * n + k] if transposed else a[k * n + i]) * b[j * n + k]
                for k in range(n)) for j in range(n) for i in range(n)]


#
# cuBLAS
#


def blas(driver, path):
    return Library(driver, "cublas", path, "Create_v2")


def blas_vectors(driver, path):
    library, n = blas(driver, path), 3000
    x, y = numbers(n, 1), numbers(n, 2)
    on_x, on_y, two, result = driver.put("f", x), driver.put("f", y), c_float(2), c_float()
    library("Saxpy_v2", n, byref(two), on_x.address, 1, on_y.address, 1)
    y = [2 * a + b for a, b in zip(x, y)]
    near("axpy", on_y.read(), y, 1e-6)
    library("Sdot_v2", n, on_x.address, 1, on_y.address, 1, byref(result))
    near("dot", [result.value], [sum(a * b for a, b in zip(x, y))], 1e-2)
    library("Snrm2_v2", n, on_x.address, 1, byref(result))
    near("nrm2", [result.value], [math.sqrt(sum(a * a for a in x))], 1e-3)
    library("Sasum_v2", n, on_x.address, 1, byref(result))
    near("asum", [result.value], [sum(abs(a) for a in x)], 1e-1)
    place = c_int()
    library("Isamax_v2", n, on_y.address, 1, byref(place))
    check(abs(y[place.value - 1]) == max(abs(b) for b in y), f"amax: {place.value}")
    library("Sscal_v2", n, byref(two), on_x.address, 1)
    near("scal", on_x.read(), [2 * a for a in x], 0)


def blas_gemv(driver, path):
    library, m, n = blas(driver, path), 60, 40
    a, x = numbers(m * n, 1), numbers(n, 2)
    on_a, on_x, on_y = driver.put("f", a), driver.put("f", x), driver.put("f", [0] * m)
    library("Sgemv_v2", 0, m, n, byref(c_float(1)), on_a.address, m, on_x.address, 1,
            byref(c_float(0)), on_y.address, 1)
    near("gemv", on_y.read(),
         [sum(a[j * m + i] * x[j] for j in range(n)) for i in range(m)], 1e-4)


def gemm(driver, path, name, form, n, transposed=False):
    library, scalar = blas(driver, path), c_float if form == "f" else c_double
    a, b = numbers(n * n, 1), numbers(n * n, 2)
    on_a, on_b, on_c = (driver.put(form, values) for values in (a, b, [0] * (n * n)))
    library(name, int(transposed), 0, n, n, n, byref(scalar(1)), on_a.address, n,
            on_b.address, n, byref(scalar(0)), on_c.address, n)
    near(name, on_c.read(), matrix_product(a, b, n, transposed), 1e-3)


def blas_gemm(driver, path):
    gemm(driver, path, "Sgemm_v2", "f", 16)


def blas_gemm_transposed(driver, path):
    gemm(driver, path, "Sgemm_v2", "f", 72, transposed=True)


def blas_gemm_large(driver, path):
    gemm(driver, path, "Sgemm_v2", "f", 128)


def blas_gemm_double(driver, path):
    gemm(driver, path, "Dgemm_v2", "d", 64)


def blas_gemm_half(driver, path):
    library, n = blas(driver, path), 32
    a, b = numbers(n * n, 1), numbers(n * n, 2)
    on_a, on_b, on_c = driver.put("e", a), driver.put("e", b), driver.put("f", [0] * (n * n))
    library("GemmEx", 0, 0, n, n, n, byref(c_float(1)), on_a.address, F16, n, on_b.address,
            F16, n, byref(c_float(0)), on_c.address, F32, n, COMPUTE_F32, -1)
    near("gemm", on_c.read(), matrix_product(a, b, n), 1e-3)


def blas_batch(driver, path):
    library, n, count = blas(driver, path), 16, 4
    a, b = numbers(n * n * count, 1), numbers(n * n * count, 2)
    on_a, on_b, on_c = (driver.put("f", values) for values in (a, b, [0] * len(a)))
    library("SgemmStridedBatched", 0, 0, n, n, n, byref(c_float(1)), on_a.address, n,
            c_longlong(n * n), on_b.address, n, c_longlong(n * n), byref(c_float(0)),
            on_c.address, n, c_longlong(n * n), count)
    expected = []
    for i in range(0, len(a), n * n):
        expected += matrix_product(a[i:i + n * n], b[i:i + n * n], n)
    near("batch", on_c.read(), expected, 1e-3)


def blas_triangle(driver, path):
    library, n = blas(driver, path), 24
    a, x = numbers(n * n, 1), numbers(n * n, 2)
    for i in range(n):
        a[i * n + i] += 8
    b = [sum(a[k * n + i] * x[j * n + k] for k in range(i + 1))
         for j in range(n) for i in range(n)]
    on_a, on_b = driver.put("f", a), driver.put("f", b)
    library("Strsm_v2", 0, 0, 0, 0, n, n, byref(c_float(1)), on_a.address, n, on_b.address, n)
    near("trsm", on_b.read(), x, 1e-4)


#
# cuSPARSE
#


def sparse_matrix(n):
    """Row offsets, columns and values."""
    offsets, columns, values, seed = [0], [], [], 5
    for _ in range(n):
        for j in range(n):
            seed = (seed * 1664525 + 1013904223) % 2**32
            if (seed >> 8) % 11 == 0:
                columns.append(j)
                values.append((seed >> 12) % 255 / 128 - 1)
        offsets.append(len(columns))
    return offsets, columns, values


def sparse(driver, path, n):
    library, matrix = Library(driver, "cusparse", path), c_void_p()
    offsets, columns, values = sparse_matrix(n)
    kept = driver.put("i", offsets), driver.put("i", columns), driver.put("f", values)
    library.plain("CreateCsr", byref(matrix), c_int64(n), c_int64(n), c_int64(len(values)),
                  *(memory.address for memory in kept), 2, 2, 0, F32)

    def product(x):
        return [sum(values[k] * x[columns[k]] for k in range(offsets[i], offsets[i + 1]))
                for i in range(n)]

    return library, matrix, product


def sparse_vector(driver, path):
    n = 150
    library, matrix, product = sparse(driver, path, n)
    x = numbers(n, 3)
    for algorithm in (0, 2, 3):  # the default, two for CSR
        on_x, on_y, size = driver.put("f", x), driver.put("f", [0] * n), c_size_t()
        vectors = c_void_p(), c_void_p()
        for vector, memory in zip(vectors, (on_x, on_y)):
            library.plain("CreateDnVec", byref(vector), c_int64(n), memory.address, F32)
        words = (0, byref(c_float(1)), matrix, vectors[0], byref(c_float(0)), vectors[1],
                 F32, algorithm)
        library("SpMV_bufferSize", *words, byref(size))
        library("SpMV", *words, driver.room(size.value))
        near("SpMV", on_y.read(), product(x), 1e-4)


def sparse_matrices(driver, path):
    n, m = 100, 6
    library, matrix, product = sparse(driver, path, n)
    b, size = numbers(n * m, 3), c_size_t()
    on_b, on_c = driver.put("f", b), driver.put("f", [0] * (n * m))
    dense = c_void_p(), c_void_p()
    for place, memory in zip(dense, (on_b, on_c)):
        library.plain("CreateDnMat", byref(place), c_int64(n), c_int64(m), c_int64(n),
                      memory.address, F32, 1)
    words = 0, 0, byref(c_float(1)), matrix, dense[0], byref(c_float(0)), dense[1], F32, 0
    library("SpMM_bufferSize", *words, byref(size))
    library("SpMM", *words, driver.room(size.value))
    expected = []
    for j in range(m):
        expected += product(b[j * n:(j + 1) * n])
    near("SpMM", on_c.read(), expected, 1e-4)


def sparse_conversion(driver, path):
    n = 100
    library, matrix, _ = sparse(driver, path, n)
    offsets, columns, values = sparse_matrix(n)
    expected = [0] * (n * n)
    for i in range(n):
        for k in range(offsets[i], offsets[i + 1]):
            expected[i * n + columns[k]] = values[k]
    dense, size, on_dense = c_void_p(), c_size_t(), driver.put("f", [7] * (n * n))
    library.plain("CreateDnMat", byref(dense), c_int64(n), c_int64(n), c_int64(n),
                  on_dense.address, F32, 2)
    library("SparseToDense_bufferSize", matrix, dense, 0, byref(size))
    library("SparseToDense", matrix, dense, 0, driver.room(size.value))
    near("SparseToDense", on_dense.read(), expected, 0)


#
# cuSOLVER
#


class System:
    """A x = b with a positive definite matrix."""

    def __init__(self, driver, path, n=32):
        self.library, self.driver, self.n = Library(driver, "cusolverDn", path), driver, n
        r = numbers(n * n, 1)
        a = matrix_product(r, r, n, transposed=True)
        for i in range(n):
            a[i * n + i] += n
        self.a, self.x = a, numbers(n, 2)
        b = [sum(a[j * n + i] * self.x[j] for j in range(n)) for i in range(n)]
        self.on_a, self.on_b = driver.put("d", a), driver.put("d", b)
        self.state = driver.put("i", [-1])

    def room(self, name, *arguments):
        """Memory for that function, and its size."""
        n = c_int()
        self.library(f"{name}_bufferSize", *arguments, byref(n))
        return self.driver.room(8 * n.value), n

    def check(self, name):
        check(self.state.read() == [0], f"{name}: info {self.state.read()}")

    def check_solution(self):
        near("solution", self.on_b.read(), self.x, 1e-9)


def solver_cholesky(driver, path):
    s = System(driver, path)
    room, size = s.room("Dpotrf", 0, s.n, s.on_a.address, s.n)
    s.library("Dpotrf", 0, s.n, s.on_a.address, s.n, room, size, s.state.address)
    s.check("potrf")
    s.library("Dpotrs", 0, s.n, 1, s.on_a.address, s.n, s.on_b.address, s.n, s.state.address)
    s.check_solution()


def solver_lu(driver, path):
    s = System(driver, path)
    pivots = driver.put("i", [0] * s.n)
    room, _ = s.room("Dgetrf", s.n, s.n, s.on_a.address, s.n)
    s.library("Dgetrf", s.n, s.n, s.on_a.address, s.n, room, pivots.address, s.state.address)
    s.check("getrf")
    s.library("Dgetrs", 0, s.n, 1, s.on_a.address, s.n, pivots.address, s.on_b.address, s.n,
              s.state.address)
    s.check_solution()


def solver_qr(driver, path):
    s = System(driver, path)
    factors = driver.put("d", [0] * s.n)
    room, size = s.room("Dgeqrf", s.n, s.n, s.on_a.address, s.n)
    s.library("Dgeqrf", s.n, s.n, s.on_a.address, s.n, factors.address, room, size,
              s.state.address)
    s.check("geqrf")
    # Q keeps lengths: the first column of A has that of R.
    near("R", [abs(s.on_a.read()[0])], [math.sqrt(sum(v * v for v in s.a[:s.n]))], 1e-9)


def solver_eigenvalues(driver, path):
    s = System(driver, path)
    values = driver.put("d", [0] * s.n)
    room, size = s.room("Dsyevd", 1, 0, s.n, s.on_a.address, s.n, values.address)
    s.library("Dsyevd", 1, 0, s.n, s.on_a.address, s.n, values.address, room, size,
              s.state.address)
    s.check("syevd")
    found, vectors = values.read(), s.on_a.read()
    near("trace", [sum(found)], [sum(s.a[i * s.n + i] for i in range(s.n))], 1e-7)
    for j in (0, s.n - 1):
        v = vectors[j * s.n:(j + 1) * s.n]
        near("an eigenvector",
             [sum(s.a[k * s.n + i] * v[k] for k in range(s.n)) for i in range(s.n)],
             [found[j] * x for x in v], 1e-7)


#
# cuRAND
#


def random_numbers(driver, path):
    # XORWOW, MRG32k3a, MTGP32, Philox, Sobol' sequences; MT19937 takes a minute to begin.
    for kind in (101, 121, 141, 161, 201):
        n, found = 2048, []
        for create in ("CreateGenerator", "CreateGeneratorHost"):
            library = Library(driver, "curand", path, None)
            library.plain(create, byref(library.handle), kind)
            if kind < 200:
                library("SetPseudoRandomGeneratorSeed", ctypes.c_ulonglong(1234))
            if create.endswith("Host"):
                host = (c_float * n)()
                library("GenerateUniform", host, c_size_t(n))
                found.append(list(host))
            else:
                memory = driver.put("f", [0] * n)
                library("GenerateUniform", memory.address, c_size_t(n))
                driver.call("CtxSynchronize")
                found.append(memory.read())
        near(f"generator {kind}", *found, 1e-6)
        check(len(set(found[0])) > n // 2, f"generator {kind} repeats itself")


#
# cuDNN
#


class Dnn(Library):
    def __init__(self, driver, path):
        super().__init__(driver, "cudnn", path)

    def tensor(self, *shape):
        place = c_void_p()
        self.plain("CreateTensorDescriptor", byref(place))
        self.plain("SetTensor4dDescriptor", place, 0, 0, *shape)
        return place

    def run(self, name, descriptor, tensors, x, n_results):
        """A function of one operation and two tensors."""
        on_x, on_y = self.driver.put("f", x), self.driver.put("f", [0] * n_results)
        self(name, *descriptor, byref(c_float(1)), tensors[0], on_x.address,
             byref(c_float(0)), tensors[1], on_y.address)
        return on_y.read()


SHAPE = 2, 3, 8, 8
SIZE = math.prod(SHAPE)


def dnn_activation(driver, path):
    library, descriptor, x = Dnn(driver, path), c_void_p(), numbers(SIZE, 1)
    tensor = library.tensor(*SHAPE)
    library.plain("CreateActivationDescriptor", byref(descriptor))
    for mode, function in ((1, lambda v: max(v, 0)), (2, math.tanh),
                           (0, lambda v: 1 / (1 + math.exp(-v)))):
        library.plain("SetActivationDescriptor", descriptor, mode, 0, c_double(0))
        found = library.run("ActivationForward", [descriptor], (tensor, tensor), x, SIZE)
        near(f"activation {mode}", found, [function(v) for v in x], 1e-6)


def dnn_pooling(driver, path):
    library, descriptor, x = Dnn(driver, path), c_void_p(), numbers(SIZE, 1)
    tensors = library.tensor(*SHAPE), library.tensor(2, 3, 4, 4)
    library.plain("CreatePoolingDescriptor", byref(descriptor))
    for mode, function in ((0, max), (1, lambda values: sum(values) / 4)):
        library.plain("SetPooling2dDescriptor", descriptor, mode, 0, 2, 2, 0, 0, 2, 2)
        found = library.run("PoolingForward", [descriptor], tensors, x, SIZE // 4)
        near(f"pooling {mode}", found,
             [function([x[image * 64 + (2 * i + a) * 8 + 2 * j + b]
                        for a in (0, 1) for b in (0, 1)])
              for image in range(6) for i in range(4) for j in range(4)], 1e-6)


def dnn_softmax(driver, path):
    library, x = Dnn(driver, path), numbers(40, 1)
    tensor, expected = library.tensor(4, 10, 1, 1), []
    for row in range(0, 40, 10):
        powers = [math.exp(v) for v in x[row:row + 10]]
        expected += [power / sum(powers) for power in powers]
    near("softmax", library.run("SoftmaxForward", (1, 0), (tensor, tensor), x, 40), expected,
         1e-6)


def dnn_bias(driver, path):
    library, x, bias = Dnn(driver, path), numbers(SIZE, 1), numbers(3, 2)
    on_x, on_bias, one = driver.put("f", x), driver.put("f", bias), byref(c_float(1))
    library("AddTensor", one, library.tensor(1, 3, 1, 1), on_bias.address, one,
            library.tensor(*SHAPE), on_x.address)
    near("bias", on_x.read(), [v + bias[i // 64 % 3] for i, v in enumerate(x)], 1e-6)


def convolution_of(x, weights, n_out):
    def at(image, channel, i, j):
        inside = 0 <= i < 8 and 0 <= j < 8
        return x[((image * 3 + channel) * 8 + i) * 8 + j] if inside else 0

    return [sum(at(image, c, i + a - 1, j + b - 1) * weights[((out * 3 + c) * 3 + a) * 3 + b]
                for c in range(3) for a in range(3) for b in range(3))
            for image in range(2) for out in range(n_out) for i in range(8) for j in range(8)]


def dnn_convolution(driver, path):
    library, n_out = Dnn(driver, path), 4
    x, weights = numbers(SIZE, 1), numbers(n_out * 27, 2)
    to, filters, operation = library.tensor(2, n_out, 8, 8), c_void_p(), c_void_p()
    tensor, expected = library.tensor(*SHAPE), convolution_of(x, weights, n_out)
    library.plain("CreateFilterDescriptor", byref(filters))
    library.plain("SetFilter4dDescriptor", filters, 0, 0, n_out, 3, 3, 3)
    library.plain("CreateConvolutionDescriptor", byref(operation))
    library.plain("SetConvolution2dDescriptor", operation, 1, 1, 1, 1, 1, 1, 1, 0)
    on_x, on_weights = driver.put("f", x), driver.put("f", weights)
    for algorithm in (0, 1, 2):  # implicit products, with indices in advance, explicit
        size, on_y = c_size_t(), driver.put("f", [0] * len(expected))
        library("GetConvolutionForwardWorkspaceSize", tensor, filters, operation, to,
                algorithm, byref(size))
        library("ConvolutionForward", byref(c_float(1)), tensor, on_x.address, filters,
                on_weights.address, operation, algorithm, driver.room(size.value), size,
                byref(c_float(0)), to, on_y.address)
        near(f"convolution {algorithm}", on_y.read(), expected, 1e-4)


#
# NCCL
#


def collective(driver, path):
    library, device = Library(driver, "nccl", path, None), c_int()
    library.plain("CommInitAll", byref(library.handle), 1, byref(device))
    x = numbers(1000, 1)
    on_x, on_y = driver.put("f", x), driver.put("f", [0] * len(x))
    library.plain("AllReduce", on_x.address, on_y.address, c_size_t(len(x)), 7, 0,
                  library.handle, None)
    driver.call("CtxSynchronize")
    near("sum of one", on_y.read(), x, 0)


SUBJECTS = {
    "blas-vectors": blas_vectors,
    "blas-gemv": blas_gemv,
    "blas-gemm": blas_gemm,
    "blas-gemm-transposed": blas_gemm_transposed,
    "blas-gemm-large": blas_gemm_large,
    "blas-gemm-double": blas_gemm_double,
    "blas-gemm-half": blas_gemm_half,
    "blas-batch": blas_batch,
    "blas-triangle": blas_triangle,
    "sparse-vector": sparse_vector,
    "sparse-matrices": sparse_matrices,
    "sparse-conversion": sparse_conversion,
    "solver-cholesky": solver_cholesky,
    "solver-lu": solver_lu,
    "solver-qr": solver_qr,
    "solver-eigenvalues": solver_eigenvalues,
    "rand": random_numbers,
    "dnn-activation": dnn_activation,
    "dnn-pooling": dnn_pooling,
    "dnn-softmax": dnn_softmax,
    "dnn-bias": dnn_bias,
    "dnn-convolution": dnn_convolution,
    "nccl": collective,
}


def main():
    subject, path = sys.argv[1:]
    try:
        SUBJECTS[subject](Driver(), path)
    except Failure as failure:
        sys.exit(f"{subject}: {failure}")
    print(f"{subject}: right")


if __name__ == "__main__":
    main()
