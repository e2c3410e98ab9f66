#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile guests and graphs and captures.

    test_graphs.py BUILD SOURCE [TEST...]
"""

import random
import struct
import sys
import time

from test_raw import (INVALID_HANDLE, INVALID_VALUE, allocate, main, prepare, refused,
                      still_serves)
from wire import SLOT_SIZE, SLOTS_OFF, Channel  # pylint: disable=wrong-import-order

OUT_OF_MEMORY = 2
NOT_SUPPORTED = 801
KERNEL, MEMCPY, MEMSET, HOST, CHILD, EMPTY, WAIT_EVENT, BATCH = 0, 1, 2, 3, 4, 5, 6, 12
CONDITIONAL = 13
N_CAPTURES = 196  # in the control page
LISTS = {"dependencies_list", "from_list", "to_list"}
BLOCKS = {"edges", "detail", "params", "value_bytes"}
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry store(.param .u64 at, .param .u32 value)
{
	.reg .b64 %rd;
	.reg .b32 %r;
	ld.param.u64 %rd, [at];
	ld.param.u32 %r, [value];
	st.global.u32 [%rd], %r;
	ret;
}
\0"""


def opened(api, host):
    channel = Channel(api, host.socket)
    prepare(channel)
    return channel


def must(answer, name=None):
    result, out = answer
    assert result == 0, result
    return out[name] if name else out


def make_graph(channel):
    return must(channel.call("cuGraphCreate", flags=0), "phGraph")


def make_stream(channel):
    return must(channel.call("cuStreamCreateWithPriority", flags=1), "phStream")


def add(channel, graph, kind=EMPTY, **values):
    return channel.call("cuGraphAddNode_v2", hGraph=graph, kind=kind, **values)


def add_empty(channel, graph):
    return must(add(channel, graph), "phGraphNode")


def handles(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def fill(address, width=1, height=1, pitch=0, size=4):
    return struct.pack("<QQIIQQ", address, pitch, 1, size, width, height)


def copy(to, start, width=4, height=1, depth=1, kind=2):
    """A CUDA_MEMCPY3D of linear memory; of kind 1 the source is the host's."""
    sources = (start, 0) if kind == 1 else (0, start)
    side = struct.Struct("<QQQQI4xQQQQQQ")
    source = side.pack(0, 0, 0, 0, kind, *sources, 0, 0, 0, 0)
    return source + side.pack(0, 0, 0, 0, 2, 0, to, 0, 0, 0, 0) + handles(width, height, depth)


def load_kernel(channel):
    channel.arena_bytes(0, len(PTX))[:] = PTX
    load = struct.pack("<IIQIIQQ", 1, 0, 0, 0, 0, channel.arena(), len(PTX))
    out = must(channel.call("cuModuleLoadDataEx", load=load.ljust(2112, b"\0")))
    return must(channel.call("cuModuleGetFunction", hmod=out["module"], name=b"store"),
                "hfunc")


def begin(channel, stream, mode=1, lane=0):
    must(channel.call("cuStreamBeginCapture_v2", lane, hStream=stream, mode=mode))


def n_captures(channel):
    return channel.u32(channel.area + N_CAPTURES)


def test_lists_of_nodes_are_checked(host, api):
    channel = opened(api, host)
    graph, other = make_graph(channel), make_graph(channel)
    node, foreign = add_empty(channel, graph), add_empty(channel, other)
    for wrong in (0, 1, graph, node + (1 << 20), (1 << 64) - 1, node ^ 1 << 52, node + 7):
        refused(add(channel, graph, dependencies_list=handles(wrong))[0], INVALID_VALUE)
        refused(add(channel, wrong)[0], *((0,) if wrong == graph else (INVALID_VALUE,)))
    for length in (1, 7, 9, 8191):
        refused(add(channel, graph, dependencies_list=bytes(length))[0], INVALID_VALUE)
    refused(add(channel, graph, dependencies_list=handles(foreign))[0], INVALID_VALUE)
    refused(add(channel, graph, dependencies_list=1025 * handles(node))[0], INVALID_VALUE)
    refused(add(channel, graph, dependencies_list=handles(node), edges=bytes(16))[0],
            INVALID_VALUE)
    for symbol in "cuGraphAddDependencies_v2", "cuGraphRemoveDependencies_v2":
        refused(channel.call(symbol, hGraph=graph, from_list=handles(node, node),
                             to_list=handles(node))[0], INVALID_VALUE)
        refused(channel.call(symbol, hGraph=graph, from_list=handles(node),
                             to_list=handles(foreign))[0], INVALID_VALUE)
        refused(channel.call(symbol, hGraph=graph, from_list=handles(node),
                             to_list=handles(node), edges=bytes(4096))[0], INVALID_VALUE)
    for number in (-1, 5, 1 << 30):
        refused(channel.call("vgpuGraphList", list=number, graph=graph)[0], INVALID_VALUE)
    result, out = channel.call("vgpuGraphList", list=0, graph=graph, first=(1 << 64) - 1)
    assert result == 0 and "nodes" not in out, out
    refused(channel.call("vgpuGraphList", list=3, graph=graph)[0], INVALID_VALUE)
    channel.close()
    still_serves(host, api)


def make_condition(channel, graph):
    return must(channel.call("cuGraphConditionalHandleCreate", hGraph=graph,
                             defaultLaunchValue=1, flags=1), "pHandle_out")


def add_conditional(channel, graph, condition, kind=0, n_bodies=1):
    return add(channel, graph, CONDITIONAL,
               detail=struct.pack("<QiI", condition, kind, n_bodies))


def test_conditions_are_the_guests_own(host, api):
    channel = opened(api, host)
    graph, other = make_graph(channel), make_graph(channel)
    condition, foreign = make_condition(channel, graph), make_condition(channel, other)
    for wrong in (0, 1, graph, foreign, condition + 1, condition + (1 << 32), condition ^ 1 << 63,
                  (1 << 64) - 1):
        refused(add_conditional(channel, graph, wrong)[0], INVALID_VALUE)
    for kind, n_bodies in ((-1, 1), (3, 1), (1 << 30, 1), (0, 0), (0, 3), (1, 2), (2, 0), (2, 129),
                           (2, (1 << 32) - 1)):
        refused(add_conditional(channel, graph, condition, kind, n_bodies)[0], INVALID_VALUE)
    for length in (0, 8, 15, 17, 256):
        refused(add(channel, graph, CONDITIONAL,
                    detail=struct.pack("<QiI", condition, 0, 1).ljust(256, b"\0")[:length])[0],
                INVALID_VALUE)
    for wrong in (0, 1, condition, graph + (1 << 20)):
        refused(channel.call("cuGraphConditionalHandleCreate", hGraph=wrong, flags=1)[0],
                INVALID_VALUE)
        refused(add_conditional(channel, wrong, condition)[0], INVALID_VALUE)
    refused(channel.call("cuGraphConditionalHandleCreate", hGraph=graph, ctx=7)[0], 201)
    # A node has its bodies, and a body no node of another graph before it.
    out = must(add_conditional(channel, graph, condition, 2, 128))
    bodies = struct.unpack("<128Q", out["bodies"])
    assert len(set(bodies)) == 128 and 0 not in bodies
    refused(add(channel, bodies[0], dependencies_list=handles(out["phGraphNode"]))[0],
            INVALID_VALUE)
    refused(add_conditional(channel, bodies[5], condition)[0], INVALID_VALUE)
    refused(add(channel, bodies[5], CHILD, child=graph)[0], NOT_SUPPORTED)
    refused(add(channel, bodies[5], HOST, cookie=5)[0], NOT_SUPPORTED)
    refused(channel.call("cuGraphDestroy", hGraph=bodies[5])[0], INVALID_VALUE)
    inner = make_condition(channel, bodies[5])
    refused(add_conditional(channel, graph, inner)[0], INVALID_VALUE)
    nested = must(add_conditional(channel, bodies[5], inner))
    deepest = struct.unpack("<Q", nested["bodies"])[0]
    add_empty(channel, deepest)
    refused(channel.call("cuGraphNodeSetParams", hNode=nested["phGraphNode"], kind=CONDITIONAL,
                         detail=struct.pack("<QiI", inner, 1, 1))[0], NOT_SUPPORTED)
    # All of them end with the node, and conditions with their graph.
    must(channel.call("cuGraphDestroyNode", hNode=out["phGraphNode"]))
    for gone in (*bodies, deepest):
        refused(add(channel, gone)[0], INVALID_VALUE)
    refused(add_conditional(channel, graph, inner)[0], INVALID_VALUE)
    must(channel.call("cuGraphDestroy", hGraph=other))
    refused(add_conditional(channel, graph, foreign)[0], INVALID_VALUE)
    channel.close()
    still_serves(host, api)


def move(channel, graph, child, ownership=1):
    return add(channel, graph, CHILD, child=child, detail=struct.pack("<I", ownership))


def test_children_are_moved_once_and_never_in_a_circle(host, api):
    channel = opened(api, host)
    graphs = [make_graph(channel) for _ in range(4)]
    node = add_empty(channel, graphs[3])
    for child in (graphs[0], 0, node, graphs[1] + (1 << 20)):
        refused(move(channel, graphs[0], child)[0], INVALID_VALUE)
    for ownership in (2, (1 << 32) - 1):
        refused(move(channel, graphs[0], graphs[1], ownership)[0], INVALID_VALUE)
    for detail in (b"\1", bytes(3), bytes(5), bytes(256)):
        refused(add(channel, graphs[0], CHILD, child=graphs[1], detail=detail)[0],
                INVALID_VALUE)
    refused(add(channel, graphs[0], CHILD, child=graphs[1], detail=struct.pack("<I", 1),
                dependencies_list=handles(node))[0], INVALID_VALUE)
    must(move(channel, graphs[0], graphs[1]))
    must(move(channel, graphs[1], graphs[2]))
    for graph, child in ((graphs[1], graphs[0]), (graphs[2], graphs[0]), (graphs[2], graphs[1]),
                         (graphs[3], graphs[1]), (graphs[3], graphs[2])):
        refused(move(channel, graph, child)[0], INVALID_VALUE)
        refused(add(channel, graph, CHILD, child=child)[0],
                *((INVALID_VALUE,) if child != graphs[0] else (0,)))
    refused(channel.call("cuGraphDestroy", hGraph=graphs[2])[0], INVALID_VALUE)
    must(channel.call("cuGraphDestroy", hGraph=graphs[0]))
    for gone in graphs[:3]:
        refused(add(channel, gone)[0], INVALID_VALUE)
    add_empty(channel, graphs[3])
    channel.close()
    still_serves(host, api)


def test_conditional_nodes_have_an_end_in_number_and_depth(host, api):
    channel = opened(api, host)
    graph = make_graph(channel)
    inside, depth = graph, 0
    while True:
        result, out = add_conditional(channel, inside, make_condition(channel, graph))
        if result:
            break
        inside, depth = struct.unpack("<Q", out["bodies"])[0], depth + 1
    refused(result, OUT_OF_MEMORY)
    assert 8 <= depth <= 64, depth
    must(channel.call("cuGraphDestroy", hGraph=graph))
    # The handles of a session are all that there is.
    graph = make_graph(channel)
    for n in range(1 << 20):
        result, out = channel.call("cuGraphConditionalHandleCreate", hGraph=graph, flags=1)
        if result:
            break
    refused(result, OUT_OF_MEMORY)
    assert n > 1000, n
    refused(channel.call("cuGraphInstantiateWithParams", hGraph=graph)[0], INVALID_VALUE)
    must(channel.call("cuGraphDestroy", hGraph=graph))
    make_condition(channel, make_graph(channel))
    channel.close()
    still_serves(host, api)


def test_memory_of_nodes_is_the_guests_own(host, api):
    channel = opened(api, host)
    graph, p = make_graph(channel), allocate(channel, 4096)
    _, out = channel.call("cuDevicePrimaryCtxRetain", dev=0)
    context = out["pctx"]

    def refuse(kind, detail, *allowed):
        result, _ = add(channel, graph, kind, node_context=context, detail=detail)
        refused(result, *(allowed or (INVALID_VALUE,)))

    for detail in (
        fill(p + 4096), fill(p - 4), fill(p, 1025), fill(p, 1 << 62), fill(p, 1, 1 << 62, 1 << 40),
        fill(0), fill((1 << 64) - 4), fill(p, (1 << 64) - 1, 1, 0, (1 << 32) - 1), fill(p, size=0),
        fill(channel.window_base + channel.area), b"", bytes(39), bytes(41), bytes(256),
    ):
        refuse(MEMSET, detail)
    for detail in (
        copy(p, p + 4096), copy(p + 4093, p), copy(p, p, (1 << 64) - 1), copy(0, p), copy(p, 0),
        copy(p, p, 1, 1 << 40, 1 << 40), copy(p, channel.window_base + channel.area, kind=1),
        copy(p, 0x400000, kind=1), copy(p, p, kind=1), copy(p, p, kind=3), copy(p, p, kind=77),
        copy(p, p)[:-1], copy(p, p) + b"\0", b"",
    ):
        refuse(MEMCPY, detail, INVALID_VALUE, INVALID_HANDLE)
    # Valid calls still work.
    must(add(channel, graph, MEMSET, node_context=context, detail=fill(p, 1024)))
    must(add(channel, graph, MEMCPY, node_context=context, detail=copy(p, p + 2048, 2048)))
    must(add(channel, graph, MEMCPY, node_context=context,
             detail=copy(p, channel.arena(), 4096, kind=1)))
    refused(add(channel, graph, MEMSET, node_context=context + 1, detail=fill(p))[0], 201)
    for kind in (8, 9, 10, 11, -1, 1 << 30):
        refuse(kind, fill(p), NOT_SUPPORTED)
    refused(add(channel, graph, WAIT_EVENT, event=p)[0], INVALID_HANDLE)
    channel.close()
    still_serves(host, api)


def words(*ops):
    """An array of CUstreamBatchMemOpParams: operation, address, value."""
    return b"".join(struct.pack("<IxxxxQQI20x", *op, 0) for op in ops)


def test_batches_and_children_are_checked(host, api):
    channel = opened(api, host)
    graph, p = make_graph(channel), allocate(channel, 4096)
    good, flags = (2, p, 1), bytes(4)

    for ops in (
        b"", words(good)[:-1], words(good) + b"\0", words((2, p + 4096, 1)),
        words((5, p + 4092, 1)),
        words((2, 0, 1)), words(good, (2, channel.window_base + channel.area, 1)),
        words((1 << 31, p, 1)), words((0, p, 1)), words(*[good] * 257),
    ):
        refused(add(channel, graph, BATCH, detail=flags, params=ops)[0], INVALID_VALUE)
    for detail in (b"", bytes(3), bytes(5), bytes(256)):
        refused(add(channel, graph, BATCH, detail=detail, params=words(good))[0], INVALID_VALUE)
    must(add(channel, graph, BATCH, detail=flags, params=words(good)))
    for child in (0, p, graph + 1, graph ^ 1 << 40, (1 << 64) - 1):
        refused(add(channel, graph, CHILD, child=child)[0], INVALID_VALUE)
    # A graph inside itself, often: a named limit, and no dead worker.
    inner = graph
    for _ in range(100):
        result, out = add(channel, inner, CHILD, child=graph)
        if result:
            break
        result, out = channel.call("cuGraphChildGraphNodeGetGraph", hNode=out["phGraphNode"])
        must((result, out))
        inner = out["phGraph"]
    refused(result, OUT_OF_MEMORY)
    refused(channel.call("cuGraphDestroy", hGraph=inner)[0], INVALID_VALUE)
    must(channel.call("cuGraphDestroy", hGraph=graph))
    refused(channel.call("cuGraphDestroy", hGraph=inner)[0], INVALID_VALUE)
    channel.close()
    still_serves(host, api)


def test_user_objects_are_counted(host, api):
    channel = opened(api, host)
    graph = make_graph(channel)

    def create(n=1, flags=1, cookie=7):
        return channel.call("cuUserObjectCreate", initialRefcount=n, flags=flags, cookie=cookie)

    for n, flags in ((0, 1), (1, 0), (1, 2), (1 << 31, 1)):
        refused(create(n, flags)[0], INVALID_VALUE)
    user = must(create(3))["object_out"]
    for wrong in (0, graph, user + 1, user ^ 1 << 40):
        refused(channel.call("cuUserObjectRelease", object=wrong, count=1)[0], INVALID_VALUE)
        refused(channel.call("cuUserObjectRetain", object=wrong, count=1)[0], INVALID_VALUE)
        refused(channel.call("cuGraphRetainUserObject", graph=graph, object=wrong, count=1)[0],
                INVALID_VALUE)
    for n in (0, 4, 1 << 31, (1 << 32) - 1):
        refused(channel.call("cuUserObjectRelease", object=user, count=n)[0], INVALID_VALUE)
        refused(channel.call("cuGraphRetainUserObject", graph=graph, object=user, count=n,
                             flags=1)[0], INVALID_VALUE)
    refused(channel.call("cuGraphReleaseUserObject", graph=graph, object=user, count=1)[0],
            INVALID_VALUE)
    must(channel.call("cuGraphRetainUserObject", graph=graph, object=user, count=3, flags=1))
    refused(channel.call("cuUserObjectRelease", object=user, count=1)[0], INVALID_VALUE)
    must(channel.call("cuGraphDestroy", hGraph=graph))
    # Its destructor is due, by the cookie that was given.
    due = must(channel.call("vgpuCallbackNext"))
    assert due["cookie"] == 7 and not due.get("is_void"), due
    refused(channel.call("cuUserObjectRetain", object=user, count=1)[0], INVALID_VALUE)
    # So is the cookie of a host node, as void, when its graph is destroyed.
    graph = make_graph(channel)
    must(add(channel, graph, HOST, cookie=8))
    must(channel.call("cuGraphDestroy", hGraph=graph))
    must(channel.call("vgpuCallbackDone", token=due["token"]))
    due = must(channel.call("vgpuCallbackNext"))
    assert due["cookie"] == 8 and due.get("is_void"), due
    channel.close()
    still_serves(host, api)


def test_parameters_of_kernels_have_their_size(host, api):
    channel = opened(api, host)
    graph, p, function = make_graph(channel), allocate(channel, 64), load_kernel(channel)
    dims = struct.pack("<8I", 0, 0, 1, 1, 1, 1, 1, 1)
    params = struct.pack("<QI", p, 7)
    for block in (b"", params[:-1], params + b"\0", bytes(32764)):
        refused(add(channel, graph, KERNEL, function=function, detail=dims, params=block)[0],
                INVALID_VALUE)
    for detail in (b"", dims[:-1], dims + b"\0"):
        refused(add(channel, graph, KERNEL, function=function, detail=detail,
                    params=params)[0], INVALID_VALUE)
    for wrong in (0, p, function + (1 << 20), function ^ 1 << 52, graph):
        refused(add(channel, graph, KERNEL, function=wrong, detail=dims, params=params)[0],
                INVALID_HANDLE)
    node = must(add(channel, graph, KERNEL, function=function, detail=dims, params=params),
                "phGraphNode")
    out = must(channel.call("vgpuGraphNode", node=node))
    assert out["params"] == params and out["function"] == function, out
    out = must(channel.call("vgpuGraphNode", node=node, first=1 << 31))
    assert "params" not in out, out
    exec_ = must(channel.call("cuGraphInstantiateWithParams", hGraph=graph), "phGraphExec")
    refused(channel.call("cuGraphExecNodeSetParams", hGraphExec=exec_, hNode=node, kind=KERNEL,
                         function=function, detail=dims, params=params[:8])[0], INVALID_VALUE)
    must(channel.call("cuGraphLaunch", hGraph=exec_, hStream=0))
    must(channel.call("cuStreamSynchronize", hStream=0))
    must(channel.call("cuMemcpyDtoHAsync_v2", dstHost=channel.arena(8192), srcDevice=p,
                      ByteCount=4, word=0xFFFFFFFF))
    must(channel.call("cuCtxSynchronize"))
    assert channel.arena_bytes(8192, 4) == struct.pack("<I", 7)
    channel.close()


def test_what_is_destroyed_is_not_used(host, api):
    channel = opened(api, host)
    graph = make_graph(channel)
    node = add_empty(channel, graph)
    exec_ = must(channel.call("cuGraphInstantiateWithParams", hGraph=graph), "phGraphExec")
    must(channel.call("cuGraphDestroy", hGraph=graph))
    for symbol, values in (
        ("cuGraphNodeGetType", {"hNode": node}), ("cuGraphDestroyNode", {"hNode": node}),
        ("cuGraphDestroy", {"hGraph": graph}), ("vgpuGraphNode", {"node": node}),
        ("vgpuGraphList", {"list": 3, "node": node}),
        ("cuGraphInstantiateWithParams", {"hGraph": graph}),
        ("cuGraphExecUpdate_v2", {"hGraphExec": exec_, "hGraph": graph}),
        ("cuGraphNodeSetEnabled", {"hGraphExec": exec_, "hNode": node, "isEnabled": 0}),
    ):
        refused(channel.call(symbol, **values)[0], INVALID_VALUE)
    must(channel.call("cuGraphLaunch", hGraph=exec_, hStream=0))
    must(channel.call("cuGraphExecDestroy", hGraphExec=exec_))
    refused(channel.call("cuGraphLaunch", hGraph=exec_, hStream=0)[0], INVALID_VALUE)
    # Also without a reply.
    for _ in range(100):
        channel.submit(api.ids["cuGraphLaunch"],
                       channel.message("cuGraphLaunch", hGraph=exec_, hStream=0), reply=False)
    must(channel.call("cuCtxSynchronize"))
    channel.close()
    still_serves(host, api)


def test_captures_are_counted_and_end_with_their_threads(host, api):
    channel = opened(api, host)
    streams = [make_stream(channel) for _ in range(4)]
    p = allocate(channel, 64)
    assert n_captures(channel) == 0
    begin(channel, streams[0])
    refused(channel.call("cuStreamBeginCapture_v2", hStream=streams[0], mode=1)[0], 401)
    refused(channel.call("cuStreamBeginCapture_v2", hStream=streams[1], mode=99)[0],
            INVALID_VALUE)
    assert n_captures(channel) == 1
    channel.submit(api.ids["vgpuLaneContext"], channel.message(
        "vgpuLaneContext", context=must(channel.call("cuDevicePrimaryCtxRetain", dev=0),
                                        "pctx")), lane=1, reply=False)
    begin(channel, streams[1], lane=1)
    begin(channel, streams[2], mode=2, lane=1)
    assert n_captures(channel) == 3
    # Without a reply, while captures are live: in order, on its lane.
    for lane in (0, 1, 0, 1):
        channel.submit(api.ids["cuMemsetD32Async"], channel.message(
            "cuMemsetD32Async", dstDevice=p, ui=1, N=1, hStream=streams[lane]),
            lane=lane, reply=False)
    channel.submit(api.ids["vgpuLaneExit"], lane=1, reply=False)
    channel.wait(lambda: n_captures(channel) == 2, "the end of a capture")
    result, out = channel.call("cuStreamIsCapturing", hStream=streams[1])
    assert result == 0 and not out.get("captureStatus"), out
    must(channel.call("cuStreamDestroy_v2", hStream=streams[2]))
    assert n_captures(channel) == 1
    out = must(channel.call("cuStreamEndCapture", hStream=streams[0]))
    assert n_captures(channel) == 0
    out = must(channel.call("vgpuGraphList", list=0, graph=out["phGraph"]))
    assert out["n_total"] == 2, out
    refused(channel.call("cuStreamEndCapture", hStream=streams[0])[0], 401)
    # A capture that is open when the guest exits.
    begin(channel, streams[3], mode=0)
    channel.close()
    still_serves(host, api)


def test_what_a_guest_writes_about_captures_is_not_believed(host, api):
    channel = opened(api, host)
    stream, p = make_stream(channel), allocate(channel, 64)
    begin(channel, stream)
    channel.put("I", channel.area + N_CAPTURES, 0)
    for _ in range(300):
        channel.submit(api.ids["cuMemsetD32Async"], channel.message(
            "cuMemsetD32Async", dstDevice=p, ui=1, N=1, hStream=stream), reply=False)
    graph = must(channel.call("cuStreamEndCapture", hStream=stream), "phGraph")
    assert must(channel.call("vgpuGraphList", list=0, graph=graph), "n_total") == 300
    channel.put("I", channel.area + N_CAPTURES, 0xFFFFFFFF)
    must(channel.call("cuStreamSynchronize", hStream=stream))
    channel.close()
    still_serves(host, api)


def hang(host, api, hold):
    """A guest thread that waits for ever, and a frame of it for which the dispatcher waits."""
    n_opened = host.text().count("session opened")
    channel = opened(api, host)
    worker = int(host.wait_for(r"session opened .*worker=(\d+)", n_opened + 1).group(1))
    captured, waited = make_stream(channel), make_stream(channel)
    context = must(channel.call("cuDevicePrimaryCtxRetain", dev=0), "pctx")
    channel.submit(api.ids["vgpuLaneContext"],
                   channel.message("vgpuLaneContext", context=context), lane=1, reply=False)
    hold(channel, captured)
    # Nobody runs the callback, so this stream is never complete.
    must(channel.call("cuLaunchHostFunc", hStream=waited, cookie=1))
    channel.submit(api.ids["cuStreamSynchronize"],
                   channel.message("cuStreamSynchronize", hStream=waited), lane=1)
    channel.submit(api.ids["vgpuLaneExit"], lane=1, reply=False)
    sequence = channel.submit(api.ids["vgpuHello"], lane=2)
    still_serves(host, api)
    time.sleep(0.2)
    assert channel.u32(channel.area + SLOTS_OFF + 2 * SLOT_SIZE) != sequence, "no hang"
    channel.close()
    host.wait_for(rf"session ended .*worker={worker} reason=closed")
    still_serves(host, api)


def test_who_hangs_its_dispatcher_in_a_capture_can_be_ended(host, api):
    hang(host, api, lambda channel, stream: begin(channel, stream, mode=2))


def test_who_hangs_its_dispatcher_by_a_mode_can_be_ended(host, api):
    hang(host, api, lambda channel, stream: must(channel.call(
        "cuThreadExchangeStreamCaptureMode", 1, mode=2)))


def test_calls_at_random_end_in_errors(host, api):
    """These calls with handles that exist, have existed, or never did."""
    chance = random.Random(20)
    symbols = [s for s in api.inputs if s.startswith(("cuGraph", "vgpuGraph", "cuStreamBegin",
               "cuStreamEnd", "cuStreamGetCapture", "cuStreamUpdate", "cuThreadExchange"))]
    channel = opened(api, host)
    known = [make_stream(channel), make_stream(channel), allocate(channel, 4096), 0, 1, 2]
    for _ in range(6):
        graph = make_graph(channel)
        known += [graph, add_empty(channel, graph), add_empty(channel, graph)]
    for _ in range(3000):
        symbol = chance.choice(symbols)
        values = {}
        for name in api.inputs[symbol]:
            if name in LISTS:
                values[name] = handles(*chance.choices(known, k=chance.randrange(4)))
            elif name in BLOCKS:
                values[name] = chance.choice((b"", chance.randbytes(chance.randrange(300)),
                                              fill(known[2]), copy(known[2], known[2])))
            else:
                values[name] = chance.choice(known)
                if name not in api.fixed[symbol]:
                    values[name] = chance.choice((0, 1, 2, 5, 1 << 31, chance.randrange(16)))
        result, out = channel.call(symbol, **values)
        if result == 0:
            known += [v for v in out.values() if isinstance(v, int) and v >> 52]
        if len(known) > 400:
            del known[20:120]
    channel.close()
    still_serves(host, api)


if __name__ == "__main__":
    sys.exit(main(globals()))
