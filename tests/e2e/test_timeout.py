#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Endless kernels: with softgpu-kernel-timeout, or softgpu-launch-timeout of their VM,
their processes get 702, otherwise they run until their processes exit; another process
works in all cases.

    test_timeout.py BUILD PROGRAM
"""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from host import Host, cpu_ticks  # noqa: E402

# In each of two modes: more than processors, if there are not very many of these.
N_ENDLESS = min(os.cpu_count(), 16) // 2 + 1


def main():
    build, program = sys.argv[1:]
    limited(build, program, extra="softgpu-kernel-timeout = 4")
    limited(build, program, vm="softgpu-launch-timeout = 4")
    end_process(build, program)


def limited(build, program, **options):
    with Host(build, **options) as host:
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        environment["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        # Endless programs in both modes of the library.
        synchronous = dict(environment, VGPU_SYNC="1")
        endless = [
            subprocess.Popen([program, "endless"], env=each)
            for each in (environment, synchronous) * N_ENDLESS
        ]
        subprocess.run([program, "short"], env=environment, check=True, timeout=60)
        assert not any(each.wait(timeout=60) for each in endless)
        place = r"in spin, block \(0, 0, 0\), thread \(0, 0, 0\), line \d+"
        host.wait_for(rf"CUDA error 702: time is over .* {place}", count=len(endless))


def end_process(build, program):
    """Without a time limit the device is free when the process has exited."""
    with Host(build, extra="softgpu-threads = 1") as host:
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        environment["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        endless = subprocess.Popen([program, "endless"], env=environment)
        found = host.wait_for(rf"session opened .* pid={endless.pid} .*worker=(\d+)")
        worker = int(found.group(1))
        # The kernel runs once more time is used than by loading.
        end = time.monotonic() + 60
        before = cpu_ticks(worker)
        while cpu_ticks(worker) < before + 100:
            assert endless.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        subprocess.run([program, "short"], env=environment, check=True, timeout=60)
        assert endless.poll() is None
        endless.kill()
        endless.wait()
        host.wait_for(r"session ended", count=2)
        while host.alive(worker):
            assert time.monotonic() < end + 60, "the worker goes on"
            time.sleep(0.05)
        subprocess.run([program, "short"], env=environment, check=True, timeout=60)


if __name__ == "__main__":
    main()
