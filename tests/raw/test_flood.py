#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest process that holds its ring full, as vgpuctl and the others see it.

    test_flood.py BUILD SOURCE [TEST...]
"""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import tap  # noqa: E402
import wire  # noqa: E402
from host import Host  # noqa: E402
from test_raw import allocate, launch_host_function, prepare, still_serves  # noqa: E402
from wire import RING_SIZE, Channel  # noqa: E402

HEAD_OFF = 64


class Flooded(Host):
    """With a second machine, and a socket for vgpuctl."""

    def __init__(self, build):
        super().__init__(build, prepare=self.add)

    def add(self, folder):
        self.control, self.other = folder / "control", folder / "other"
        self.vm = (f"\n[vm other]\ntransport = socket\nsocket = {self.other}\n"
                   "size = 256M\n")
        return f"ctl-socket = {self.control}\n"

    def ctl(self, *arguments):
        done = subprocess.run(
            [self.build / "host-daemon/ctl/vgpuctl", "--socket", self.control, *arguments],
            text=True, timeout=60, stdout=subprocess.PIPE, check=True)
        return done.stdout

    def top(self):
        return json.loads(self.ctl("top", "--once", "--json"))


class Other:
    """The other machine, to still_serves()."""

    def __init__(self, host):
        self.socket = host.other


def fill(channel):
    """Fills the ring until the worker takes no more of it. A callback that never returns
    holds the stream up, which accepts some fills, and then the dispatcher waits."""
    launch_host_function(channel, 1)
    address = allocate(channel, 4096)
    call = channel.api.ids["cuMemsetD8Async"]
    body = channel.message("cuMemsetD8Async", dstDevice=address, uc=1, N=4096, hStream=0)
    size = len(channel.frame(call, body))
    head = -1
    # The last round began with a full ring, of which nothing has been taken for a while.
    while head != channel.u64(channel.area + HEAD_OFF):
        head = channel.u64(channel.area + HEAD_OFF)
        while channel.tail + 2 * size <= channel.u64(channel.area + HEAD_OFF) + RING_SIZE:
            channel.submit(call, body, reply=False)
        time.sleep(0.3)
    return channel.tail - head


def test_a_ring_that_is_held_full_is_seen_and_holds_up_nobody_else(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    pid = channel.u32(wire.TABLE_OFF + 192 + 20)
    n_queued = fill(channel)
    assert n_queued > RING_SIZE * 0.99, n_queued
    (process,) = json.loads(host.ctl("show", "--json", "raw"))["processes"]
    assert process["queued_bytes"] == n_queued, process
    assert " 99% " in host.ctl("show", "raw"), host.ctl("show", "raw")
    top = host.top()
    assert {vm["name"]: vm["queued_percent"] for vm in top["vms"]} == {
        "raw": 99, "other": None}, top
    # Other processes of the machine, and of the other one.
    still_serves(host, api)
    other = Channel(api, host.other)
    prepare(other)
    allocate(other, 4096)
    top = host.top()
    assert sorted(p["queued_percent"] for p in top["processes"]) == [0, 99], top
    other.close()
    still_serves(Other(host), api)
    # It ends like any other.
    channel.close()
    other = Channel(api, host.socket)
    other.wait(lambda: not host.alive(pid), "the worker's end")
    other.close()
    host.wait_for(r"session ended vm=raw .*", 3)
    assert not host.top()["processes"], host.top()


def test_a_tail_beyond_the_ring_is_shown_as_a_full_one(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    pid = channel.u32(wire.TABLE_OFF + 192 + 20)
    fill(channel)
    channel.publish(channel.tail + (1 << 62))
    (process,) = json.loads(host.ctl("show", "--json", "raw"))["processes"]
    assert process["queued_bytes"] == RING_SIZE, process
    still_serves(host, api)
    channel.close()
    other = Channel(api, host.socket)
    other.wait(lambda: not host.alive(pid), "the worker's end")
    other.close()


def main():
    build, source, *wanted = sys.argv[1:]
    api = wire.Api(os.path.join(source, "protocol/api"))
    with Flooded(build) as host:
        return tap.run(tap.functions(globals(), host, api, only=wanted),
                       lambda: print(host.text()[-4000:], file=sys.stderr))


if __name__ == "__main__":
    sys.exit(main())
