# SPDX-License-Identifier: Apache-2.0
"""g-handlers.h and g-dispatch*.c: from a frame to the driver, in the worker.

Calls nothing but host-daemon/worker/handle/generated.h. g-dispatch.c has the table of calls,
g-dispatch-<family>.c those of one file of the description. Each remoted call has

	dispatch_<symbol>	unpacks the request, runs the handler, finishes the call
	handle_<symbol>		resolves handles, checks ranges, calls the driver:
				generated, or (custom-host, custom-both) written by hand
				in worker/handle/ against the prototypes of g-handlers.h

A handler returns the CUresult and fills the other fields of the reply; data that it
refers to lives as long as the call (call_alloc()).
"""

from writer import Writer

DISPATCH_CALL = """
int dispatch_call(struct call *call)
{
	uint32_t id = call->frame->call;

	if (id >= _VGPU_CALL_N || !dispatchers[id])
		return call_violation(call, "no such call");
	return dispatchers[id](call);
}
"""


def handler_head(w, call, head, end):
    w.wrapped(f"{head}handle_{call.symbol}(", [
        "struct call *call",
        f"const {call.c_struct('Request')} *request",
        f"{call.c_struct('Reply')} *reply",
    ], ")" + end)


def declare_locals(w, call):
    for p in call.params:
        if p.object_kind and p.in_request:
            w.line(f"\tvoid *{p.name};")
        elif p.in_reply:
            value = f"request->{p.field}" if p.in_request else "0"
            w.line(f"\t{p.type} {p.name} = {value};")
    if any("*" in p.bytes for p in call.params):
        w.line("\tuint64_t n_bytes;")
    if any(p.range or p.in_reply or p.object_kind for p in call.params):
        w.line("\tCUresult r;")
    if w.lines[-1] != "{":
        w.blank()


def resolve_handle(w, p):
    kind = f"VGPU_HANDLE_{p.object_kind.upper()}"
    if p.null == "error":
        w.line(f"\tif (!request->{p.field})")
        w.line("\t\treturn CUDA_ERROR_INVALID_HANDLE;")
    if p.role == "destroys":
        w.wrapped("\tr = object_take(",
                  ["call", kind, f"request->{p.field}", f"&{p.name}"], ");")
    else:
        null_ok = "true" if p.null == "ok" else "false"
        w.wrapped("\tr = object_get(",
                  ["call", kind, f"request->{p.field}", null_ok, f"&{p.name}"], ");")
    w.line("\tif (r != CUDA_SUCCESS)")
    w.line("\t\treturn r;")


def check_range(w, call, p):
    fields = {q.name: f"request->{q.field}" for q in call.params}
    factors = [fields.get(f, f) for f in p.bytes.split("*")]
    size = factors[0]
    if len(factors) == 2:
        size = "n_bytes"
        w.line(f"\tif (!vgpu_mul_u64({factors[0]}, {factors[1]}, &n_bytes))")
        w.line("\t\treturn CUDA_ERROR_INVALID_VALUE;")
    w.line(f"\tr = access_check(call, request->{p.field}, {size});")
    w.line("\tif (r != CUDA_SUCCESS)")
    w.line("\t\treturn r;")


def emit_handler(w, call):
    handler_head(w, call, "static CUresult ", "")
    w.line("{")
    declare_locals(w, call)
    w.line(f"\tif (!call->driver->{call.symbol})")
    w.line("\t\treturn CUDA_ERROR_NOT_SUPPORTED;")
    # Destroying comes last: a refused call must not have taken the object.
    handles = [p for p in call.params if p.object_kind and p.in_request]
    for p in sorted(handles, key=lambda p: p.role == "destroys"):
        resolve_handle(w, p)
    for p in call.params:
        if p.range:
            check_range(w, call, p)
    arguments = []
    for p in call.params:
        if p.in_reply:
            arguments.append("&" + p.name)
        elif p.object_kind:
            arguments.append(p.name)
        else:
            arguments.append(f"request->{p.field}")
    outputs = [p for p in call.params if p.in_reply]
    target = "\tr = " if outputs else "\treturn "
    w.wrapped(f"{target}call->driver->{call.symbol}(", arguments, ");")
    for p in outputs:
        w.line(f"\treply->{p.field} = {p.name};")
    if outputs:
        w.line("\treturn r;")
    w.line("}")
    w.blank()


def emit_dispatcher(w, call):
    request = call.c_struct("Request")
    w.line(f"int dispatch_{call.symbol}(struct call *call)")
    w.line("{")
    w.wrapped_value(f"\t{call.c_struct('Reply')} reply =", call.c_macro("Reply"))
    w.line(f"\tconst {request} *request;")
    w.blank()
    w.wrapped(f"\trequest = (const {request} *)call_unpack(",
              ["call", f"&{call.c_prefix('Request')}__descriptor"], ");")
    w.line("\tif (!request)")
    w.line("\t\treturn CALL_E_VIOLATION;")
    w.line(f"\treply.result = handle_{call.symbol}(call, request, &reply);")
    w.line("\treturn call_finish(call, &reply.base, reply.result);")
    w.line("}")
    w.blank()


def emit_header(api):
    w = Writer()
    w.head(api, "Functions that run each call, and handlers written by hand")
    w.line("#pragma once")
    w.blank()
    w.line('#include "vgpu/cuda.h"')
    w.line('#include "vgpu/g-driver.pb-c.h"')
    w.blank()
    w.line("struct call;")
    w.blank()
    for call in api.remoted:
        w.line(f"int dispatch_{call.symbol}(struct call *call);")
    w.blank()
    for call in api.remoted:
        if call.host_by_hand:
            w.c_comment(call.brief)
            handler_head(w, call, "CUresult ", ";")
    return w.finish()


def emit_table(api):
    w = Writer()
    w.head(api, "From the number of a call to its function")
    for name in ("vgpu/g-calls.h", "g-handlers.h", "worker/handle/generated.h"):
        w.line(f'#include "{name}"')
    w.blank()
    w.line("static int (*const dispatchers[_VGPU_CALL_N])(struct call *) = {")
    for call in api.remoted:
        w.wrapped_value(f"\t[VGPU_CALL_{call.symbol}] =", f"dispatch_{call.symbol}", ",")
    w.line("};")
    w.blank()
    w.text(DISPATCH_CALL)
    return w.finish()


def emit_family(api, family, calls):
    w = Writer()
    w.head(api, f"From frames to driver calls: {family}")
    w.blank()
    for name in ("vgpu/checked.h", "vgpu/g-driver.h", "vgpu/g-driver.pb-c.h",
                 "g-handlers.h", "worker/handle/generated.h"):
        w.line(f'#include "{name}"')
    w.blank()
    for call in calls:
        w.c_comment(f"{call.symbol}: {call.brief}")
        w.blank()
        if not call.host_by_hand:
            emit_handler(w, call)
        emit_dispatcher(w, call)
    return w.finish()


def emit_sources(api):
    """Returns the text of each file."""
    files = {"g-dispatch.c": emit_table(api)}
    for family, calls in api.by_family(api.remoted).items():
        files[f"g-dispatch-{family}.c"] = emit_family(api, family, calls)
    return files
