#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: looking.py BUILD [--quick]

Measures what it costs a program that launches all the time to be looked at. Windows in
which somebody looks alternate with others in which nobody does; a row is the median of
their ratios of launches, with the quartiles. The last row looks at nothing: the noise of
the machine. The program and vgpud share the processors with who looks, so pin them to some
with taskset(1) if the machine has more."""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests/lib"))

from host import Host  # noqa: E402  pylint: disable=wrong-import-position

QUICK = "--quick" in sys.argv[2:]
WINDOW_S = 1 # the least of vgpuctl top
PAIRS, DRIVERS = (2, ["null"]) if QUICK else (15, ["null", "soft"])


class Running:
    """vgpud with a program that launches, until the end of the block."""

    def __init__(self, driver):
        self.host = Host(BUILD, driver, prepare=self.prepare)

    def prepare(self, folder):
        self.control, self.folder = folder / "control", folder
        return f"ctl-socket = {self.control}\n"

    def __enter__(self):
        self.host.__enter__()
        self.program = subprocess.Popen(
            [BUILD / "tests/sharing/launching", "1", "1", "0"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, VGPU_SOCKET=str(self.host.socket)))
        assert self.program.stdout.readline() == "ready\n"
        self.program.stdin.write("go\n")
        self.program.stdin.flush()
        return self

    def __exit__(self, *_):
        self.program.communicate()
        assert self.program.returncode == 0
        self.host.__exit__()

    def ctl(self, *words):
        return [BUILD / "host-daemon/ctl/vgpuctl", "--socket", self.control, *words]

    def rate(self):
        """Launches a second in a window."""
        shown = json.loads(subprocess.run(
            self.ctl("top", "--once", "--json", "--interval", str(WINDOW_S)), check=True,
            stdout=subprocess.PIPE).stdout)
        return shown["processes"][0]["launches_per_second"]


class Nobody:
    """Looks at nothing."""

    def __init__(self, running):
        self.running = running

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


class Trace(Nobody):
    """vgpuctl trace"""

    def __enter__(self):
        # Until it is stopped.
        self.process = subprocess.Popen(
            self.running.ctl("trace", "-o", self.running.folder / "trace", "--seconds", "60",
                             "raw"), stdout=subprocess.DEVNULL)
        time.sleep(0.2)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        # Workers stop when nobody has asked for some seconds, or at once if they are told.
        time.sleep(0.2)


class Repeated(Nobody):
    """Does something five times a second."""

    def act(self):
        raise NotImplementedError

    def run(self):
        while not self.ended.wait(0.2):
            self.act()

    def __enter__(self):
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


class Stats(Repeated):
    """vgpuctl stats, five times a second"""

    def act(self):
        subprocess.run(self.running.ctl("stats", "raw"), check=True, stdout=subprocess.DEVNULL)


class Top(Repeated):
    """vgpuctl show, as top does it, five times a second"""

    def act(self):
        subprocess.run(self.running.ctl("show", "raw"), check=True, stdout=subprocess.DEVNULL)


class Metrics(Repeated):
    """vgpu-metrics, scraped five times a second"""

    def __init__(self, running):
        super().__init__(running)
        self.folder = tempfile.TemporaryDirectory(prefix="vgpu-looking-")
        self.path = f"{self.folder.name}/metrics"

    def act(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.path)
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            reply = b""
            while got := client.recv(1 << 16):
                reply += got
            assert b" 200 " in reply.split(b"\r\n")[0] and b"vgpu_up 1" in reply, reply[:200]

    def __enter__(self):
        self.server = subprocess.Popen(
            [BUILD / "host-daemon/metrics/vgpu-metrics", "--listen", self.path, "--socket",
             self.running.control])
        while not os.path.exists(self.path):
            assert self.server.poll() is None
            time.sleep(0.01)
        super().__enter__()

    def __exit__(self, *_):
        super().__exit__()
        self.server.terminate()
        assert self.server.wait() == 0


def measure(running, kind):
    ratios = []
    for i in range(PAIRS):
        rates = {}
        # The order alternates, so that a drift of the machine cancels out.
        for looks in (i % 2 == 0, i % 2 == 1):
            with (kind if looks else Nobody)(running):
                rates[looks] = running.rate()
        ratios.append(rates[True] / rates[False])
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return middle, low, high


def main():
    print("| driver | who looks | launches, as a ratio to nobody | quartiles |")
    print("|---|---|---|---|")
    for driver in DRIVERS:
        with Running(driver) as running:
            for kind in (Metrics, Stats, Top, Trace, Nobody):
                middle, low, high = measure(running, kind)
                print(f"| {driver} | {kind.__doc__} | {middle:.3f} | {low:.3f} … {high:.3f} |",
                      flush=True)


if __name__ == "__main__":
    main()
