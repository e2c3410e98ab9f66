#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs on the guest library of one release and vgpud of another one.

    test_skew.py --release NAME MINOR LIBRARIES VGPUD... --probe PROGRAM PROGRAM...

Each pair of releases, one in the guest and one on the host, runs all programs over the
socket transport. LIBRARIES is the folder of libcuda.so.1. The library of the release
"next" has cuMemGetInfo as a call that its minor version added, and each of its messages a
field that no other release knows.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import unittest
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import tap  # noqa: E402
from host import Host  # noqa: E402

NOT_SUPPORTED = 801
# The first that writes versions into logs.
MINOR_OF_LOGS = 1
LIMIT_S = 300

HEADER = Path(__file__).resolve().parents[2] / "protocol/include/vgpu/ring-layout.h"
MAJOR = re.search(r"(?m)^#define VGPU_PROTOCOL_VERSION (\d+)u$", HEADER.read_text())[1]

arguments = None


@dataclass
class Release:
    name: str
    minor: int
    libraries: str
    vgpud: str


def run(program, host, guest):
    environment = dict(os.environ, VGPU_SOCKET=str(host.socket), VGPU_LOG="info",
                       LD_LIBRARY_PATH=os.path.abspath(guest.libraries))
    # The library keeps what a reader may still hold: to a sanitizer that is a leak.
    environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
    return subprocess.run([program], env=environment, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)


class Pair(unittest.TestCase):
    """One case for each pair and program, see main()."""

    def start(self, guest, release):
        host = Host(".", extra="log-level = info\n", vgpud=release.vgpud)
        host.__enter__()
        self.addCleanup(host.__exit__)
        del guest
        return host

    def must_log(self, host, said, guest, release):
        if release.minor >= MINOR_OF_LOGS:
            host.wait_for(rf"guest_protocol={MAJOR}\.{guest.minor} "
                          rf"host_protocol={MAJOR}\.{release.minor}\b")
        if guest.minor >= MINOR_OF_LOGS:
            minor = min(guest.minor, release.minor)
            self.assertIn(f"this library speaks protocol version {MAJOR}.{guest.minor}, the "
                          f"host {MAJOR}.{release.minor}: {MAJOR}.{minor} is in force", said)

    def check_program(self, program, guest, release):
        host = self.start(guest, release)
        done = run(program, host, guest)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + host.text())
        host.wait_for(r"session ended .* reason=closed")
        self.must_log(host, done.stderr, guest, release)

    def check_later_call(self, guest, release):
        host = self.start(guest, release)
        done = run(arguments.probe, host, guest)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + host.text())
        is_refused = guest.name == "next" and release.minor < guest.minor
        self.assertEqual(re.findall(r"later call: (\d+)", done.stdout),
                         [str(NOT_SUPPORTED) if is_refused else "0"] * 2)
        self.assertEqual("cuMemGetInfo_v2 is not supported" in done.stderr, is_refused)


def add_case(name, check, *parameters):
    setattr(Pair, "test_" + name, lambda self: getattr(self, check)(*parameters))


def add_cases():
    for guest, host in itertools.product(arguments.releases, repeat=2):
        pair = f"guest_{guest.name}_on_host_{host.name}"
        add_case(f"{pair}_later_call", "check_later_call", guest, host)
        for program in arguments.programs:
            add_case(f"{pair}_{Path(program).name}", "check_program", program, guest, host)


def main():
    global arguments
    parser = argparse.ArgumentParser(description="Runs programs on pairs of releases.")
    parser.add_argument("--release", nargs=4, action="append", required=True,
                        metavar=("NAME", "MINOR", "LIBRARIES", "VGPUD"))
    parser.add_argument("--probe", required=True, help="program that makes a later call")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    arguments.releases = [Release(name, int(minor), libraries, os.path.abspath(vgpud))
                          for name, minor, libraries, vgpud in arguments.release]
    add_cases()
    return tap.unittest_main()


if __name__ == "__main__":
    sys.exit(main())
