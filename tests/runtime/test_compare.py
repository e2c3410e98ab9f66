#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong uses of the Runtime API have the same results on our runtime as on NVIDIA's.

    test_compare.py BUILD PROGRAM TWO OURS NVIDIA

The programs print the result of each call; TWO needs two devices. They run on the runtimes
of both folders, with the guest's library, without a device, and without any driver.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

from host import Host  # noqa: E402
from tap import functions, run  # noqa: E402

BUILD, MISUSE, TWO, OURS, NVIDIA = sys.argv[1:]
SHIM = os.path.join(BUILD, "guest-shim")


def output(program, runtime, host=None, driver=True, **variables):
    """What the program prints, after a check that it was this runtime."""
    with tempfile.TemporaryDirectory(prefix="vgpu-runtime-") as folder:
        environment = dict(os.environ, **variables)
        environment["LD_LIBRARY_PATH"] = runtime + (f":{SHIM}" if driver else "")
        environment.update(LD_DEBUG="libs", LD_DEBUG_OUTPUT=f"{folder}/libs",
                           VGPU_LOG="none")
        if host:
            environment["VGPU_SOCKET"] = str(host.socket)
        done = subprocess.run([program], env=environment, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        loaded = "".join(path.read_text(errors="replace")
                         for path in Path(folder).glob("libs.*"))
    assert f"calling init: {runtime}/libcudart.so" in loaded, loaded[-2000:]
    return done.returncode, done.stdout.splitlines()


def compare(program, n_least, **arguments):
    """Compares line by line; returns the exit status and the lines."""
    ours = output(program, OURS, **arguments)
    theirs = output(program, NVIDIA, **arguments)
    wrong = [f"ours: {a}\nNVIDIA's: {b}" for a, b in zip(ours[1], theirs[1]) if a != b]
    assert not wrong, "\n".join(wrong)
    assert ours == theirs, (ours[0], len(ours[1]), theirs[0], len(theirs[1]))
    assert len(ours[1]) >= n_least, ours[1]
    return ours


def test_the_results_are_the_same():
    with Host(BUILD) as host:
        code, lines = compare(MISUSE, 640, host=host)
    assert code == 0 and lines[-1] == "misuse: PASS", lines[-1]


def test_the_results_are_the_same_with_a_synchronous_guest():
    with Host(BUILD) as host:
        code, _ = compare(MISUSE, 640, host=host, VGPU_SYNC="1")
    assert code == 0


def test_the_results_are_the_same_on_two_devices():
    with Host(BUILD, extra="softgpu-devices = 2") as host:
        code, lines = compare(TWO, 80, host=host)
        assert code == 0 and lines[-1] == "two-devices: PASS", lines[-1]
        code, _ = compare(MISUSE, 640, host=host)
    assert code == 0


def test_the_results_are_the_same_without_a_device():
    with Host(BUILD) as host:
        code, _ = compare(MISUSE, 30, host=host, CUDA_VISIBLE_DEVICES="")
    assert code != 0


def test_the_results_are_the_same_without_a_driver():
    code, _ = compare(MISUSE, 30, driver=False)
    assert code != 0


if __name__ == "__main__":
    sys.exit(run(functions(globals())))
