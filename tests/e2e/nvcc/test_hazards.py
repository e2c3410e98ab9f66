#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-run finds each mistake of a program, with its kernel and its line of the source.

    test_hazards.py TOP PROGRAM

VGPU_BUILD is the build folder.
"""

import re
import subprocess
import sys
from pathlib import Path

TOP, PROGRAM = Path(sys.argv[1]), sys.argv[2]
SOURCE = (TOP / "tests/e2e/nvcc/hazards.cu").read_text(encoding="utf-8").splitlines()
ALL = ["--check-memory", "--check-races", "--check-uninitialised"]


def line_of(text):
    """The number of the only line that has this text."""
    found = [i + 1 for i, line in enumerate(SOURCE) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


def run(mistake, *options):
    return subprocess.run([TOP / "scripts/vgpu-run", *options, "--", PROGRAM, mistake],
                          text=True, capture_output=True, timeout=100, check=False)


def check(done, status, patterns):
    """All lines that vgpu-run prints are these."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("vgpu-run: ")]
    assert done.returncode == status, done
    assert len(lines) == len(patterns), done.stderr
    for line, pattern in zip(sorted(lines), patterns):
        assert re.search(pattern, line), (line, pattern)


def main():
    write, read = line_of("tile[threadIdx.x] = data["), line_of("tile[N - 1 - ")
    neighbours = line_of("to[i] = from[i]")
    place = rf"line \d+, hazards\.cu:{neighbours}; the address is"
    check(run("none", *ALL, "--check-fatal"), 0, [])
    check(run("race"), 0, [])
    race = run("race", "--check-races")
    assert race.returncode == 1, race
    lines = [line for line in race.stderr.splitlines() if line.startswith("vgpu-run: ")]
    assert lines and all(re.match(
        r"vgpu-run: softgpu-check: (read after write|write after read) \(0x\w+\) in "
        r"_Z7reverseILb0EEvPi, block \(0, 0, 0\), thread \(\d+, 0, 0\), line \d+, "
        rf"hazards\.cu:({write}|{read}); the earlier access is of thread \(\d+, 0, 0\), "
        rf"line \d+, hazards\.cu:({write}|{read})$", line) for line in lines), lines
    check(run("memory"), 0, [])
    check(run("memory", *ALL), 1, [
        r"CUDA error 700: illegal address \(0x\w+\) in _Z14sum_neighboursPKiPii, block "
        rf"\(0, 0, 0\), thread \(255, 0, 0\), {place} 0 bytes past the end of an "
        "allocation of 1024 bytes"])
    check(run("freed", *ALL), 1, [
        rf"CUDA error 700: .*{place} 0 bytes into memory of 1024 bytes at 0x\w+ that was "
        "freed"])
    check(run("uninitialised", *ALL), 1, 2 * [
        rf"softgpu-check: a load of memory that nothing has written .*{place}"])
    check(run("uninitialised", "--check-races"), 0, [])
    columns = line_of("sum += from[i * 16")
    check(run("many", "--check-uninitialised"), 1, 11 * [
        rf"softgpu-check: a load of memory that nothing has written .*:{columns}; "])
    check(run("uninitialised", "--check-uninitialised", "--check-fatal"), 1, [
        r"CUDA error 719: a load of memory that nothing has written",
        r"softgpu-check: a load of memory that nothing has written"])
    check(run("shared", *ALL), 1, [
        r"softgpu-check: a load of shared memory that nothing has written \(0x0\) in "
        r"_Z9read_tilePi, block \(0, 0, 0\), thread \(0, 0, 0\), line \d+, hazards\.cu:"
        rf"{line_of('to[threadIdx.x] = tile[threadIdx.x]')}$"])
    check(run("beyond", *ALL), 1, [
        r"CUDA error 700: illegal address \(0x3fc\) in _Z9read_tilePi, .*, "
        rf"hazards\.cu:{line_of('tile[threadIdx.x] = threadIdx.x')}; shared memory has "
        "1020 bytes, 1020 of them dynamic$"])


main()
