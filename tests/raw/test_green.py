#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile guests and green contexts, partitions of multiprocessors and tensor maps.

    test_green.py BUILD SOURCE [TEST...]
"""

import random
import struct
import sys

from test_raw import (INVALID_HANDLE, INVALID_VALUE, allocate, main, prepare, refused,
                      still_serves)
from wire import Channel  # pylint: disable=wrong-import-order

INVALID_DEVICE, INVALID_CONTEXT = 101, 201
DESTROYED = 709
NO_TYPE, NO_CONFIGURATION = 914, 915
MAX32 = (1 << 32) - 1


def opened(api, host):
    channel = Channel(api, host.socket)
    prepare(channel)
    return channel


def parts(*numbers):
    return struct.pack(f"<{len(numbers)}H", *numbers)


def create(channel, **values):
    request = {"dev": 0, "flags": 1, "source": 0, "is_split": 1, "use_flags": 1,
               "min_count": 1, "n_groups": 1, "parts": parts(0)}
    return channel.call("cuGreenCtxCreate", **{**request, **values})


def make(channel, **values):
    result, out = create(channel, **values)
    assert result == 0, result
    return out


def split(channel, **values):
    request = {"useFlags": 1, "minCount": 1, "source": 0, "device": 0, "n_groups_max": 1}
    return channel.call("cuDevSmResourceSplitByCount", **{**request, **values})


def current(channel, context, lane=0):
    channel.submit(channel.api.ids["vgpuLaneContext"],
                   channel.message("vgpuLaneContext", context=context), lane, reply=False)


def wrong_handles(handle):
    return 0, 1, 2, handle ^ 1 << 52, handle + 7, handle + (1 << 20), (1 << 64) - 1


def test_parts_are_those_of_a_split(host, api):
    channel = opened(api, host)
    result, out = split(channel, n_groups_max=MAX32)
    assert result == 0 and 0 < out["n_groups"] <= 256 and out["sm_count"] > 0, out
    n = out["n_groups"]
    for wrong in (
        b"", b"\0", b"\0\0\0", parts(1, 1), parts(0, 0), parts(2), parts(0xFFFF),
        parts(*range(512)), parts(*[0] * 512),
    ):
        refused(create(channel, parts=wrong)[0], NO_CONFIGURATION)
    # The rest that there is not.
    refused(create(channel, n_groups=n, parts=parts(n))[0], NO_CONFIGURATION)
    for values in (
        {"n_groups": 0}, {"min_count": 1 << 20}, {"min_count": MAX32}, {"use_flags": 1 << 31},
        {"flags": 0}, {"flags": 3}, {"flags": MAX32},
    ):
        refused(create(channel, **values)[0], INVALID_VALUE, NO_CONFIGURATION)
    for device in (-1, 1, 63, 64, 1 << 30, -(1 << 31)):
        refused(create(channel, dev=device & (1 << 64) - 1)[0], INVALID_DEVICE)
        refused(split(channel, device=device & (1 << 64) - 1)[0], INVALID_DEVICE)
    # More parts than a split can have, and groups without number.
    make(channel, n_groups=MAX32)
    # What is not split has no parts.
    out = make(channel, is_split=0, parts=parts(7, 7, 7))
    _, whole = channel.call("cuDeviceGetDevResource", device=0, type=1)
    assert out["sm_count"] == whole["sm_count"]
    channel.close()
    still_serves(host, api)


def test_handles_of_green_contexts_are_checked(host, api):
    channel = opened(api, host)
    out = make(channel)
    green, context = out["phCtx"], out["context"]
    assert green >> 52 != context >> 52
    event = 7 << 52 | 1 << 20
    refused(channel.call("cuEventCreate", Flags=2, event=event)[0], 0)
    for wrong in (*wrong_handles(green), context, event):
        refused(channel.call("cuGreenCtxDestroy", hCtx=wrong)[0], INVALID_CONTEXT)
        refused(channel.call("cuGreenCtxGetDevResource", hCtx=wrong, type=1)[0],
                INVALID_CONTEXT)
        refused(channel.call("cuGreenCtxRecordEvent", hCtx=wrong, hEvent=event)[0],
                INVALID_CONTEXT)
        refused(channel.call("cuGreenCtxWaitEvent", hCtx=wrong, hEvent=event)[0],
                INVALID_CONTEXT)
        refused(channel.call("cuGreenCtxStreamCreate", greenCtx=wrong, flags=1)[0],
                INVALID_CONTEXT)
        if wrong:
            refused(create(channel, source=wrong)[0], NO_CONFIGURATION)
            refused(split(channel, source=wrong)[0], NO_CONFIGURATION)
    refused(channel.call("cuGreenCtxGetDevResource", hCtx=green, type=9)[0], NO_TYPE)
    for wrong in (0, 1, green, event + 1):
        refused(channel.call("cuGreenCtxRecordEvent", hCtx=green, hEvent=wrong)[0],
                INVALID_HANDLE)
    for flags in (0, 2, MAX32):
        refused(channel.call("cuGreenCtxStreamCreate", greenCtx=green, flags=flags)[0],
                INVALID_VALUE)
    # As a context it is one that cannot be destroyed.
    refused(channel.call("cuCtxDestroy_v2", ctx=context)[0], INVALID_CONTEXT)
    refused(channel.call("cuCtxSynchronize_v2", ctx=context)[0], 0)
    channel.close()
    still_serves(host, api)


def test_a_green_context_ends_while_it_is_current(host, api):
    channel = opened(api, host)
    p = allocate(channel, 4096)
    for end in "destroy", "reset":
        out = make(channel)
        green, context = out["phCtx"], out["context"]
        result, made = channel.call("cuGreenCtxStreamCreate", greenCtx=green, flags=1)
        assert result == 0, result
        stream = made["phStream"]
        for lane in range(3):
            current(channel, context, lane)
            refused(channel.call("cuCtxSynchronize", lane)[0], 0)
            refused(channel.call("cuStreamSynchronize", lane, hStream=0)[0], 0)
            refused(channel.call("cuStreamSynchronize", lane, hStream=2)[0], INVALID_HANDLE)
        # A word for its default stream, which the guest library never asks for.
        channel.submit(channel.api.ids["vgpuStreamWord"],
                       channel.message("vgpuStreamWord", stream=0, word=70), reply=False)
        refused(channel.call("cuStreamQuery", hStream=0, target=1 << 40)[0], 0, 600)
        if end == "destroy":
            refused(channel.call("cuGreenCtxDestroy", hCtx=green)[0], 0)
        else:
            refused(channel.call("cuDevicePrimaryCtxReset_v2", dev=0)[0], 0)
        refused(channel.call("cuGreenCtxDestroy", hCtx=green)[0], INVALID_CONTEXT)
        for lane in range(3):
            refused(channel.call("cuCtxSynchronize", lane)[0], DESTROYED)
            refused(channel.call("cuMemAlloc_v2", lane, bytesize=16)[0], DESTROYED)
        prepare(channel)
        refused(channel.call("cuStreamSynchronize", hStream=stream)[0], INVALID_HANDLE)
        refused(channel.call("cuStreamDestroy_v2", hStream=stream)[0], INVALID_HANDLE)
        if end == "destroy":
            # Memory is the primary context's.
            refused(channel.call("cuMemFree_v2", dptr=p)[0], 0)
    channel.close()
    still_serves(host, api)


def test_many_green_contexts_do_not_pile_up(host, api):
    channel = opened(api, host)
    for _ in range(300):
        green = make(channel)["phCtx"]
        for _ in range(3):
            refused(channel.call("cuGreenCtxStreamCreate", greenCtx=green, flags=1)[0], 0)
        refused(channel.call("cuGreenCtxDestroy", hCtx=green)[0], 0)
    channel.close()
    still_serves(host, api)


def u64(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def u32(*numbers):
    return struct.pack(f"<{len(numbers)}I", *(number & MAX32 for number in numbers))


def tensor(address, **values):
    request = {"tensorDataType": 7, "tensorRank": 3, "globalAddress": address,
               "sizes": u64(64, 32, 16), "strides": u64(256, 8192), "steps": u32(1, 1, 1)}
    return {**request, **values}


def test_arrays_of_tensors_are_as_long_as_their_rank(host, api):
    channel = opened(api, host)
    p = allocate(channel, 1 << 20)
    tiled = {"box": u32(16, 8, 4)}
    images = {"lower": u32(-1), "upper": u32(1), "channelsPerPixel": 32, "pixelsPerColumn": 64}

    def encode(symbol, more, **values):
        return channel.call(symbol, **{**tensor(p), **more, **values})

    both = (("cuTensorMapEncodeTiled", tiled), ("cuTensorMapEncodeIm2col", images))
    for symbol, more in both:
        result, out = encode(symbol, more)
        assert result == 0 and len(out["map"]) == 128, result
        for name in ("sizes", "strides", "steps", *(n for n in more if "Per" not in n)):
            good = {**tensor(p), **more}[name]
            for wrong in (b"", good[:-1], good + b"\0", good + good):
                if len(wrong) <= 40:
                    refused(encode(symbol, more, **{name: wrong})[0], INVALID_VALUE)
        for rank in (0, 1, 2, 4, 5, 6, 1 << 31, MAX32):
            refused(encode(symbol, more, tensorRank=rank)[0], INVALID_VALUE)
        for address in (0, 16, p + 8, channel.window_base - 16, (1 << 64) - 16,
                        channel.window_base + channel.window_size):
            refused(encode(symbol, more, globalAddress=address)[0], INVALID_VALUE)
    good = encode(*both[0])[1]["map"]
    for wrong in (b"", good[:-1], bytes(128), b"\xff" * 128):
        refused(channel.call("cuTensorMapReplaceAddress", before=wrong, globalAddress=p)[0],
                INVALID_VALUE)
    refused(channel.call("cuTensorMapReplaceAddress", before=good, globalAddress=16)[0],
            INVALID_VALUE)
    result, out = channel.call("cuTensorMapReplaceAddress", before=good, globalAddress=p)
    assert result == 0 and out["map"] == good
    channel.close()
    still_serves(host, api)


def test_random_calls_of_green_contexts(host, api):
    channel = opened(api, host)
    chance = random.Random(490)
    known = [0, 1, make(channel)["phCtx"]]
    symbols = ("cuGreenCtxCreate", "cuGreenCtxDestroy", "cuGreenCtxGetDevResource",
               "cuDevSmResourceSplitByCount", "cuGreenCtxStreamCreate", "cuStreamGetCtx",
               "cuGreenCtxRecordEvent", "cuGreenCtxWaitEvent", "cuCtxSynchronize_v2",
               "cuStreamSynchronize", "cuStreamDestroy_v2", "vgpuContextFault")
    for _ in range(1500):
        symbol = chance.choice(symbols)
        values = {}
        for name in channel.api.inputs[symbol]:
            if name == "parts":
                values[name] = parts(*(chance.randrange(3) for _ in range(chance.randrange(3))))
            elif name in channel.api.fixed[symbol] or name == "source":
                values[name] = chance.choice(known)
            else:
                values[name] = chance.choice((0, 1, 1, 2, MAX32))
        if chance.random() < 0.1:
            current(channel, chance.choice(known))
        result, out = channel.call(symbol, **values)
        if result == 0:
            known += [v for v in out.values() if isinstance(v, int) and v >> 52]
        if len(known) > 60:
            del known[2:30]
    channel.close()
    still_serves(host, api)


if __name__ == "__main__":
    sys.exit(main(globals()))
