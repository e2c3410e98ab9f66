#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of one guest process that its worker enforces, each reached by raw frames.

    test_budgets.py BUILD SOURCE
"""

import os
import re
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import proc  # noqa: E402
import tap  # noqa: E402
import wire  # noqa: E402
from host import Host, cpu_ticks  # noqa: E402
from test_raw import must_die, prepare, still_serves  # noqa: E402
from wire import EXTENT_SIZE, RING_SIZE, Channel  # noqa: E402

OUT_OF_MEMORY, INVALID_DEVICE, INVALID_CONTEXT, NOT_PERMITTED = 2, 101, 201, 800
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
"""
LIMITS = """
handles = 40
image-memory = 1M
device-memory = 64M
copy-bandwidth = 1G
max-threads = 256
"""


def fill(make, most):
    """Creates objects until one is refused. Returns the objects."""
    made = []
    while len(made) <= most:
        result, out = make()
        if result:
            assert result == OUT_OF_MEMORY, result
            return made
        made.append(out)
    raise AssertionError(f"more than {most} of them")


def test_handles(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    streams = fill(lambda: channel.call("cuStreamCreateWithPriority", flags=0, priority=0), 40)
    assert len(streams) > 20, len(streams)
    result, _ = channel.call("cuStreamDestroy_v2", hStream=streams.pop()["phStream"])
    assert result == 0, result
    result, _ = channel.call("cuStreamCreateWithPriority", flags=0, priority=0)
    assert result == 0, result
    channel.close()


def test_images(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    text = PTX + b"// padding\n" * 6000
    channel.arena_bytes(0, len(text))[:] = text
    # struct vgpu_load (vgpu/load.h): one image, no options.
    load = struct.pack("<IIQIIQQ", 1, 0, 0, 0, 0, channel.arena(), len(text))
    image = {"load": load.ljust(24 + 2 * 64 * 16 + 40, b"\0")}
    for strange in (image["load"][:-1], image["load"] + b"\0", bytes(len(image["load"]))):
        result, _ = channel.call("cuModuleLoadDataEx", load=strange)
        assert result == 1, result  # CUDA_ERROR_INVALID_VALUE
    modules = fill(lambda: channel.call("cuModuleLoadDataEx", **image), 16)
    assert len(modules) == (1 << 20) // (len(text) + 64), len(modules)
    host.wait_for("image-memory = sets the limit")
    result, _ = channel.call("cuModuleUnload", hmod=modules.pop()["module"])
    assert result == 0, result
    result, _ = channel.call("cuModuleLoadDataEx", **image)
    assert result == 0, result
    channel.close()


def test_device_memory(host, api):
    await_ends(host)
    channel = Channel(api, host.socket)
    prepare(channel)
    blocks = fill(lambda: channel.call("cuMemAlloc_v2", bytesize=8 << 20), 8)
    assert len(blocks) == 8, len(blocks)
    result, _ = channel.call("cuMemFree_v2", dptr=blocks.pop()["dptr"])
    assert result == 0, result
    result, _ = channel.call("cuMemAlloc_v2", bytesize=8 << 20)
    assert result == 0, result
    channel.close()


def memory_info(channel):
    result, out = channel.call("cuMemGetInfo_v2")
    assert result == 0, result
    return out.get("free", 0), out["total"]


def await_ends(host):
    """Until the sessions of earlier tests have given back what they had."""
    host.wait_for("session ended", len(re.findall("session opened", host.text())))


def hold(channel, n):
    """Allocates n times 8 MiB, and finds that the next allocation fails."""
    for _ in range(n):
        result, _ = channel.call("cuMemAlloc_v2", bytesize=8 << 20)
        assert result == 0, result
    result, _ = channel.call("cuMemAlloc_v2", bytesize=8 << 20)
    assert result == OUT_OF_MEMORY, result


def worker_of(channel):
    return channel.u32(wire.TABLE_OFF + 192 + 20)


def test_device_memory_of_all_processes(host, api):
    """The processes of a VM share the limit, and the part of a killed process is released,
    also if the broker is killed at the same time."""
    ended = len(re.findall("session opened", host.text()))
    host.wait_for("session ended", ended)
    channels = [Channel(api, host.socket) for _ in range(3)]
    for channel in channels:
        prepare(channel)
        assert memory_info(channel) == (64 << 20, 64 << 20), memory_info(channel)
        result, out = channel.call("vgpuDeviceInfo", device=0)
        assert (result, out["total_mem"]) == (0, 64 << 20), out
    first, second, third = channels
    blocks = []
    for channel in (first, second, first, second, first, first):
        result, out = channel.call("cuMemAlloc_v2", bytesize=8 << 20)
        assert result == 0, result
        blocks.append(out["dptr"])
    assert [memory_info(channel)[0] for channel in channels] == 3 * [16 << 20]
    hold(third, 2)
    for channel in (first, second):
        hold(channel, 0)
        assert memory_info(channel) == (0, 64 << 20), memory_info(channel)
    # Memory that one process frees is available to another.
    result, _ = first.call("cuMemFree_v2", dptr=blocks[0])
    assert result == 0, result
    hold(third, 1)

    os.kill(worker_of(second), signal.SIGKILL)
    host.wait_for("session ended", ended + 1)
    assert memory_info(third) == (16 << 20, 64 << 20), memory_info(third)
    hold(first, 2)
    second.close()

    broker = proc.broker_of(host)
    os.kill(broker, signal.SIGKILL)
    os.kill(worker_of(first), signal.SIGKILL)
    host.wait_for("session ended", ended + 2)
    assert proc.broker_of(host) != broker
    assert memory_info(third) == (40 << 20, 64 << 20), memory_info(third)
    fourth = Channel(api, host.socket)
    prepare(fourth)
    hold(fourth, 5)
    for channel in (first, third, fourth):
        channel.close()
    host.wait_for("session ended", ended + 4)
    last = Channel(api, host.socket)
    prepare(last)
    hold(last, 8)
    last.close()


def test_device_memory_that_is_shared(host, api):
    """Memory that processes share counts once, as long as one of them uses it; tokens end
    with the process that made them. A broker that is replaced knows all of it."""
    ended = len(re.findall("session opened", host.text()))
    host.wait_for("session ended", ended)
    owner, user, witness = (Channel(api, host.socket) for _ in range(3))
    for channel in (owner, user, witness):
        prepare(channel)

    def free():
        return memory_info(witness)[0] >> 20

    size = 16 << 20
    result, out = owner.call("cuMemCreate", size=size, flags=0, device=0, is_exportable=1)
    assert (result, free()) == (0, 48), (result, free())
    memory = out["handle"]
    result, out = owner.call("cuMemExportToShareableHandle", handle=memory)
    assert (result, len(out["token"])) == (0, 16), (result, out)
    token = out["token"]
    imports = []
    for _ in range(3):
        result, out = user.call("cuMemImportFromShareableHandle", token=token)
        assert (result, free()) == (0, 48), (result, free())
        imports.append(out["handle"])
    for strange in (b"", token[:-1], token + b"x", bytes(16), token[:-1] + bytes([token[-1] ^ 1])):
        result, _ = user.call("cuMemImportFromShareableHandle", token=strange)
        assert result == 1, (strange, result)  # CUDA_ERROR_INVALID_VALUE
    result, _ = user.call("cuMemRelease", handle=imports.pop())
    assert (result, free()) == (0, 48), (result, free())

    os.kill(proc.broker_of(host), signal.SIGKILL)
    result, out = user.call("cuMemImportFromShareableHandle", token=token)
    assert (result, free()) == (0, 48), (result, free())
    imports.append(out["handle"])
    os.kill(worker_of(owner), signal.SIGKILL)
    host.wait_for("session ended", ended + 1)
    assert free() == 48, free()
    result, _ = user.call("cuMemImportFromShareableHandle", token=token)
    assert result == 1, result
    hold(witness, 6)

    os.kill(proc.broker_of(host), signal.SIGKILL)
    hold(witness, 0)
    for handle in imports:
        assert free() == 0, free()
        result, _ = user.call("cuMemRelease", handle=handle)
        assert result == 0, result
    # vgpud learns of it a moment later.
    for _ in range(500):
        if free() == 16:
            break
        time.sleep(0.01)
    assert free() == 16, free()
    hold(witness, 2)
    for channel in (owner, user, witness):
        channel.close()
    host.wait_for("session ended", ended + 3)


def test_tokens_of_another_vm(host, api):
    """A token is unknown to any other VM, and a worker that guesses holds nothing."""
    before = os.environ["XDG_RUNTIME_DIR"]
    with tempfile.TemporaryDirectory() as folder:
        other = f"[vm other]\ntransport = socket\nsocket = {folder}/other\nsize = 256M\n"
        with Host(host.build, vm=other) as both:
            owner = Channel(api, both.socket)
            stranger = Channel(api, Path(folder) / "other")
            neighbour = Channel(api, both.socket)
            for channel in (owner, stranger, neighbour):
                prepare(channel)
            result, out = owner.call(
                "cuMemCreate", size=2 << 20, flags=0, device=0, is_exportable=1)
            assert result == 0, result
            result, out = owner.call("cuMemExportToShareableHandle", handle=out["handle"])
            assert result == 0, result
            for channel, expected in ((stranger, 1), (neighbour, 0), (stranger, 1)):
                result, _ = channel.call("cuMemImportFromShareableHandle", token=out["token"])
                assert result == expected, (expected, result)
            for channel in (owner, stranger, neighbour):
                channel.close()
    os.environ["XDG_RUNTIME_DIR"] = before


def test_allocations_that_are_exported(host, api):
    """Only allocations are, within a limit; what was freed is found by nobody."""
    owner, other = Channel(api, host.socket), Channel(api, host.socket)
    for channel in (owner, other):
        prepare(channel)

    def export(address):
        result, out = owner.call("cuIpcGetMemHandle", dptr=address)
        return result, out.get("token")

    def opened(token):
        result, out = other.call("cuMemImportFromShareableHandle", token=token)
        if not result:
            other.call("cuMemRelease", handle=out["handle"])
        return result

    size = 1 << 20
    result, out = owner.call("cuMemAlloc_v2", bytesize=size)
    assert result == 0, result
    address = out["dptr"]
    for wrong in (0, 1, address - 1, address + size, owner.window_base + owner.area,
                  owner.arena(), (1 << 64) - 1):
        assert export(wrong)[0] == 1, (hex(wrong), export(wrong))
    result, token = export(address + 77)
    assert result == 0 and len(token) == 16, (result, token)
    assert export(address)[1] == token
    assert opened(token) == 0
    assert opened(bytes(16)) == 1
    assert opened(token[:-1] + bytes([token[-1] ^ 1])) == 1
    assert owner.call("cuMemFree_v2", dptr=address)[0] == 0
    assert opened(token) == 1 and export(address)[0] == 1
    # As many as there may be, and then as before.
    results = []
    for _ in range(1200):
        result, out = owner.call("cuMemAlloc_v2", bytesize=40 << 10)
        if result:
            break
        results.append((export(out["dptr"])[0], out["dptr"]))
    assert {result for result, _ in results} <= {0, 2}, results
    for _, address in results:
        assert owner.call("cuMemFree_v2", dptr=address)[0] == 0
    result, out = owner.call("cuMemAlloc_v2", bytesize=size)
    assert result == 0 and export(out["dptr"])[0] == 0
    for channel in (owner, other):
        channel.close()
    still_serves(host, api)


def test_device_memory_that_is_changed(host, api):
    """A reload changes the limit of running and of new processes."""
    await_ends(host)
    older = Channel(api, host.socket)
    prepare(older)
    hold(older, 8)
    host.reload(("device-memory = 64M", "device-memory = 128M"))
    newer = Channel(api, host.socket)
    prepare(newer)
    assert memory_info(older) == memory_info(newer) == (64 << 20, 128 << 20)
    for channel in (newer, older):
        result, _ = channel.call("cuMemAlloc_v2", bytesize=24 << 20)
        assert result == 0, result
    hold(older, 2)
    hold(newer, 0)
    ended = len(re.findall("session ended", host.text()))
    host.reload(("device-memory = 128M", "device-memory = 64M"))
    newest = Channel(api, host.socket)  # by the new broker
    prepare(newest)
    for channel in (older, newer, newest):
        assert memory_info(channel) == (0, 64 << 20), memory_info(channel)
        hold(channel, 0)
    older.close()
    host.wait_for("session ended", ended + 1)
    hold(newer, 5)
    newer.close()
    newest.close()


def reload(host, api, *changes):
    """Returns when the new broker, which brings the limits to all processes, serves."""
    host.reload(*changes)
    Channel(api, host.socket).close()


def test_threads(host, api):
    """As many lanes as max-threads permits, also after it was changed."""
    await_ends(host)
    channel = Channel(api, host.socket)
    prepare(channel)

    def served(lanes):
        results = [channel.call("cuStreamCreateWithPriority", lane, flags=0, priority=0)[0]
                   for lane in lanes]
        # Without a context a call that is served is refused for that reason.
        assert set(results) <= {0, OUT_OF_MEMORY, INVALID_CONTEXT}, results
        return sum(result != OUT_OF_MEMORY for result in results)

    assert served(range(270)) == 256
    reload(host, api, ("max-threads = 256", "max-threads = 260"))
    assert served(range(270)) == 260
    reload(host, api, ("max-threads = 260", "max-threads = 256"))
    assert served(range(270)) == 260
    channel.submit(api.ids["vgpuLaneExit"], b"", 259, reply=False)
    assert served(range(270)) == 259
    channel.close()


def test_limits_that_are_changed(host, api):
    """A reload changes how many objects, and how much code, running processes may have."""
    channel = Channel(api, host.socket)
    prepare(channel)

    def create():
        return channel.call("cuStreamCreateWithPriority", flags=0, priority=0)

    streams = fill(create, 40)
    reload(host, api, ("handles = 40", "handles = 60"))
    more = fill(create, 40)
    assert len(more) == 20, len(more)
    # Nothing is taken away, and there is nothing new until there is less than the limit.
    reload(host, api, ("handles = 60", "handles = 40"))
    streams += more
    for left in range(len(streams) - 1, len(streams) - 21, -1):
        assert create()[0] == OUT_OF_MEMORY
        result, _ = channel.call("cuStreamDestroy_v2", hStream=streams.pop()["phStream"])
        assert (result, len(streams)) == (0, left)
    assert create()[0] == OUT_OF_MEMORY
    result, _ = channel.call("cuStreamDestroy_v2", hStream=streams.pop()["phStream"])
    assert (result, create()[0]) == (0, 0)

    text = PTX + b"// padding\n" * 6000
    channel.arena_bytes(0, len(text))[:] = text
    load = struct.pack("<IIQIIQQ", 1, 0, 0, 0, 0, channel.arena(), len(text))
    image = {"load": load.ljust(24 + 2 * 64 * 16 + 40, b"\0")}
    for _ in range(10):
        result, _ = channel.call("cuStreamDestroy_v2", hStream=streams.pop()["phStream"])
        assert result == 0, result
    reload(host, api, ("image-memory = 1M", "image-memory = 200K"))
    assert len(fill(lambda: channel.call("cuModuleLoadDataEx", **image), 16)) == 3
    reload(host, api, ("image-memory = 200K", "image-memory = 1M"))
    assert channel.call("cuModuleLoadDataEx", **image)[0] == 0
    channel.close()


def test_copies_that_are_paced(host, api):
    """Copies of two processes take as long as the bandwidth of their VM says, at least; a
    limit that is changed, or taken away, applies to them."""
    await_ends(host)
    channels = [Channel(api, host.socket) for _ in range(2)]
    size, n = 2 << 20, 8
    places = []
    for channel in channels:
        prepare(channel)
        result, out = channel.call("cuMemAlloc_v2", bytesize=size)
        assert result == 0, result
        places.append(out["dptr"])

    def duration():
        """Of n copies of each process, in both directions."""
        start = time.monotonic()
        for i in range(n):
            for channel, place in zip(channels, places):
                if i % 2:
                    result, _ = channel.call("cuMemcpyDtoHAsync_v2", dstHost=channel.arena(),
                                             srcDevice=place, ByteCount=size)
                else:
                    result, _ = channel.call("cuMemcpyHtoDAsync_v2", dstDevice=place,
                                             srcHost=channel.arena(), ByteCount=size)
                assert result == 0, result
        return time.monotonic() - start

    # All but a burst of 50 ms, and the last copy, wait for those before.
    least = (2 * n - 1) * size / (64 << 20) - 0.05
    reload(host, api, ("copy-bandwidth = 1G", "copy-bandwidth = 64M"))
    slow = duration()
    assert slow >= least, (slow, least)
    reload(host, api, ("copy-bandwidth = 64M", "copy-bandwidth = 1G"))
    fast = duration()
    print(f"    {2 * n} copies: {slow:.2f} s, and {fast:.2f} s without the limit")
    for channel in channels:
        channel.close()


def test_notices(host, api):
    """Who waits for notices: one lane, once it is armed; all others are refused."""
    await_ends(host)
    channel = Channel(api, host.socket)
    prepare(channel)
    hold(channel, 8)
    call = api.ids["vgpuNoticeNext"]
    assert channel.call("vgpuNoticeNext", 1)[0] == NOT_PERMITTED
    for device in (-1, 1, 64, 1 << 31):
        result, _ = channel.call("cuDeviceRegisterAsyncNotification", device=device)
        assert result == INVALID_DEVICE, result
    assert channel.call("vgpuNoticeNext", 1)[0] == NOT_PERMITTED
    for _ in range(2000):
        result, _ = channel.call("cuDeviceRegisterAsyncNotification", device=0)
        assert result == 0, result
    slots = {lane: channel.area + wire.SLOTS_OFF + lane * wire.SLOT_SIZE
             for lane in range(1, 200)}
    before = {lane: channel.u32(slot) for lane, slot in slots.items()}
    for lane in slots:
        channel.submit(call, lane=lane)
    channel.wait(lambda: sum(channel.u32(slots[lane]) != before[lane] for lane in slots)
                 == len(slots) - 1, "all but one are refused")
    waiting, = [lane for lane in slots if channel.u32(slots[lane]) == before[lane]]
    for lane in slots:
        if lane != waiting:
            assert channel.reply(lane).get(1, 0) == NOT_PERMITTED
    host.reload(("device-memory = 64M", "device-memory = 40M"))
    excess = api.fields["vgpuNoticeNext"]["bytes_over_budget"]
    assert channel.reply(waiting)[excess] == 24 << 20
    # A lane that waits when its session ends.
    channel.submit(call, lane=waiting)
    channel.close()
    host.reload(("device-memory = 40M", "device-memory = 64M"))
    still_serves(host, api)


def test_arena(host, api):
    """The arena is limited by 256 MiB of shared memory."""
    channel = Channel(api, host.socket)
    prepare(channel)
    runs = fill(lambda: channel.call("vgpuArenaGrow", n_extents=8), 16)
    assert runs and len(runs) * 8 + channel.n_extents <= (256 << 20) // EXTENT_SIZE
    channel.close()


def cpu_seconds(pid):
    return cpu_ticks(pid) / os.sysconf("SC_CLK_TCK")


def measure_storm(host, channel, vector, seconds=0.4):
    """Rings continuously. Returns the number of rings, the duration, and the processor time of
    broker, keeper and worker."""
    pids = proc.broker_of(host), host.process.pid, channel.u32(wire.TABLE_OFF + 192 + 20)
    before, start, n = [cpu_seconds(pid) for pid in pids], time.monotonic(), 0
    mine = time.process_time()
    while time.process_time() - mine < seconds:
        for _ in range(100):
            channel.ring_doorbell(vector)
        n += 100
    used = [cpu_seconds(pid) - then for pid, then in zip(pids, before)]
    return n, time.monotonic() - start, used


def test_storm_on_the_control_doorbell(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    n, time_s, (broker, keeper, _) = measure_storm(host, channel, 0)
    print(f"    {n} rings in {time_s:.2f} s: broker {broker:.2f} s, keeper {keeper:.2f} s")
    assert n > 5000
    assert broker < time_s / 4 and keeper < time_s / 4, (broker, keeper)
    still_serves(host, api)
    channel.close()


def test_storm_on_an_empty_ring(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    result, _ = channel.call("cuCtxSynchronize")
    assert result == 0, result
    n, time_s, (broker, _, worker) = measure_storm(host, channel, 1)
    print(f"    {n} rings in {time_s:.2f} s: worker {worker:.2f} s, broker {broker:.2f} s")
    assert n > 5000
    assert worker < time_s / 8 and broker < time_s / 10, (worker, broker)
    still_serves(host, api)
    channel.close()


def test_states_that_spin(host, api):
    """The state of the entry changes continuously, with a doorbell for each change."""
    channel = Channel(api, host.socket)
    pids = proc.broker_of(host), host.process.pid
    before, start, n = [cpu_seconds(pid) for pid in pids], time.monotonic(), 0
    mine = time.process_time()
    while time.process_time() - mine < 0.4:
        channel.state = n % 9
        channel.ring_doorbell(0)
        n += 1
    used = [cpu_seconds(pid) - then for pid, then in zip(pids, before)]
    time_s = time.monotonic() - start
    print(f"    {n} changes in {time_s:.2f} s: broker {used[0]:.2f} s, "
          f"keeper {used[1]:.2f} s")
    assert n > 1000
    assert used[0] < time_s / 2 and used[1] < time_s / 2, used
    still_serves(host, api)
    channel.close()


def test_garbage_without_end(host, api):
    """A ring full of garbage ends at its first frame."""
    channel = Channel(api, host.socket)
    prepare(channel)
    channel.write_ring(os.urandom(4096) + bytes(16))
    channel.publish(channel.tail + RING_SIZE - 4096)
    must_die(channel)
    still_serves(host, api)
    channel.close()


def main():
    build, source = sys.argv[1:]
    api = wire.Api(os.path.join(source, "protocol/api"))
    with Host(build, vm=LIMITS) as host:
        def no_broker_crashed():
            wrong = re.findall("the broker was ended by signal (?!9 ).*", host.text())
            assert not wrong, wrong

        return tap.run([*tap.functions(globals(), host, api),
                        ("no_broker_crashed", no_broker_crashed)])


if __name__ == "__main__":
    sys.exit(main())
