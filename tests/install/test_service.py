#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The unit of systemd is valid and strict enough, and vgpud works under what it demands.

    test_service.py BUILD UNIT CONFINE PROGRAM [METRICS-UNIT]

systemd itself need not run: `confine` takes away what the unit takes away, as far as a
process can do that to itself.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import tap  # noqa: E402
from host import Host  # noqa: E402

BUILD, UNIT, CONFINE, PROGRAM = map(Path, sys.argv[1:5])
UNITS = [UNIT, *map(Path, sys.argv[5:])]
EXPOSURE_MAX = 2.5  # of 10, as `systemd-analyze security` adds it up
CAPABILITIES = {"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_FOWNER": 3, "CAP_KILL": 5,
                "CAP_SETGID": 6, "CAP_SETUID": 7, "CAP_SYS_NICE": 23}  # linux/capability.h
# What RestrictNamespaces=yes takes from the groups of calls.
NAMESPACES = {"unshare", "setns"}


def settings():
    """Each setting's words; a setting that comes twice is one list."""
    found = {}
    for line in UNIT.read_text(encoding="ascii").splitlines():
        match = re.match(r"(\w+)=(.*)$", line)
        if match:
            found.setdefault(match[1], []).extend(match[2].split())
    return found


def analyze(*words):
    if not shutil.which("systemd-analyze"):
        raise unittest.SkipTest("systemd-analyze is not installed")
    return subprocess.run(["systemd-analyze", *words], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False)


def the_units_are_valid():
    for source in UNITS:
        with tempfile.TemporaryDirectory(prefix="vgpu-service-") as folder:
            unit = Path(folder) / source.name
            # It need not be installed here.
            unit.write_text(re.sub(r"^(ExecStart=|ExecStopPost=-)\S+", r"\1/bin/true",
                                   source.read_text(), flags=re.M))
            done = analyze("verify", "--man=no", unit)
        # It complains of units of this machine as well.
        ours = [line for line in done.stdout.splitlines() if source.name in line]
        assert not ours, ours


def little_is_exposed():
    for unit in UNITS:
        done = analyze("security", "--offline=true", "--no-pager", unit)
        exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert exposure and float(exposure[1]) <= EXPOSURE_MAX, done.stdout


def calls_of(name):
    """The system calls of a name or, with '@', of a group."""
    if not name.startswith("@"):
        return {name}
    done = analyze("syscall-filter", name)
    assert done.returncode == 0, done.stdout
    words = [line.strip() for line in done.stdout.splitlines()[1:]]
    return set().union(*(calls_of(word) for word in words if word and word[0] != "#"))


def write_wrapper(folder):
    """vgpud as the unit would start it; it may write to that folder."""
    unit = settings()
    calls = set().union(*map(calls_of, unit["SystemCallFilter"])) - NAMESPACES
    words = [CONFINE, "--writable", folder]
    for name in unit["CapabilityBoundingSet"]:
        words += ["--capability", CAPABILITIES[name]]
    for name in sorted(calls):
        words += ["--call", name]
    words += ["--", BUILD / "host-daemon/main/vgpud"]
    wrapper = Path(folder) / "vgpud"
    line = " ".join(shlex.quote(str(word)) for word in words)
    wrapper.write_text(f"#!/bin/sh\numask {unit['UMask'][0]}\nexec {line} \"$@\"\n")
    wrapper.chmod(0o755)
    return wrapper


def compute(host):
    environment = dict(os.environ, VGPU_SOCKET=str(host.socket),
                       LD_LIBRARY_PATH=str(BUILD / "guest-shim"))
    subprocess.run([PROGRAM], env=environment, stdout=subprocess.DEVNULL, check=True)
    return host.wait_for(r"session ended .*launches=1 ")


def control(host, *words):
    """Asks it by vgpuctl, which is not confined."""
    done = subprocess.run([BUILD / "host-daemon/ctl/vgpuctl", "--socket",
                           Path(host.folder.name) / "control", *words],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return done.stdout


def status_of(pid, name):
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return re.search(rf"^{name}:\s*(.*)$", text, re.M)[1].split()


def vgpud_works_under_it():
    if os.geteuid():
        raise unittest.SkipTest("only root can drop capabilities")
    with tempfile.TemporaryDirectory(prefix="vgpu-service-") as folder:
        # Folders for the socket and the log are below, as /run and /var/log are.
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None
        with Host(BUILD, vgpud=write_wrapper(folder), prepare=lambda folder:
                  f"\nctl-socket = {folder}/control\n") as host:
            compute(host)
            control(host, "set", "raw", "handles=77")
            assert '"handles": "77"' in control(host, "show", "raw", "--json")
            host.reload(("size = 256M", "size = 512M"))
            compute(host)
            keeper = host.process.pid
            wait_for_sandboxes(keeper)
            assert int(status_of(keeper, "CapEff")[0], 16) == sum(
                1 << CAPABILITIES[name] for name in settings()["CapabilityBoundingSet"])
            complaints = re.findall(r"^.* (?:warning|error): .*$", host.text(), re.M)
            assert not complaints, complaints


def workers_of(keeper):
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text(encoding="ascii")
    return [pid for pid in children.split()
            if Path(f"/proc/{pid}/comm").read_text(encoding="ascii") == "vgpu-worker\n"]


def is_confined(pid):
    """It has a user of its own, no capability, and a filter besides the service's."""
    return (int(status_of(pid, "Uid")[0]) >= 70000
            and int(status_of(pid, "CapEff")[0], 16) == 0
            and status_of(pid, "Seccomp_filters")[0] == "2")


def wait_for_sandboxes(keeper):
    """Until there are workers and all of them have theirs: some may begin or end now."""
    end = time.monotonic() + 60
    while True:
        try:
            workers = workers_of(keeper)
            if workers and all(map(is_confined, workers)):
                return
        except (FileNotFoundError, ProcessLookupError):
            pass
        assert time.monotonic() < end, f"workers of {keeper} without a sandbox"
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(tap.run([("the_units_are_valid", the_units_are_valid),
                      ("little_is_exposed", little_is_exposed),
                      ("vgpud_works_under_it", vgpud_works_under_it)]))
