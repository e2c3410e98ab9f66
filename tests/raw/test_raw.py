#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile guests and honest ones that speak the wire themselves.

    test_raw.py BUILD SOURCE [TEST...]
"""

import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import tap  # noqa: E402
import wire  # noqa: E402
from host import Host  # noqa: E402
from wire import DEAD, RING_SIZE, Channel, Dead  # noqa: E402

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE = 1, 201, 400
NOT_READY, NOT_PERMITTED, NOT_SUPPORTED = 600, 800, 801


def prepare(channel, device=0):
    """Retains the primary context and makes it current on lane 0."""
    result, out = channel.call("cuDevicePrimaryCtxRetain", dev=device)
    assert result == 0, result
    channel.submit(
        channel.api.ids["vgpuLaneContext"],
        channel.message("vgpuLaneContext", context=out["pctx"]),
        reply=False,
    )


def allocate(channel, size):
    result, out = channel.call("cuMemAlloc_v2", bytesize=size)
    assert result == 0, result
    return out["dptr"]


def must_die(channel):
    """The channel ends because the guest broke the protocol."""
    channel.wait(lambda: channel.state == DEAD, "the channel's end")
    assert channel.reason == wire.REASON_PROTOCOL, channel.reason


def still_serves(host, api):
    """Another guest process is not affected."""
    channel = Channel(api, host.socket)
    prepare(channel)
    allocate(channel, 4096)
    channel.close()


def test_honest_guest_computes(host, api):
    channel = Channel(api, host.socket)
    result, out = channel.call("vgpuHello")
    assert result == 0 and out["n_devices"] >= 1, out
    result, out = channel.call("vgpuDeviceInfo", device=0)
    assert result == 0 and len(out["device_name"]) > 3 and len(out["uuid"]) == 16
    prepare(channel)
    p = allocate(channel, 4096)
    assert channel.shm_size <= p - channel.window_base < channel.window_size
    channel.arena_bytes(0, 4096)[:] = bytes(i % 251 for i in range(4096))
    no_word = {"word": 0xFFFFFFFF}
    result, _ = channel.call(
        "cuMemcpyHtoDAsync_v2", dstDevice=p, srcHost=channel.arena(0), ByteCount=4096, **no_word
    )
    assert result == 0, result
    result, _ = channel.call(
        "cuMemcpyDtoHAsync_v2", dstHost=channel.arena(8192), srcDevice=p, ByteCount=4096, **no_word
    )
    assert result == 0, result
    result, _ = channel.call("cuCtxSynchronize")
    assert result == 0, result
    assert channel.arena_bytes(8192, 4096) == channel.arena_bytes(0, 4096)
    channel.close()


def hostile_frame(make):
    """A test that sends one bad frame on a prepared channel."""

    def run(host, api):
        channel = Channel(api, host.socket)
        prepare(channel)
        make(channel)
        must_die(channel)
        channel.close()
        still_serves(host, api)

    return run


test_truncated_frame = hostile_frame(
    lambda c: c.write_ring(c.frame(c.api.ids["cuMemAlloc_v2"], size=64))
)
test_frame_without_header = hostile_frame(
    lambda c: c.write_ring(c.frame(c.api.ids["cuMemAlloc_v2"], size=8))
)
test_frame_of_size_zero = hostile_frame(lambda c: c.write_ring(c.frame(0, size=0)))
test_oversized_frame = hostile_frame(
    lambda c: c.write_ring(c.frame(c.api.ids["cuMemAlloc_v2"], bytes(80 << 10)))
)
test_frame_of_four_gigabytes = hostile_frame(
    lambda c: c.write_ring(c.frame(c.api.ids["cuMemAlloc_v2"], size=0xFFFFFFF0))
)
test_unknown_call_without_reply = hostile_frame(
    lambda c: c.write_ring(c.frame(0xFFFF, flags=0))
)
test_unknown_call_on_a_lane_beyond_the_slots = hostile_frame(
    lambda c: c.write_ring(c.frame(0xFFFF, lane=1024))
)
test_unknown_flags = hostile_frame(
    lambda c: c.write_ring(c.frame(c.api.ids["vgpuHello"], flags=0x4000))
)
test_lane_beyond_the_slots = hostile_frame(
    lambda c: c.write_ring(c.frame(c.api.ids["vgpuHello"], lane=1024))
)
test_lane_near_the_integer_limit = hostile_frame(
    lambda c: c.write_ring(c.frame(c.api.ids["vgpuHello"], lane=0xFFFFFFFF))
)
test_tail_that_jumps = hostile_frame(lambda c: c.publish(c.tail + RING_SIZE + 16))
test_tail_that_goes_back = hostile_frame(lambda c: c.publish(c.tail - 16))
test_tail_that_is_not_aligned = hostile_frame(lambda c: c.publish(c.tail + 8))
test_message_that_does_not_unpack = hostile_frame(
    lambda c: c.write_ring(c.frame(c.api.ids["cuMemAlloc_v2"], b"\xff" * 40))
)
test_message_with_a_length_beyond_its_end = hostile_frame(
    lambda c: c.write_ring(c.frame(c.api.ids["cuModuleGetFunction"], b"\x22\xff\xff\xff\x0fabc"))
)


def refused(result, *allowed):
    assert result in allowed, f"result {result}, expected one of {allowed}"


def launch_host_function(channel, cookie, lane=0):
    result, _ = channel.call("cuLaunchHostFunc", lane, hStream=0, cookie=cookie)
    assert result == 0, result


def next_callback(channel, lane):
    result, out = channel.call("vgpuCallbackNext", lane)
    assert result == 0, result
    return out["token"], out["cookie"]


def test_callbacks_are_handed_out_one_by_one(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    for cookie in (11, 1 << 63, 33):
        launch_host_function(channel, cookie)
    tokens = []
    for cookie in (11, 1 << 63, 33):
        token, told = next_callback(channel, 1)
        assert told == cookie, told
        tokens.append(token)
        result, _ = channel.call("cuStreamQuery", hStream=0)
        refused(result, NOT_READY)
        result, _ = channel.call("vgpuCallbackDone", 1, token=token)
        assert result == 0, result
    assert len(set(tokens)) == 3
    result, _ = channel.call("cuStreamSynchronize", hStream=0)
    assert result == 0, result
    channel.close()


def test_lies_about_callbacks_end_none(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    launch_host_function(channel, 1)
    token, _ = next_callback(channel, 1)
    for lie in (0, 1, token + 1, token ^ 1 << 32, token | 0xFFFFFFFF, (1 << 64) - 1):
        result, _ = channel.call("vgpuCallbackDone", 2, token=lie)
        refused(result, INVALID_VALUE)
    result, _ = channel.call("cuStreamQuery", hStream=0)
    refused(result, NOT_READY)
    result, _ = channel.call("vgpuCallbackDone", 2, token=token)
    assert result == 0, result
    result, _ = channel.call("vgpuCallbackDone", 2, token=token)
    refused(result, INVALID_VALUE)
    result, _ = channel.call("cuStreamSynchronize", hStream=0)
    assert result == 0, result
    channel.close()
    still_serves(host, api)


def test_second_lane_that_asks_for_callbacks_is_refused(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    cookie = api.fields["vgpuCallbackNext"]["cookie"]
    slots = {lane: channel.area + wire.SLOTS_OFF + lane * wire.SLOT_SIZE for lane in (1, 2)}
    for lane in slots:
        channel.submit(api.ids["vgpuCallbackNext"], lane=lane)
    # The second request has its reply at once, the first one when a callback is due.
    channel.wait(lambda: any(channel.u32(slot) for slot in slots.values()), "a refusal")
    second = 1 if channel.u32(slots[1]) else 2
    refused(channel.reply(second).get(1, 0), NOT_PERMITTED)
    launch_host_function(channel, 5)
    assert channel.reply(3 - second)[cookie] == 5
    channel.close()


def test_guest_that_runs_no_callback_stops_only_itself(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    pid = channel.u32(wire.TABLE_OFF + 192 + 20)
    for cookie in range(300):
        launch_host_function(channel, cookie)
    channel.submit(api.ids["cuStreamSynchronize"], channel.message("cuStreamSynchronize"), 3)
    still_serves(host, api)
    allocate(channel, 4096)
    # More than any stream accepts: now its dispatcher waits, too.
    body = channel.message("cuLaunchHostFunc", hStream=0, cookie=1)
    for _ in range(2000):
        channel.submit(api.ids["cuLaunchHostFunc"], body, reply=False)
    still_serves(host, api)
    channel.close()
    channel.wait(lambda: not host.alive(pid), "the worker's end")
    still_serves(host, api)


def test_wrong_handles_are_ordinary_errors(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    for handle in (3, 0xFFFF, 1 << 63, (1 << 64) - 1, 5 << 52 | 1 << 20, 0x1234567890AB):
        result, _ = channel.call("cuStreamDestroy_v2", hStream=handle)
        refused(result, INVALID_HANDLE, INVALID_VALUE, INVALID_CONTEXT)
        result, _ = channel.call("cuModuleUnload", hmod=handle)
        refused(result, INVALID_HANDLE, INVALID_VALUE)
        result, _ = channel.call("cuStreamSynchronize", hStream=handle)
        refused(result, INVALID_HANDLE, INVALID_VALUE, INVALID_CONTEXT)
    result, out = channel.call("cuStreamCreateWithPriority", flags=0, priority=0)
    assert result == 0
    stream = out["phStream"]
    result, _ = channel.call("cuModuleUnload", hmod=stream)  # foreign: of another kind
    refused(result, INVALID_HANDLE)
    result, _ = channel.call("cuStreamDestroy_v2", hStream=stream)
    assert result == 0
    result, _ = channel.call("cuStreamDestroy_v2", hStream=stream)  # stale
    refused(result, INVALID_HANDLE, INVALID_CONTEXT)
    allocate(channel, 4096)
    channel.close()


def test_handle_of_another_process_means_nothing(host, api):
    one, other = Channel(api, host.socket), Channel(api, host.socket)
    prepare(one)
    prepare(other)
    result, out = one.call("cuStreamCreateWithPriority", flags=0, priority=0)
    assert result == 0
    result, _ = other.call("cuStreamDestroy_v2", hStream=out["phStream"])
    refused(result, INVALID_HANDLE, INVALID_CONTEXT)
    result, _ = one.call("cuStreamDestroy_v2", hStream=out["phStream"])
    assert result == 0
    one.close()
    other.close()


def test_addresses_out_of_range_are_refused(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    p = allocate(channel, 4096)
    arena_end = channel.n_extents * wire.EXTENT_SIZE
    bad_sources = (
        0,
        0x1000,
        channel.window_base,  # the header
        channel.window_base + channel.area,  # the ring
        channel.arena(arena_end - 100),  # reaches over the end of the grant
        channel.arena(arena_end),
        channel.window_base - 4096,
        (1 << 64) - 4,
    )
    for source in bad_sources:
        result, _ = channel.call(
            "cuMemcpyHtoDAsync_v2", dstDevice=p, srcHost=source, ByteCount=4096, word=0xFFFFFFFF
        )
        refused(result, INVALID_VALUE)
    for target, size in ((p, 8192), (p + 4095, 2), (p - 1, 4096), (p, 1 << 63), (0, 1)):
        result, _ = channel.call(
            "cuMemcpyHtoDAsync_v2",
            dstDevice=target,
            srcHost=channel.arena(),
            ByteCount=size,
            word=0xFFFFFFFF,
        )
        refused(result, INVALID_VALUE)
    # source and destination that overlap are only slow or undefined, never harmful
    result, _ = channel.call("cuMemcpyDtoDAsync_v2", dstDevice=p, srcDevice=p + 8, ByteCount=64)
    refused(result, 0, INVALID_VALUE)
    allocate(channel, 4096)
    channel.close()


def test_copies_with_words_are_checked_like_any_other(host, api):
    """Staging: copies with a completion word, and words without a copy."""
    channel = Channel(api, host.socket)
    prepare(channel)
    p = allocate(channel, 4096)
    words = channel.area + (512 << 10)
    arena_end = channel.n_extents * wire.EXTENT_SIZE
    up, down = "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"

    def copy(symbol, device, host_side, size, word, value, allowed, reply=True):
        sides = {"dstDevice": device, "srcHost": host_side}
        if symbol == down:
            sides = {"dstHost": host_side, "srcDevice": device}
        values = dict(sides, ByteCount=size, word=word, word_value=value)
        if reply:
            refused(channel.call(symbol, **values)[0], *allowed)
        else:
            channel.submit(api.ids[symbol], channel.message(symbol, **values), reply=False)

    def comes(word, value):
        channel.wait(lambda: channel.u64(words + 64 * word) == value, f"word {word}")

    for symbol in (up, down):
        # words that do not exist, with valid memory
        for word in (8192, 8193, 0x7FFFFFFF, 0xFFFFFFFE):
            copy(symbol, p, channel.arena(), 16, word, 1, (INVALID_VALUE,))
            copy(symbol, p, channel.arena(), 16, word, 1, (), reply=False)
        # offsets beyond the grant, into the ring, the words, and around the end of numbers
        for side in (
            channel.arena(arena_end),
            channel.arena(arena_end - 8),
            channel.window_base + words,
            channel.window_base + channel.area,
            channel.window_base - 8,
            (1 << 64) - 8,
        ):
            copy(symbol, p, side, 16, 100, 1, (INVALID_VALUE,))
            assert channel.u64(words + 6400) == 0
        for size in ((1 << 64) - 1, (1 << 64) - p, 1 << 63, 4097):
            copy(symbol, p, channel.arena(), size, 100, 1, (INVALID_VALUE,))
            assert channel.u64(words + 6400) == 0
    # a copy that is refused without a reply frees the block, too
    copy(up, p, channel.arena(arena_end), 16, 101, 5, (), reply=False)
    comes(101, 5)
    # a copy of 0 bytes writes a word after the work submitted before
    copy(up, 0, 0, 0, 102, 7, (), reply=False)
    comes(102, 7)
    copy(up, 0, 0, 0, 0xFFFFFFFF, 7, (0,))
    copy(up, 0, 0, 0, 8192, 7, (INVALID_VALUE,))
    # several copies that share one word
    channel.arena_bytes(0, 300)[:] = bytes(i % 251 for i in range(300))
    for i in range(3):
        last = i == 2
        word = 103 if last else 0xFFFFFFFF
        copy(up, p + 100 * i, channel.arena(100 * i), 100, word, 9, (), reply=False)
    comes(103, 9)
    copy(down, p, channel.arena(4096), 300, 104, 1, (), reply=False)
    comes(104, 1)
    assert channel.arena_bytes(4096, 300) == channel.arena_bytes(0, 300)
    channel.close()
    still_serves(host, api)


def test_guest_that_never_reads_replies(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    for _ in range(5000):
        sequence = channel.submit(channel.api.ids["vgpuHello"])
        channel.wait(lambda: channel.tail - channel.u64(channel.area + 64) < RING_SIZE // 2, "room")
    channel.reply(sequence=sequence)
    allocate(channel, 4096)
    channel.close()


def test_killed_worker_ends_the_channel(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    pid = channel.u32(wire.TABLE_OFF + 192 + 20)
    assert pid > 1
    os.kill(pid, 9)
    channel.submit(channel.api.ids["vgpuHello"])
    try:
        channel.reply()
        raise AssertionError("a dead worker answered")
    except Dead:
        assert channel.reason == wire.REASON_WORKER_DIED, channel.reason
    channel.close()
    still_serves(host, api)


def test_worker_and_memory_go_with_the_guest(host, api):
    channel = Channel(api, host.socket)
    prepare(channel)
    pid = channel.u32(wire.TABLE_OFF + 192 + 20)
    channel.submit(channel.api.ids["cuCtxSynchronize"])
    channel.close()
    end = time.monotonic() + 60
    while host.alive(pid):
        assert time.monotonic() < end, "the worker outlives its guest"
        time.sleep(0.01)


def test_features_that_nobody_has_are_not_taken(host, api):
    channel = Channel(api, host.socket, features=(1 << 64) - 1)
    assert channel.state == wire.OPEN
    assert channel.u64(wire.TABLE_OFF + 192 + 8) == wire.FEATURE_UNKNOWN_CALLS
    result, _ = channel.call("vgpuHello")
    assert result == 0, result
    channel.close()


def test_features_that_are_not_offered_are_not_in_force(host, api):
    for features in (0, 1 << 63, 2):
        channel = Channel(api, host.socket, features=features)
        assert channel.u64(wire.TABLE_OFF + 192 + 8) == 0
        channel.close()


def test_guests_of_any_minor_version_are_served(host, api):
    for minor in (0, 1, 2, 1 << 31, (1 << 32) - 1):
        channel = Channel(api, host.socket, minor=minor)
        assert channel.state == wire.OPEN
        assert channel.u32(wire.TABLE_OFF + 192 + 48) == wire.PROTOCOL_MINOR
        assert channel.u32(44) == wire.PROTOCOL_MINOR
        result, _ = channel.call("vgpuHello")
        assert result == 0, result
        channel.close()


def test_calls_of_a_later_release_are_answered(host, api):
    """Numbers beyond all calls, and of calls that never reach this host."""
    channel = Channel(api, host.socket, features=wire.FEATURE_UNKNOWN_CALLS, minor=9)
    prepare(channel)
    numbers = [0xFFFF, max(api.ids.values()) + 1, api.ids["cuDriverGetVersion"]]
    for lane in (0, 1, 1023):
        for number in numbers:
            channel.submit(number, b"\x12\x03abc", lane)
            assert channel.reply(lane) == {1: NOT_SUPPORTED}
    result, reply = channel.call("cuMemAlloc_v2", bytesize=4096)
    assert result == 0 and reply["dptr"], result
    channel.close()


def test_fields_of_a_later_release_are_skipped(host, api):
    """Of each form of a value, and in any place among the known ones."""
    channel = Channel(api, host.socket, minor=9)
    prepare(channel)
    known = channel.message("cuMemAlloc_v2", bytesize=4096)
    for later in (b"\x80\x7d\x01", b"\x81\x7d12345678", b"\x82\x7d\x04more", b"\x85\x7d1234"):
        for body in (known + later, later + known, later + known + later):
            channel.submit(api.ids["cuMemAlloc_v2"], body)
            reply = channel.reply()
            assert not reply.get(1) and reply[2], reply
    channel.close()


def test_other_protocol_version_is_refused(host, api):
    channel = Channel(api, host.socket, version=99)
    assert channel.state == wire.REFUSED and channel.reason == wire.REASON_VERSION
    assert channel.u32(wire.TABLE_OFF + 192) == wire.PROTOCOL_VERSION
    channel.close()
    still_serves(host, api)


def test_header_that_lies_changes_nothing_for_the_host(host, api):
    """The host uses private copies of sizes, offsets and counts in the header."""
    channel = Channel(api, host.socket)
    prepare(channel)
    p = allocate(channel, 4096)
    kept = bytes(channel.memory[:128])
    rng = random.Random(3)
    for lie in (bytes(128), b"\xff" * 128, rng.randbytes(128), rng.randbytes(128)):
        channel.memory[:128] = lie
        channel.ring_doorbell(0)
        result, _ = channel.call("cuMemcpyDtoDAsync_v2", dstDevice=p, srcDevice=p, ByteCount=64)
        refused(result, 0, INVALID_VALUE)
        assert channel.state == wire.OPEN, channel.state
    channel.memory[:128] = kept
    channel.close()
    still_serves(host, api)


def test_a_worker_says_that_it_lives_whenever_it_is_asked(host, api):
    """The worker's reply to a guest that sees no heartbeat."""
    channel = Channel(api, host.socket)
    prepare(channel)
    for asked in (1, 2, 0xFFFFFFFF, 7):
        channel.put("I", channel.area + 8, asked)
        channel.ring_doorbell(1)
        channel.wait(lambda: channel.u32(channel.area + 136) == asked, "the answer")
    channel.close()
    still_serves(host, api)


def test_boot_nonce_that_lies_costs_its_own_memory_only(host, api):
    """A header whose boot id changes: each one ends the channels of the last."""
    channel, other = Channel(api, host.socket), Channel(api, host.socket)
    prepare(channel)
    for i in range(200):
        channel.put("16s", 128, i.to_bytes(16, "big"))
        channel.ring_doorbell(0)
    channel.wait(lambda: channel.state != wire.OPEN, "the end of the last boot's channel")
    channel.close()
    result, _ = other.call("vgpuHello")
    assert result == 0, result
    other.close()
    still_serves(host, api)


def spells(seconds, is_enough):
    """Deadlines of rounds: for so many seconds, and longer until there are enough hits.

    On a busy machine random hits take longer.
    """
    end, last = time.monotonic() + seconds, time.monotonic() + 60
    while time.monotonic() < end:
        yield end
    while not is_enough() and time.monotonic() < last:
        yield time.monotonic() + 1


def test_bytes_of_the_live_ring_are_flipped(host, api):
    """Valid calls run while another thread flips bits of the ring."""
    rng, n_deaths, n_replies = random.Random(1), 0, 0
    for end in spells(5, lambda: n_replies > 10 and n_deaths):
        channel = Channel(api, host.socket)
        stop = threading.Event()

        def flip():
            ring = channel.area + wire.RING_OFF
            while not stop.is_set():
                at = ring + (channel.tail + rng.randrange(-64, 256)) % RING_SIZE
                channel.view[at] ^= 1 << rng.randrange(8)

        thread = threading.Thread(target=flip)
        thread.start()
        try:
            while time.monotonic() < end:
                channel.submit(channel.api.ids["vgpuHello"], channel.message("vgpuHello"))
                slot = channel.area + wire.SLOTS_OFF
                patience = time.monotonic() + 0.05
                while channel.u32(slot) != channel.sequences[0] and channel.state == wire.OPEN:
                    if time.monotonic() > patience:  # the flipped call went elsewhere
                        break
                n_replies += 1
                if channel.state != wire.OPEN:
                    assert channel.reason == wire.REASON_PROTOCOL, channel.reason
                    n_deaths += 1
                    break
        finally:
            stop.set()
            thread.join()
        channel.close()
    print(f"    {n_replies} calls, {n_deaths} channels ended by the host", end="")
    assert n_replies > 10 and n_deaths > 0
    still_serves(host, api)


def test_sizes_change_while_the_host_reads_them(host, api):
    """Valid calls run while another process changes the size of the frame at the head."""
    program = host.build / "tests/raw/flip-size"
    n_calls, n_deaths = 0, 0
    for end in spells(2, lambda: n_calls > 10 and n_deaths):
        channel = Channel(api, host.socket)
        arguments = [program, str(channel.fds[0]), str(channel.area)]
        with subprocess.Popen(arguments, pass_fds=channel.fds[:1]) as flipper:
            try:
                while time.monotonic() < end:
                    channel.submit(channel.api.ids["vgpuHello"], channel.message("vgpuHello"))
                    n_calls += 1
                    # Either outcome is right: a reply, or the end of the channel.
                    channel.reply()
            except Dead:
                assert channel.reason == wire.REASON_PROTOCOL, channel.reason
                n_deaths += 1
            finally:
                assert flipper.poll() is None, flipper.returncode
                flipper.kill()
        channel.close()
    print(f"    {n_calls} calls, {n_deaths} channels ended by the host")
    assert n_calls > 10 and n_deaths > 0
    still_serves(host, api)


class SilentChannel(Channel):
    """A guest whose doorbells are all lost."""

    def ring_doorbell(self, vector):
        pass


def test_frames_are_taken_without_their_doorbell(host, api):
    # Also the doorbell of the request to open the channel.
    channel = SilentChannel(api, host.socket)
    # A call for which the lane's thread sleeps, and a call that the dispatcher answers;
    # each on a host that has just fallen asleep, or long ago.
    for pause, symbol in ((0, "cuCtxSynchronize"), (0, "vgpuHello"), (2, "vgpuHello")):
        channel.wait(lambda: channel.u32(channel.area + 128), "the host to sleep")
        time.sleep(pause)
        result, _ = channel.call(symbol)
        assert result in (0, INVALID_CONTEXT), result
    # Also of the request to close it.
    channel.state = wire.CLOSING
    channel.wait(lambda: channel.state == wire.FREE, "the host to clear the channel")
    channel.close()


def test_random_frames_end_at_most_their_own_channel(host, api):
    rng = random.Random(7)
    ids = sorted(api.ids.values())
    for _ in range(30):
        channel = Channel(api, host.socket)
        prepare(channel)
        for _ in range(50):
            body = rng.randbytes(rng.randrange(120))
            channel.write_ring(
                channel.frame(rng.choice(ids), body, rng.randrange(2), rng.randrange(4), 1)
            )
            if channel.state != wire.OPEN:
                break
        if channel.state == DEAD:
            assert channel.reason == wire.REASON_PROTOCOL, channel.reason
        channel.close()
    still_serves(host, api)


def main(names):
    build, source, *wanted = sys.argv[1:]
    api = wire.Api(os.path.join(source, "protocol/api"))
    with Host(build) as host:
        return tap.run(tap.functions(names, host, api, only=wanted),
                       lambda: print(host.text()[-4000:], file=sys.stderr))


if __name__ == "__main__":
    sys.exit(main(globals()))
