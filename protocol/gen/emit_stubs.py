# SPDX-License-Identifier: Apache-2.0
"""g-stubs-<family>.c: what the entry points of the guest's libcuda.so.1 call, shim_<symbol>().

One file for each file of the description, and g-stubs.h, which they all include;
g-remote.h declares generated functions for entry points that are written by hand.
Calls nothing but guest-shim/src/process/call.h, which has to provide the following, memo.h,
shim_range_holds(address, size, is_deniedp) of range.h, shim_event_exists(event) of event.h, and
shim_device_to_host(), shim_device_from_host() of device.h:

	struct shim_call, SHIM_CALL_INIT(enum vgpu_call)

	CUresult shim_call_sync(struct shim_call *call, const ProtobufCMessage *request,
		const ProtobufCMessageDescriptor *reply_type,
		const ProtobufCMessage **replyp);
		Sends, waits, unpacks. replyp may be NULL; *replyp stays valid until the
		thread's next call. Returns the result in the reply, or a local error.

	CUresult shim_memo_call(...)
		The same for a call that remembers=; answered here when it was before.

	void shim_memo_forget(unsigned int what);
		Something changed: answers remembered until then are old.

	CUresult shim_call_async(struct shim_call *call, const ProtobufCMessage *request,
		CUstream stream);
		Sends; waits for room first where the call is ordered by the stream.

	CUresult shim_call_error(struct shim_call *call, CUresult error);
		A local check failed: returns error, or one that precedes it
		(CUDA_ERROR_NOT_INITIALIZED, a fault, a child after fork).

	CUresult shim_call_refused(enum vgpu_call call, const char *why);
		Not remoted: logs it once, with the reason if there is one, and returns
		CUDA_ERROR_NOT_SUPPORTED.

	void shim_function_forget_launches(void);
		A property changed that decides whether a launch is accepted.

By kind of call:
	refused			body returns shim_call_refused()
	guest="generated"	body packs, sends, unpacks
	guest="wrapped"		the same body under the name shim_remote_<symbol>(), for an
				entry point by hand
	as=			calls the other one with the same arguments
	local, guest="hand"	none: written by hand, prototype from g-entries.h
	per-thread twins	call the plain symbol with stream 0 replaced by 2;
				without a stream argument both symbols are generated and
				call shim_<symbol>_on(), which is by hand and has the
				default stream as its last argument
"""

from emit_cuda_h import prototype
from emit_entries import PREFIX
from writer import Writer, wrap

# The VGPU_REMEMBERS_* to forget.
FORGETS = {"launches": "SETTING", "code": "CODE", "stream": "STREAM"}

HEADER = """
#pragma once

#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/cuda.h"
#include "vgpu/g-calls.h"
#include "vgpu/g-driver.pb-c.h"
#include "process/call.h"
#include "process/device.h"
#include "wait/event.h"
#include "g-remote.h"
#include "code/function.h"
#include "code/memo.h"
#include "memory/range.h"

/* The default stream of a program built for one such stream a thread. */
static inline CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}
"""

REMOTE_HEADER = """
#pragma once

#include "vgpu/cuda.h"

/* Each checks its arguments, sends the call, and returns the host's result. */
"""

# CUDA's error for an invalid handle, if it is not INVALID_HANDLE.
ABSENT = {
    "context": "INVALID_CONTEXT",
    "graph": "INVALID_VALUE",
    "graph_node": "INVALID_VALUE",
    "graph_exec": "INVALID_VALUE",
    "user_object": "INVALID_VALUE",
}


def argument_checks(call):
    """Pairs of a condition that is refused before a message is sent, and its error."""
    values, handles, ranges = [], [], []
    for p in call.params:
        if p.is_output and p.null != "ok":
            values.append(f"!{p.name}")
        elif p.wire == "string":
            values += [f"!{p.name}", f"strlen({p.name}) > {p.max}"]
        elif p.object_kind and (p.type != "CUstream" or p.null == "error") and p.null != "ok":
            error = ABSENT.get(p.object_kind, "INVALID_HANDLE")
            absent = f"!shim_event_exists({p.name})" if p.type == "CUevent" else f"!{p.name}"
            handles.append(([absent], f"CUDA_ERROR_{error}"))
        elif p.type == "CUdevice" and p.in_request:
            handles.append(([f"!shim_device_get({p.name})"],
                            "CUDA_ERROR_INVALID_DEVICE"))
        if p.range:
            ranges += range_condition(p)
    checks = [(values, "CUDA_ERROR_INVALID_VALUE")] + handles
    checks.append((ranges, "CUDA_ERROR_INVALID_VALUE"))
    return [(conditions, error) for conditions, error in checks if conditions]


def range_condition(p):
    """The range is the program's; counted in elements, it starts at a multiple of one."""
    factors = p.bytes.split("*")
    if len(factors) == 1:
        return [f"!shim_range_holds({p.name}, {factors[0]}, &call.wants_result)"]
    aligned = [f"{p.name} % {factor}" for factor in factors if factor.isdigit()]
    return aligned + [f"!vgpu_mul_u64({factors[0]}, {factors[1]}, &n_bytes)",
                      f"!shim_range_holds({p.name}, n_bytes, &call.wants_result)"]


def pack_argument(p):
    source = f"*{p.name}" if p.direction == "inout" else p.name
    if p.object_kind or p.address:
        return f"(uint64_t)(uintptr_t){source}"
    if p.wire == "string":
        return f"(char *){source}"
    if p.type == "CUdevice":
        return f"shim_device_to_host({source})"
    return source


def unpack_result(p):
    value = f"reply->{p.field}"
    if p.object_kind:
        return f"({p.type})(uintptr_t){value}"
    if p.type == "CUdevice":
        return f"shim_device_from_host({value})"
    return value


def emit_body(w, call):
    outputs = [p for p in call.params if p.in_reply]
    request, reply = call.c_struct("Request"), call.c_struct("Reply")
    w.line("{")
    w.wrapped_value(f"\t{request} request =", call.c_macro("Request"))
    if outputs:
        w.line(f"\tconst {reply} *reply;")
        w.line("\tconst ProtobufCMessage *message;")
    w.line(f"\tstruct shim_call call = SHIM_CALL_INIT(VGPU_CALL_{call.symbol});")
    if any("*" in p.bytes for p in call.params):
        w.line("\tuint64_t n_bytes;")
    if outputs or (call.forgets and not call.is_async):
        w.line("\tCUresult result;")
    w.blank()
    for conditions, error in argument_checks(call):
        w.line(wrap("\tif (", conditions, ")", separator=" ||"))
        w.line(f"\t\treturn shim_call_error(&call, {error});")
    for p in call.request_fields:
        w.line(f"\trequest.{p.field} = {pack_argument(p)};")
    if call.forgets == "launches":
        w.line("\tshim_function_forget_launches();")
    if call.is_async:
        stream = call.stream.name if call.order == "stream" else "NULL"
        w.line(f"\treturn shim_call_async(&call, &request.base, {stream});")
        w.line("}")
        return
    send = "shim_memo_call" if call.remembers else "shim_call_sync"
    target = "\tresult = " if outputs or call.forgets else "\treturn "
    w.wrapped(f"{target}{send}(", [
        "&call",
        "&request.base",
        f"&{call.c_prefix('Reply')}__descriptor",
        "&message" if outputs else "NULL",
    ], ");")
    if call.forgets:
        w.line(f"\tshim_memo_forget(VGPU_REMEMBERS_{FORGETS[call.forgets]});")
        if not outputs:
            w.line("\treturn result;")
    if outputs:
        w.line("\tif (result != CUDA_SUCCESS)")
        w.line("\t\treturn result;")
        w.line(f"\treply = (const {reply} *)message;")
        for p in outputs:
            if p.null == "ok":
                w.line(f"\tif ({p.name})")
                w.line(f"\t\t*{p.name} = {unpack_result(p)};")
            else:
                w.line(f"\t*{p.name} = {unpack_result(p)};")
        w.line("\treturn CUDA_SUCCESS;")
    w.line("}")


def emit_refusal(w, call, symbol):
    w.line(prototype(call, PREFIX + symbol, head="CUresult ", end=""))
    w.line("{")
    why = f'"{call.why}"' if call.why else "NULL"
    w.line(f"\treturn shim_call_refused(VGPU_CALL_{call.symbol},")
    w.line(f"\t\t{why});")
    w.line("}")
    w.blank()


def emit_twin(w, call):
    arguments = [
        f"per_thread({p.name})" if p is call.stream else p.name for p in call.params
    ]
    w.line(prototype(call, PREFIX + call.pt_symbol, head="CUresult ", end=""))
    w.line("{")
    w.wrapped(f"\treturn {PREFIX}{call.symbol}(", arguments, ");")
    w.line("}")
    w.blank()


def emit_forward(w, call):
    w.line(prototype(call, PREFIX + call.symbol, head="CUresult ", end=""))
    w.line("{")
    w.wrapped(f"\treturn {PREFIX}{call.same_as}(", [p.name for p in call.params], ");")
    w.line("}")
    w.blank()


def emit_with_default_stream(w, call):
    for symbol, stream in ((call.symbol, "NULL"),
                           (call.pt_symbol, "CU_STREAM_PER_THREAD")):
        w.line(prototype(call, PREFIX + symbol, head="CUresult ", end=""))
        w.line("{")
        w.wrapped(f"\treturn {PREFIX}{call.symbol}_on(",
                  [p.name for p in call.params] + [stream], ");")
        w.line("}")
        w.blank()


def remote_prototype(call, end=";"):
    return prototype(call, f"shim_remote_{call.symbol}", head="CUresult ", end=end)


def emit_call(w, call):
    if call.reply == "refused":
        emit_refusal(w, call, call.symbol)
        if call.pt:
            emit_refusal(w, call, call.pt_symbol)
        return
    if call.same_as:
        emit_forward(w, call)
    if not call.guest_by_hand:
        w.c_comment(call.brief)
        if call.guest_wrapped:
            w.line(remote_prototype(call, end=""))
        else:
            w.line(prototype(call, PREFIX + call.symbol, head="CUresult ", end=""))
        emit_body(w, call)
        w.blank()
    if call.takes_default_stream:
        emit_with_default_stream(w, call)
    elif call.pt:
        emit_twin(w, call)


def emit_header(api):
    w = Writer()
    w.head(api, "Common parts of the entry points of libcuda.so.1")
    w.text(HEADER)
    return w.finish()


def emit_remote_header(api):
    w = Writer()
    w.head(api, "Calls whose entry points are written by hand, as they are sent")
    w.text(REMOTE_HEADER)
    for call in api.public:
        if call.guest_wrapped:
            w.line(remote_prototype(call))
    return w.finish()


def emit_family(api, family, calls):
    w = Writer()
    w.head(api, f"Entry points of the guest's libcuda.so.1: {family}")
    w.line('#include "g-stubs.h"')
    w.blank()
    for call in calls:
        emit_call(w, call)
    return w.finish()


def emit(api):
    """Returns the text of each file."""
    files = {"g-stubs.h": emit_header(api), "g-remote.h": emit_remote_header(api)}
    for family, calls in api.by_family(api.public).items():
        files[f"g-stubs-{family}.c"] = emit_family(api, family, calls)
    return files
