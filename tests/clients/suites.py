# SPDX-License-Identifier: Apache-2.0
"""All suites, by their names."""

from suite_boosting import Boosting
from suite_clang import Clang
from suite_cudart import Cudart
from suite_discovery import Discovery
from suite_example import Example
from suite_ffmpeg import Ffmpeg
from suite_halide import Halide
from suite_hashcat import Hashcat
from suite_jit import Jit
from suite_libgomp import Libgomp
from suite_libraries import Libraries
from suite_numba import Numba
from suite_nvml import Nvml
from suite_pygpu import Pygpu
from suite_python import Python
from suite_samples import Samples

SUITES = {suite.name: suite for suite in (
    Libgomp, Halide, Hashcat, Ffmpeg, Pygpu, Clang, Cudart, Jit, Libraries, Boosting, Discovery,
    Nvml, Python, Numba, Samples, Example,
)}
