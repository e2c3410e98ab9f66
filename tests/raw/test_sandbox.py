#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a worker that a guest has taken over can still do: from inside.

    test_sandbox.py BUILD SOURCE

The driver behind the worker is one that tries to get out (sandbox-probe.c). The same
attempts with `sandbox = no` show that it is the sandbox that refuses them.
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import wire  # noqa: E402
from host import Host  # noqa: E402
from test_raw import prepare  # noqa: E402
from wire import OPEN, Channel  # noqa: E402

# What the driver profile has to allow.
DRIVER_MAY = {"map-code", "protect-code", "open"}
# How they end without a sandbox, whoever asks: so that a refusal means something.
WITHOUT = {
    "connect": "ENOTSOCK",
    "socket": "done",
    "unix-socket": "done",
    "execve": "ENOENT",
    "fork": "done",
    "map-code": "done",
    "protect-code": "done",
    "open": "done",
    "trace": "ESRCH",
    "kill": "done",
}


def read_status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def worker_of(channel):
    return channel.u32(wire.TABLE_OFF + 192 + 20)


def attempts(build, api, driver, extra=""):
    """Has a worker try everything. Returns {attempt: outcome}, the log, its status."""
    with Host(build, driver, extra) as host:
        channel = Channel(api, host.socket)
        assert channel.state == OPEN, host.text()
        prepare(channel)
        pid = worker_of(channel)
        result, _ = channel.call("cuCtxSynchronize")
        assert result == 0, result
        host.wait_for("probe all: over")
        status = read_status(pid)
        try:
            network = os.readlink(f"/proc/{pid}/ns/net")
        except PermissionError:
            network = None
        channel.close()
        text = host.text()
    found = dict(re.findall(r"probe ([a-z-]+): (\w+)", text))
    del found["all"]
    return found, text, status, network


def check_refused(outcomes, allowed):
    wrong = {}
    for name, outcome in outcomes.items():
        if name not in allowed and outcome != "EPERM":
            wrong[name] = outcome
    assert not wrong, wrong
    assert len(outcomes) == 17, outcomes


def check_identity(status, network):
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
    if os.geteuid():
        return
    uids = {int(uid) for uid in status["Uid"].split()}
    assert len(uids) == 1 and 70000 <= uids.pop() <= 74095, status["Uid"]
    assert status["Gid"].split()[0] == status["Uid"].split()[0], status["Gid"]
    assert not status["Groups"].strip(), status["Groups"]
    assert int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0, status
    assert network != os.readlink("/proc/self/ns/net"), network


def test_strict(build, api):
    outcomes, text, status, network = attempts(
        build, api, build + "/tests/raw/libvgpu-probe-strict.so"
    )
    check_refused(outcomes, ())
    check_identity(status, network)
    for name in ("connect", "execve", "mmap", "openat"):
        assert re.search(rf"refuses system call \d+ \({name}\)", text), name


def test_driver(build, api):
    outcomes, _, status, network = attempts(
        build, api, build + "/tests/raw/libvgpu-probe-driver.so"
    )
    check_refused(outcomes, DRIVER_MAY)
    check_identity(status, network)
    for name in DRIVER_MAY:
        assert outcomes[name] == "done", outcomes


def test_off(build, api):
    outcomes, text, status, _ = attempts(
        build, api, build + "/tests/raw/libvgpu-probe-strict.so", "sandbox = no"
    )
    assert {name: outcomes[name] for name in WITHOUT} == WITHOUT, outcomes
    assert status["Seccomp"] == "0", status
    assert "sandbox = no: WORKERS RUN WITH ALL THE RIGHTS OF VGPUD" in text


def test_users_differ(build, api):
    """Where vgpud is root no worker can reach another one."""
    if os.geteuid():
        return
    with Host(build) as host:
        channels = [Channel(api, host.socket) for _ in range(3)]
        uids = {read_status(worker_of(channel))["Uid"] for channel in channels}
        for channel in channels:
            channel.close()
    assert len(uids) == 3, uids


def main():
    build, source = sys.argv[1:]
    api = wire.Api(os.path.join(source, "protocol/api"))
    for name, run in sorted(globals().items()):
        if name.startswith("test_"):
            run(build, api)
            print(f"ok   {name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
