# SPDX-License-Identifier: Apache-2.0
"""g-entries-<family>.c and g-entries.h: the exported functions, which may be traced.

Every exported symbol is a function made here, and nothing else is exported. It calls
shim_<symbol>(), declared in g-entries.h, which does the work and is written by hand or
generated. Calls from one part of the library to another name shim_<symbol>() and are not
traced; cuGetProcAddress hands out what is.

In a callback of a stream every call is refused but those with callback="allowed"; what
the library itself calls there is not.

Calls nothing but guest-shim/src/process/thread.h

	bool shim_thread_must_not_call(void)
		Whether the calling thread runs a callback.

and guest-shim/src/process/trace.h:

	bool shim_trace_is_on

	void shim_trace_begin(struct shim_trace *trace);
		Before the call: takes the time.

	void shim_trace_result(struct shim_trace *trace, const char *name, CUresult r);
		After it. The parameters follow, in their order, each by one of:

	shim_trace_signed, _unsigned, _address, _real(trace, name, value)
	shim_trace_string(trace, name, text)
	shim_trace_block(trace, name, size)	a structure passed by value
	shim_trace_output(trace, name, pointer, size, form)
		a pointer, and what the call left there if it succeeded

	CUresult shim_trace_end(struct shim_trace *trace);
		Writes the line. Returns the result.
"""

from emit_cuda_h import prototype
from model import BASE_WIRE
from writer import Writer

PREFIX = "shim_"
SIGNED = ("int", "short", "char", "long long", "int32_t", "int64_t")
REAL = ("float", "double")
TEXT = ("string", "const char *")


def form_of(api, c_type):
    """How a value of that type is shown: a word of trace.h, "" for a structure."""
    if c_type.endswith("*"):
        return "address"
    found = api.resolve(c_type)
    if found is None:
        if c_type in REAL:
            return "real"
        if c_type in SIGNED:
            return "signed"
        return "unsigned" if c_type in BASE_WIRE or c_type == "unsigned" else ""
    if found.kind in ("handle", "callback"):
        return "address"
    if found.kind == "enum":
        return "signed"
    if found.kind == "scalar":
        return "address" if found.name.startswith("CUdeviceptr") else form_of(api, found.c)
    return ""


def trace_argument(api, p):
    if p.is_output:
        form = form_of(api, p.type)
        if form in ("signed", "unsigned", "address") and p.type != "char":
            return (f'shim_trace_output(&trace, "{p.name}", {p.name}, sizeof(*{p.name}), '
                    f"SHIM_TRACE_{form.upper()});")
        return f'shim_trace_address(&trace, "{p.name}", (uintptr_t){p.name});'
    if p.type in TEXT:
        return f'shim_trace_string(&trace, "{p.name}", {p.name});'
    form = form_of(api, p.type)
    if form == "address":
        return f'shim_trace_address(&trace, "{p.name}", (uintptr_t){p.name});'
    if form:
        return f'shim_trace_{form}(&trace, "{p.name}", {p.name});'
    return f'shim_trace_block(&trace, "{p.name}", sizeof({p.name}));'


def emit_entry(w, api, call, symbol):
    names = [p.name for p in call.params]
    forbidden = "shim_thread_must_not_call()"
    w.line(prototype(call, f"traced_{symbol}",
                     head="static __attribute__((__cold__, __noinline__)) CUresult ",
                     end=""))
    w.line("{")
    w.line("\tstruct shim_trace trace;")
    w.blank()
    w.line("\tshim_trace_begin(&trace);")
    if not call.in_callback:
        w.line(f"\tif ({forbidden})")
        w.line(f'\t\tshim_trace_result(&trace, "{symbol}", CUDA_ERROR_NOT_PERMITTED);')
        w.line("\telse")
    tab = "\t" if call.in_callback else "\t\t"
    w.wrapped(f'{tab}shim_trace_result(&trace, "{symbol}", {PREFIX}{symbol}(', names,
              "));")
    for p in call.params:
        head, _, rest = trace_argument(api, p).partition("(")
        w.wrapped(f"\t{head}(", rest[:-2].split(", "), ");")
    w.line("\treturn shim_trace_end(&trace);")
    w.line("}")
    w.blank()
    w.line(prototype(call, symbol, head="EXPORT CUresult ", end=""))
    w.line("{")
    w.line("\tif (__builtin_expect(shim_trace_is_on, 0))")
    w.wrapped(f"\t\treturn traced_{symbol}(", names, ");")
    if not call.in_callback:
        w.line(f"\tif ({forbidden})")
        w.line("\t\treturn CUDA_ERROR_NOT_PERMITTED;")
    w.wrapped(f"\treturn {PREFIX}{symbol}(", names, ");")
    w.line("}")
    w.blank()


def symbols_of(call):
    return [call.symbol] + ([call.pt_symbol] if call.pt else [])


def emit_header(api):
    w = Writer()
    w.head(api, "The functions behind the exported ones")
    w.line("#pragma once")
    w.blank()
    w.line('#include "vgpu/cuda.h"')
    w.blank()
    for call in api.public:
        for symbol in symbols_of(call):
            w.line(prototype(call, PREFIX + symbol, head="CUresult "))
        if call.takes_default_stream:
            w.line(prototype(call, f"{PREFIX}{call.symbol}_on", head="CUresult ",
                             extra=["CUstream stream"]))
    return w.finish()


def emit_family(api, family, calls):
    w = Writer()
    w.head(api, f"What the guest's libcuda.so.1 exports: {family}")
    w.line('#include "process/shim.h"')
    w.line('#include "process/thread.h"')
    w.line('#include "process/trace.h"')
    w.blank()
    w.line('#define EXPORT __attribute__((__visibility__("default")))')
    w.blank()
    for call in calls:
        for symbol in symbols_of(call):
            emit_entry(w, api, call, symbol)
    return w.finish()


def emit(api):
    """Returns the text of each file."""
    files = {"g-entries.h": emit_header(api)}
    for family, calls in api.by_family(api.public).items():
        files[f"g-entries-{family}.c"] = emit_family(api, family, calls)
    return files
