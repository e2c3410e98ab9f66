# SPDX-License-Identifier: Apache-2.0
"""g-check-cuda-h.c: our description compared with NVIDIA's header.

Compiled (never run) by a test, only where a toolkit of CUDA 13.0 is found: a wrong
signature, number or layout is a failed static assertion that names it. Compiled a
second time with CHECK_MACROS it compares where the base names lead.
"""

from emit_cuda_h import LOOKUP, emit_fields
from model import declare
from writer import Writer, wrap

HEAD = """
#ifndef CHECK_MACROS
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaProfiler.h>
#include <stddef.h>

#if CUDA_VERSION != 13000
#error "the description is of CUDA 13.0"
#endif
"""

SAME = """
#define SAME_TYPE(_a, _b) \\
	_Static_assert(__builtin_types_compatible_p(__typeof__(_a), _b), #_a)
#define SAME_VALUE(_a, _b) _Static_assert((_a) == (_b), #_a)
#define SAME_SIZE(_a, _b) _Static_assert(sizeof(_a) == sizeof(_b), #_a)
#define SAME_OFFSET(_a, _b, _field) \\
	_Static_assert(offsetof(_a, _field) == offsetof(_b, _field), #_a "." #_field)
"""

MACROS = """
#define TEXT_(_name) #_name
#define TEXT(_name) TEXT_(_name)
#define SAME_NAME(_name, _symbol) \\
	_Static_assert(__builtin_strcmp(TEXT(_name), _symbol) == 0, _symbol)
"""


def named_fields(fields):
    """Members by which offsets can be asked for, those of unnamed parts included."""
    for f in fields:
        if f.name:
            yield f.name
        elif f.fields:
            yield from named_fields(f.fields)


def emit_layout(w, t):
    ours = f"check_{t.name}"
    align = f" __attribute__((__aligned__({t.align})))" if t.align else ""
    w.line(f"{t.kind} {ours} {{")
    emit_fields(w, t.fields, 1)
    w.line(f"}}{align};")
    w.line(f"SAME_SIZE({t.name}, {t.kind} {ours});")
    for name in named_fields(t.fields):
        w.line(f"SAME_OFFSET({t.name}, {t.kind} {ours}, {name});")
    w.blank()


def is_number(text):
    return text.strip("-")[:1].isdigit()


def emit_description(w, api, calls, result):
    """The checks of signatures, numbers and layouts."""
    for call in calls:
        params = ", ".join(declare(p.c_type, "").rstrip() for p in call.params) or "void"
        for symbol in [call.symbol] + ([call.pt_symbol] if call.pt else []):
            of_type = f"{call.returns or result}({params})"
            w.line(wrap("SAME_TYPE(", [symbol, of_type], ");"))
    w.blank()
    for t in api.types.values():
        for name, value, _ in t.values:
            w.line(f"SAME_VALUE({name}, ({t.name}){value}ll);")
        if t.kind in ("scalar", "alias", "callback"):
            continue
        if t.kind == "handle":
            w.line(f"SAME_TYPE({t.name}, struct {t.tag} *);")
    w.blank()
    for define in api.defines:
        if is_number(define.value):
            w.line(f"SAME_VALUE({define.name}, {define.value});")
    w.blank()
    for t in api.types.values():
        if t.kind == "scalar":
            w.line(f"SAME_TYPE({t.name}, {t.c});")
        elif t.kind == "alias":
            w.line(f"SAME_TYPE({t.name}, {t.c});")
        elif t.kind == "callback":
            w.line(f"SAME_TYPE({t.name}, {declare(t.returns, '')}(*)({t.params}));")
    w.blank()
    for t in api.types.values():
        if t.kind in ("struct", "union"):
            emit_layout(w, t)


def emit(api):
    w = Writer()
    w.head(api, "The description against NVIDIA's cuda.h")
    w.text(HEAD)
    w.blank()
    w.text(SAME)
    w.blank()
    calls = [c for c in api.public if not c.header]
    w.line("#ifndef CHECK_MACROS")
    w.blank()
    emit_description(w, api, calls, "CUresult")
    w.line("#else /* CHECK_MACROS */")
    w.blank()
    w.text(MACROS)
    w.blank()
    hidden = {c.macro for c in calls}
    shown = [c for c in calls if c.symbol not in hidden]
    w.line("#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM")
    for call in shown:
        twin = call.pt and call.macro != "no"
        symbol = call.pt_symbol if twin else call.symbol
        if call.symbol == LOOKUP:
            symbol += "_ptsz"
        w.line(f'SAME_NAME({call.public_name}, "{symbol}");')
    w.line("#else")
    for call in shown:
        w.line(f'SAME_NAME({call.public_name}, "{call.symbol}");')
    w.line("#endif")
    w.blank()
    w.line("#endif /* CHECK_MACROS */")
    return w.finish()
