#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kernel of CuPy, Numba or Warp, which have been told to keep PTX.

    kernels_python.py cupy | numba | warp

It checks all results and fails by an exception.
"""

import os
import site
import sys

# Packages may have files that are read where Python has its own: numba-cuda does.
for place in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
    site.addsitedir(place)

import numpy  # noqa: E402

N = 1000
VALUES = numpy.arange(N, dtype="float32")
SOURCE = r"""
extern "C" __global__ void scale(float *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] *= 3;
}
"""


def run_cupy():
    import cupy

    x = cupy.arange(N, dtype="float32")
    assert (cupy.asnumpy(x * 2 + 1) == VALUES * 2 + 1).all()
    cupy.RawKernel(SOURCE, "scale")((8,), (128,), (x, N))
    assert (cupy.asnumpy(x) == VALUES * 3).all()
    assert float(cupy.sum(x)) == VALUES.sum(dtype="float64") * 3
    return cupy.__version__


def run_numba():
    import numba
    from numba import cuda

    @cuda.jit
    def scale(x, by):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = x[i] * by + 1

    x = VALUES.copy()
    scale[8, 128](x, 2.0)
    assert (x == VALUES * 2 + 1).all()
    return numba.__version__


def run_warp():
    import warp

    @warp.kernel
    def scale(x: warp.array(dtype=float), by: float):
        i = warp.tid()
        x[i] = x[i] * by + 1.0

    x = warp.array(VALUES, device="cuda:0")
    warp.launch(scale, dim=N, inputs=[x, 2.0], device="cuda:0")
    assert (x.numpy() == VALUES * 2 + 1).all()
    return warp.__version__


if __name__ == "__main__":
    print(sys.argv[1], {"cupy": run_cupy, "numba": run_numba, "warp": run_warp}[sys.argv[1]]())
