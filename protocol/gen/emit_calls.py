# SPDX-License-Identifier: Apache-2.0
"""g-calls.h and g-calls.c: call ids and the properties of each call.

	enum vgpu_call			VGPU_CALL_<symbol> = id; 0 is the ring's padding
	vgpu_call_name(id)		"cuMemAlloc_v2", or "?" for an invalid number
	vgpu_call_flags[id]		VGPU_CALL_F_*
	vgpu_call_request_max[id]	bound of the packed request, variable parts at
					their maxima; 0 for calls that are not remoted
	vgpu_call_remembers[id]		VGPU_REMEMBERS_*: how long a result stays valid
	vgpu_call_minor[id]		the minor version of the protocol that added it

The product "ids" lists them as the file api/frozen does, for a release to append.
"""

from writer import Writer

FLAGS = """
enum {
	VGPU_CALL_F_REMOTED = 1u << 0,	      /* has messages */
	VGPU_CALL_F_ASYNC = 1u << 1,	      /* no reply, unless asked for */
	VGPU_CALL_F_MAY_BLOCK = 1u << 2,      /* never run by the dispatcher itself */
	VGPU_CALL_F_STREAM_ORDERED = 1u << 3, /* counts in the progress of its stream */
	VGPU_CALL_F_CONTEXT = 1u << 4,	      /* needs the lane's context made current */
	VGPU_CALL_F_IN_PLACE = 1u << 5,	      /* packing reads no memory of the program */
	VGPU_CALL_F_LATER = 1u << 6,	      /* not in minor version 0 of the protocol */
};

/* How long the answer to a call stays true. */
enum {
	VGPU_REMEMBERS_NOTHING,
	VGPU_REMEMBERS_CONSTANT, /* as long as the process lives */
	VGPU_REMEMBERS_STREAM,	 /* until a stream changes or ends */
	VGPU_REMEMBERS_CODE,	 /* until code is unloaded */
	VGPU_REMEMBERS_SETTING,	 /* until a limit, an attribute or code changes */
	_VGPU_REMEMBERS_N,
};

/* Returns: the name of the call, or "?". */
const char *vgpu_call_name(uint32_t call);

extern const uint8_t vgpu_call_flags[_VGPU_CALL_N];
extern const uint8_t vgpu_call_remembers[_VGPU_CALL_N];
extern const uint8_t vgpu_call_minor[_VGPU_CALL_N];
extern const uint32_t vgpu_call_request_max[_VGPU_CALL_N];
"""

NAME_FUNCTION = """
const char *vgpu_call_name(uint32_t call)
{
	if (call >= _VGPU_CALL_N || !names[call])
		return "?";
	return names[call];
}
"""


def flags(call):
    found = ["VGPU_CALL_F_REMOTED"]
    if call.is_async:
        found.append("VGPU_CALL_F_ASYNC")
    if call.blocks == "maybe":
        found.append("VGPU_CALL_F_MAY_BLOCK")
    if call.order == "stream":
        found.append("VGPU_CALL_F_STREAM_ORDERED")
    if call.context == "current":
        found.append("VGPU_CALL_F_CONTEXT")
    if call.in_place:
        found.append("VGPU_CALL_F_IN_PLACE")
    if call.minor:
        found.append("VGPU_CALL_F_LATER")
    return found


def emit_header(api):
    w = Writer()
    w.head(api, "Call ids")
    w.line("#pragma once")
    w.blank()
    w.line("#include <stdint.h>")
    w.blank()
    calls = sorted(api.calls, key=lambda c: c.id)
    w.line("enum vgpu_call {")
    for call in calls:
        w.line(f"\tVGPU_CALL_{call.symbol} = {call.id},")
    w.line(f"\t_VGPU_CALL_N = {calls[-1].id + 1},")
    w.line("};")
    w.blank()
    w.text(FLAGS)
    return w.finish()


def emit_source(api):
    w = Writer()
    w.head(api, "Call names and properties")
    w.line('#include "vgpu/g-calls.h"')
    w.blank()
    calls = sorted(api.calls, key=lambda c: c.id)
    w.line("static const char *const names[_VGPU_CALL_N] = {")
    w.line('\t[0] = "padding",')
    for call in calls:
        w.line(f'\t[VGPU_CALL_{call.symbol}] = "{call.symbol}",')
    w.line("};")
    w.blank()
    w.line("const uint8_t vgpu_call_flags[_VGPU_CALL_N] = {")
    for call in calls:
        if call.remoted:
            w.wrapped_or(f"\t[VGPU_CALL_{call.symbol}] = ", flags(call), ",")
    w.line("};")
    w.blank()
    w.line("const uint8_t vgpu_call_remembers[_VGPU_CALL_N] = {")
    for call in calls:
        if call.remembers:
            w.line(f"\t[VGPU_CALL_{call.symbol}] = "
                   f"VGPU_REMEMBERS_{call.remembers.upper()},")
    w.line("};")
    w.blank()
    w.line("const uint8_t vgpu_call_minor[_VGPU_CALL_N] = {")
    w.line("\t[0] = 0,")
    for call in calls:
        if call.remoted and call.minor:
            w.line(f"\t[VGPU_CALL_{call.symbol}] = {call.minor},")
    w.line("};")
    w.blank()
    w.line("const uint32_t vgpu_call_request_max[_VGPU_CALL_N] = {")
    for call in calls:
        if call.remoted:
            size = sum(p.packed_max for p in call.request_fields)
            w.line(f"\t[VGPU_CALL_{call.symbol}] = {size},")
    w.line("};")
    w.blank()
    w.text(NAME_FUNCTION)
    return w.finish()


def emit_ids(api):
    calls = sorted(api.calls, key=lambda c: c.id)
    return "".join(f"{call.id} {call.symbol}\n" for call in calls)
