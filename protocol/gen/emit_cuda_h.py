# SPDX-License-Identifier: Apache-2.0
"""vgpu/cuda.h: types, constants and prototypes of the CUDA Driver API.

Source compatible with NVIDIA's header, under the same include guard, so that only the
first of the two counts. Programs include it as <cuda.h> and use each call by its base
name, which a macro maps to the newest ABI (and to its per-thread twin with
CUDA_API_PER_THREAD_DEFAULT_STREAM).

Implementers of the API define VGPU_CUDA_INTERNAL (the Meson dependency
dep_protocol_gen does): no macros then, but a prototype for every exported symbol.
"""

from model import declare
from writer import Writer, wrap

HEAD = """
#ifndef __cuda_cuda_h__
#define __cuda_cuda_h__
/* The profiler's three calls are here too. */
#define cuda_profiler_H

#include <stddef.h>
#include <stdint.h>

#define CUDA_VERSION 13000
#define CUDAAPI
#define CUDA_CB
"""

# The only look-up with a flag that selects the twin.
LOOKUP = "cuGetProcAddress_v2"
LOOKUP_TWIN = """
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) && !defined(VGPU_CUDA_INTERNAL)

/* Unless the caller says otherwise, it looks for per-thread twins. */
static inline CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **pfn,
	int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	const cuuint64_t either = CU_GET_PROC_ADDRESS_LEGACY_STREAM |
				  CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	if (!(flags & either))
		flags |= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	return cuGetProcAddress_v2(symbol, pfn, version, flags, status);
}

#define cuGetProcAddress_v2 cuGetProcAddress_v2_ptsz

#endif
"""


def prototype(call, symbol, head="CUresult CUDAAPI ", end=";", extra=()):
    params = [declare(p.c_type, p.name) for p in call.params] + list(extra) or ["void"]
    return wrap(f"{head}{symbol}(", params, ")" + end)


def emit_fields(w, fields, depth):
    indent = "\t" * depth
    for f in fields:
        array = "".join(f"[{n}]" for n in f.array.split())
        if f.fields:
            w.line(f"{indent}{f.type} {{")
            emit_fields(w, f.fields, depth + 1)
            w.line(f"{indent}}}{' ' + f.name if f.name else ''}{array};")
        else:
            w.line(f"{indent}{declare(f.type, f.name)}{array};")


def emit_type(w, t):
    tag = f" {t.tag}" if t.tag else ""
    if t.kind == "handle":
        w.line(f"typedef struct{tag} *{t.name};")
    elif t.kind == "scalar":
        w.line(f"typedef {t.c} {t.name};")
    elif t.kind == "alias":
        w.line(f"typedef {t.c} {t.name};")
    elif t.kind == "callback":
        w.line(f"typedef {declare(t.returns, '')}(CUDA_CB *{t.name})({t.params});")
    elif t.kind == "enum":
        w.line(f"typedef enum{tag} {{")
        for name, value, _ in t.values:
            text = f"0x{value:x}u" if value > 0x7FFFFFFF else str(value)
            w.line(f"\t{name} = {text},")
        w.line(f"}} {t.name};")
        w.blank()
    else:
        align = f" __attribute__((__aligned__({t.align})))" if t.align else ""
        w.line(f"typedef {t.kind}{tag} {{")
        emit_fields(w, t.fields, 1)
        w.line(f"}}{align} {t.name};")
        w.blank()


def emit_macros(w, calls):
    w.line("#ifndef VGPU_CUDA_INTERNAL")
    w.blank()
    w.line("#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM")
    w.line("#define VGPU_CUDA_PTDS_(_symbol) _symbol##_ptds")
    w.line("#define VGPU_CUDA_PTSZ_(_symbol) _symbol##_ptsz")
    w.line("#else")
    w.line("#define VGPU_CUDA_PTDS_(_symbol) _symbol")
    w.line("#define VGPU_CUDA_PTSZ_(_symbol) _symbol")
    w.line("#endif")
    w.blank()
    hidden = {c.macro for c in calls}
    for call in calls:
        if call.macro == "no":
            continue
        if call.pt and call.public_name not in hidden - {call.macro}:
            w.line(f"#define {call.public_name} VGPU_CUDA_{call.pt.upper()}_({call.symbol})")
        elif call.macro:
            w.line(f"#define {call.macro} {call.symbol}")
    w.blank()
    w.line("#endif /* VGPU_CUDA_INTERNAL */")


def emit_prototypes(w, calls):
    """Symbols behind a macro of another are seen by implementers only."""
    hidden = {c.macro for c in calls}
    for call in calls:
        if call.symbol not in hidden and not call.header:
            w.line(prototype(call, call.symbol))
            if call.pt:
                w.line(prototype(call, call.pt_symbol))
    w.blank()
    w.line("#ifdef VGPU_CUDA_INTERNAL")
    w.blank()
    for call in calls:
        if call.symbol in hidden or call.header:
            w.line(prototype(call, call.symbol))
            if call.pt:
                w.line(prototype(call, call.pt_symbol))
    w.blank()
    w.line("#endif /* VGPU_CUDA_INTERNAL */")


def emit_begin(api, title, head):
    """Returns a header with all but its functions."""
    w = Writer()
    w.head(api, title)
    w.text(head)
    w.blank()
    for define in api.defines:
        w.line(f"#define {define.name} {define.value}")
    w.blank()
    w.line("#ifdef __cplusplus")
    w.line('extern "C" {')
    w.line("#endif")
    w.blank()
    for t in api.types.values():
        emit_type(w, t)
    w.blank()
    return w


def emit(api):
    w = emit_begin(api, "CUDA Driver API", HEAD)
    emit_macros(w, [c for c in api.public if not c.header])
    w.blank()
    emit_prototypes(w, api.public)
    w.blank()
    if any(c.symbol == LOOKUP for c in api.public):
        w.text(LOOKUP_TWIN)
        w.blank()
    w.line("#ifdef __cplusplus")
    w.line("}")
    w.line("#endif")
    w.blank()
    w.line("#endif /* __cuda_cuda_h__ */")
    return w.finish()
