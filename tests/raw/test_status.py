#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page with the state of the GPUs, read as docs/protocol.md describes it.

    test_status.py BUILD SOURCE [TEST...]
"""

import os
import re
import signal
import socket
import sys

import wire
from status import SAMPLES, SOFTGPU, STATUS_SIZE, UNKNOWN, UNUSED, WHOLE, look
from test_raw import allocate, prepare, still_serves
from wire import Channel  # pylint: disable=wrong-import-order

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import proc  # noqa: E402
import tap  # noqa: E402
from host import Host  # noqa: E402

QUOTA = 48 << 20


def test_it_has_the_devices_that_a_channel_gets(host, api):
    looker, channel = look(host), Channel(api, host.socket)
    status = looker.status()
    result, out = channel.call("vgpuDeviceInfo", device=0)
    assert result == 0
    assert [d["name"] for d in status.devices] == [out["device_name"].decode()], status
    assert status.devices[0]["uuid"] == out["uuid"]
    assert status.flags == SOFTGPU | WHOLE and status.cuda_version >= 13000, status
    assert re.fullmatch(r"[0-9]+(\.[0-9]+)+", status.driver_version), status
    assert status.devices[0]["sensors"] == {}
    assert status.devices[0]["memory_utilisation"] == UNKNOWN
    channel.close()
    looker.close()


def test_memory_is_the_share_of_the_machine(host, api):
    looker, channel = look(host), Channel(api, host.socket)
    prepare(channel)
    allocate(channel, 8 << 20)
    status = looker.wait(lambda s: s.devices[0]["used"] >= 8 << 20, "its memory")
    result, out = channel.call("cuMemGetInfo_v2")
    assert result == 0
    assert status.devices[0]["total"] == out["total"] == QUOTA
    assert status.devices[0]["used"] == out["total"] - out["free"]
    assert (status.limit, status.used) == (QUOTA, status.devices[0]["used"]), status
    channel.close()
    looker.wait(lambda s: s.devices[0]["used"] == 0, "the end of its memory")
    looker.close()


def test_processes_come_and_go(host, api):
    looker = look(host)
    looker.wait(lambda s: not s.processes, "no process")
    channels = [Channel(api, host.socket) for _ in range(2)]
    for i, channel in enumerate(channels):
        prepare(channel)
        allocate(channel, (i + 1) << 20)
    status = looker.wait(
        lambda s: sorted(p["used"] >> 20 for p in s.processes.get(os.getpid(), [])) == [1, 2],
        "both processes")
    for process in status.processes[os.getpid()]:
        assert process["uid"] == os.getuid() and process["start_time"] == 1, process
        assert process["comm"] == "raw?test", process  # as in the log
        assert 0 < process["opened_us"] <= status.updated_us, status
        assert process["utilisation"] <= 100, process
    channels[0].close()
    looker.wait(lambda s: len(s.processes[os.getpid()]) == 1, "the end of one")
    channels[1].close()
    looker.wait(lambda s: not s.processes, "the end of both")
    looker.close()


def test_who_looks_is_no_process(host, api):
    lookers = [look(host) for _ in range(8)]
    n_ready = len(re.findall("session opened", host.text()))
    for looker in lookers:
        assert not looker.status().processes
        looker.close()
    assert len(re.findall("session opened", host.text())) == n_ready
    still_serves(host, api)


def test_each_process_may_look_beside_its_session(host, api):
    with Host(host.build, vm="max-processes = 4") as four:
        channels = [Channel(api, four.socket) for _ in range(4)]
        lookers = [look(four) for _ in range(4 + 16)]
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one_more:
            one_more.connect(str(four.socket))
            assert one_more.recv(1) == b""
        four.wait_for("a further connection to .* is refused: there are too many")
        for channel in channels:
            prepare(channel)
        lookers[0].wait(lambda s: len(s.processes.get(os.getpid(), [])) == 4, "all of them")
        for each in (*channels, *lookers):
            each.close()


def test_it_stays_alive(host, _api):
    looker = look(host)
    first = looker.status().updated_us
    looker.wait(lambda s: s.updated_us > first, "the next one")
    looker.close()


def test_a_guest_that_writes_into_it_hurts_only_itself(host, api):
    looker, other = look(host), look(host)
    for garbage in (b"\xff", b"\x00", b"\x01"):
        looker.memory[looker.at : looker.at + STATUS_SIZE] = garbage * STATUS_SIZE
        looker.wait(lambda s: len(s.devices) == 1, "it to be renewed")
    assert len(other.status().devices) == 1
    still_serves(host, api)
    looker.close()
    other.close()


def test_another_broker_goes_on(host, api):
    looker, channel = look(host), Channel(api, host.socket)
    prepare(channel)
    allocate(channel, 3 << 20)
    looker.wait(lambda s: s.processes, "the process")
    os.kill(proc.broker_of(host), signal.SIGKILL)
    then = looker.status().updated_us
    status = looker.wait(lambda s: s.updated_us > then + 400_000, "the next broker")
    assert status.processes[os.getpid()][0]["used"] == 3 << 20, status
    channel.close()
    looker.wait(lambda s: not s.processes, "the end of the process")
    looker.close()


def test_samples_are_of_the_last_seconds(host, _api):
    looker = look(host)
    first = looker.status()
    status = looker.wait(
        lambda s: len(s.samples[0]) > 2 and s.updated_us > first.updated_us, "a sample")
    times = [sample[0] for sample in status.samples[0]]
    assert len(set(times)) == len(times) <= SAMPLES and times[-1] == status.updated_us
    assert status.updated_us - times[0] < 60_000_000, status
    # Power and clocks are unknown of software, utilisation is not.
    assert {sample[1:4] for sample in status.samples[0]} == {((1 << 32) - 1, 65535, 65535)}
    assert all(sample[4] <= 100 for sample in status.samples[0]), status
    # Who comes later sees what was before.
    later = look(host)
    assert later.status().samples[0][0][0] < later.status().updated_us
    later.close()
    looker.close()


def test_each_device_has_its_own_use(host, api):
    with Host(host.build, extra="softgpu-devices = 3", vm="device-memory = 64M") as three:
        looker = look(three)
        channels = [Channel(api, three.socket) for _ in range(2)]
        for i, channel in enumerate(channels):
            prepare(channel, i)
            allocate(channel, (i + 1) << 20)
        # The first one has a context on the second device, too, and no memory there.
        channels[0].call("cuDevicePrimaryCtxRetain", dev=1)
        status = looker.wait(
            lambda s: sorted(tuple(use[0] for use in p["uses"])
                             for p in s.processes.get(os.getpid(), []))
            == [(1 << 20, 0, UNUSED), (UNUSED, 2 << 20, UNUSED)], "the use of each")
        assert [d["used"] for d in status.devices] == [1 << 20, 2 << 20, 0], status
        assert status.used == 3 << 20 and status.limit == 64 << 20, status
        assert all(d["total"] == 64 << 20 for d in status.devices), status
        assert status.devices[2]["utilisation"] == 0, status
        # Software is as near as can be: they know it, and can access and count there.
        assert status.peers == [[0, 7, 7], [7, 0, 7], [7, 7, 0]], status
        assert status.distances == [[0] * 3] * 3, status
        for channel in channels:
            channel.close()
        looker.wait(lambda s: not any(d["used"] for d in s.devices), "the end of both")
        looker.close()


def test_a_process_that_has_just_opened_is_on_its_devices_only(host, api):
    """A page that a new connection gets is written at once, before the next look at all
    workers."""
    with Host(host.build, extra="softgpu-devices = 3", vm="device-memory = 64M") as three:
        look(three).close()
        for _ in range(10):
            channel = Channel(api, three.socket)
            prepare(channel, 1)
            allocate(channel, 1 << 20)
            looker = look(three)
            status = looker.status()
            (process,) = status.processes[os.getpid()]
            assert [use[0] for use in process["uses"]] == [UNUSED, 1 << 20, UNUSED], status
            assert [d["used"] for d in status.devices] == [0, 1 << 20, 0], status
            assert 0 < process["opened_us"] <= status.updated_us, status
            channel.close()
            looker.wait(lambda s: not s.processes, "its end")
            looker.close()


def test_a_host_without_warm_workers_finds_its_devices(host, _api):
    with Host(host.build, extra="warm-workers = 0") as cold:
        looker = look(cold)
        assert looker.status().devices
        looker.close()


def main():
    build, source, *wanted = sys.argv[1:]
    api = wire.Api(os.path.join(source, "protocol/api"))
    with Host(build, vm=f"device-memory = {QUOTA >> 20}M") as host:
        return tap.run(tap.functions(globals(), host, api, only=wanted),
                       lambda: print(host.text()[-4000:], file=sys.stderr))


if __name__ == "__main__":
    sys.exit(main())
