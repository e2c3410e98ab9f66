# SPDX-License-Identifier: Apache-2.0
"""g-names.c: names for people who read recorded calls, see vgpu/names.h.

	vgpu_call_fields(call)		"2 f,10 hStream,101 params": the fields of its
					request by number; a $ marks a string
	vgpu_result_name(result)	"CUDA_ERROR_INVALID_VALUE"
"""

from writer import Writer

FIELDS_FUNCTION = """
const char *vgpu_call_fields(uint32_t call)
{
	return call < _VGPU_CALL_N && fields[call] ? fields[call] : "";
}
"""

RESULT_BEGIN = """
const char *vgpu_result_name(int32_t result)
{
	switch (result) {
"""

RESULT_END = """
	default:
		return NULL;
	}
}
"""

RESULTS = "CUresult"


def describe(field):
    mark = "$" if field.wire == "string" else ""
    return f"{field.number} {mark}{field.name}"


def results(api):
    """(name, number) of each result, one a number."""
    found = {}
    if RESULTS in api.types:
        for name, value, _ in api.types[RESULTS].values:
            found.setdefault(value, name)
    return sorted((value, name) for value, name in found.items())


def emit(api):
    w = Writer()
    w.head(api, "Names of the fields of calls, and of results")
    w.line("#include <stddef.h>")
    w.blank()
    w.line('#include "vgpu/g-calls.h"')
    w.line('#include "vgpu/names.h"')
    w.blank()
    w.line("static const char *const fields[_VGPU_CALL_N] = {")
    w.line("\t[0] = NULL,")
    for call in sorted(api.calls, key=lambda c: c.id):
        if call.remoted and call.request_fields:
            text = ",".join(describe(p) for p in call.request_fields)
            w.wrapped_value(f"\t[VGPU_CALL_{call.symbol}] =", f'"{text}"', ",")
    w.line("};")
    w.blank()
    w.text(FIELDS_FUNCTION)
    w.blank()
    w.text(RESULT_BEGIN)
    for value, name in results(api):
        w.line(f"\tcase {value}:")
        w.line(f'\t\treturn "{name}";')
    w.text(RESULT_END)
    return w.finish()
