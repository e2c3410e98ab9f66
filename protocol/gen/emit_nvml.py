# SPDX-License-Identifier: Apache-2.0
"""The products of the description of NVML, whose calls all stay in the guest.

vgpu/nvml.h		types, constants and prototypes, source compatible with NVIDIA's
			header and under the same include guard
g-nvml-answers.h	prototypes of what is written by hand, answer_<symbol>()
g-nvml-entries.c	every exported function
g-nvml-check.c		the description compared with NVIDIA's header
nvml-coverage.md	how each call is answered, and the test that proves it, one table a family

An exported function returns NVML_ERROR_UNINITIALIZED before nvmlInit, then
NVML_ERROR_INVALID_ARGUMENT for a device that is none and for NULL where there has to be a
pointer; only then is it answered or refused. It calls nothing but
guest-shim/nvml/library.h:

	nvmlReturn_t nvml_enter(void);
		Whether the library is initialised; it remains so until nvml_leave().
	nvmlReturn_t nvml_leave(nvmlReturn_t result);

and guest-shim/nvml/device.h:

	bool nvml_device_is_valid(nvmlDevice_t device);
"""

from emit_check_cuda_h import MACROS, SAME, emit_description
from emit_cuda_h import emit_begin, prototype
from emit_docs import proof_of
from writer import Writer, wrap

RESULT = "nvmlReturn_t"
REFUSAL = "NVML_ERROR_NOT_SUPPORTED"
DEVICE = "nvmlDevice_t"
ANSWER = "answer_"

HEAD = """
#ifndef __nvml_nvml_h__
#define __nvml_nvml_h__

/* The size and the number of a form, by which a call tells structures apart. */
#define NVML_STRUCT_VERSION(_name, _number) \\
	(unsigned int)(sizeof(nvml##_name##_v##_number##_t) | (_number##u << 24))

#define NVML_DEVICE_PCI_BUS_ID_FMT_ARGS(_pci) (_pci)->domain, (_pci)->bus, (_pci)->device
#define NVML_CUDA_DRIVER_VERSION_MAJOR(_version) ((_version) / 1000)
#define NVML_CUDA_DRIVER_VERSION_MINOR(_version) (((_version) % 1000) / 10)
"""

CHECK_HEAD = """
#ifndef CHECK_MACROS
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#endif
#include <nvml.h>
#include <stddef.h>

#if NVML_API_VERSION != 13
#error "the description is of NVML 13.0"
#endif
"""


def returns(call):
    return call.returns or RESULT


def head_of(call):
    """What is in front of a name in a declaration."""
    c_type = returns(call)
    return c_type if c_type.endswith("*") else c_type + " "


def emit_header(api):
    w = emit_begin(api, "NVML: types, constants and prototypes", HEAD)
    hidden = {c.macro for c in api.public}
    w.line("#ifndef NVML_NO_UNVERSIONED_FUNC_DEFS")
    for call in api.public:
        if call.macro:
            w.line(f"#define {call.macro} {call.symbol}")
    w.line("#endif")
    w.blank()
    for call in api.public:
        if call.symbol not in hidden:
            w.line(prototype(call, call.symbol, head_of(call)))
    w.blank()
    w.line("#ifdef NVML_NO_UNVERSIONED_FUNC_DEFS")
    w.blank()
    for call in api.public:
        if call.symbol in hidden:
            w.line(prototype(call, call.symbol, head_of(call)))
    w.blank()
    w.line("#endif /* NVML_NO_UNVERSIONED_FUNC_DEFS */")
    w.blank()
    w.line("#ifdef __cplusplus")
    w.line("}")
    w.line("#endif")
    w.blank()
    w.line("#endif /* __nvml_nvml_h__ */")
    return w.finish()


def emit_answers(api):
    w = Writer()
    w.head(api, "Answers of NVML that are written by hand")
    w.line("#pragma once")
    w.blank()
    w.line('#include "vgpu/nvml.h"')
    w.blank()
    for call in api.public:
        if call.reply == "local" and not call.same_as:
            w.line(prototype(call, ANSWER + call.symbol, head_of(call)))
    return w.finish()


def faults_of(call):
    """Conditions under which the arguments are wrong, in the order of the parameters."""
    faults = []
    for p in call.params:
        if p.type == DEVICE and p.direction == "in":
            faults.append(f"!nvml_device_is_valid({p.name})")
        elif p.c_type.endswith("*") and p.null != "ok":
            faults.append(f"!{p.name}")
    return faults


def emit_entry(w, call):
    arguments = ", ".join(p.name for p in call.params)
    answer = f"{ANSWER}{call.same_as or call.symbol}({arguments})"
    if call.reply == "refused":
        answer = call.code or REFUSAL
    w.line(prototype(call, call.symbol, head_of(call), ""))
    w.line("{")
    if call.before_init:
        w.line(f"\treturn {answer};")
        w.line("}")
        w.blank()
        return
    w.line(f"\t{RESULT} result = nvml_enter();")
    w.blank()
    w.line("\tif (result != NVML_SUCCESS)")
    w.line("\t\treturn result;")
    faults = faults_of(call)
    if faults:
        w.line(wrap("\tif (", faults, ")", separator=" ||"))
        w.line("\t\tresult = NVML_ERROR_INVALID_ARGUMENT;")
        w.line("\telse")
        w.wrapped_value("\t\tresult =", answer)
    else:
        w.wrapped_value("\tresult =", answer)
    w.line("\treturn nvml_leave(result);")
    w.line("}")
    w.blank()


def emit_entries(api):
    w = Writer()
    w.head(api, "Exported functions of NVML")
    w.line("/* These are all that is exported. */")
    w.line("#pragma GCC visibility push(default)")
    w.line('#include "vgpu/nvml.h"')
    w.line("#pragma GCC visibility pop")
    w.blank()
    w.line('#include "nvml/device.h"')
    w.line('#include "nvml/g-nvml-answers.h"')
    w.line('#include "nvml/library.h"')
    w.blank()
    for call in api.public:
        emit_entry(w, call)
    return w.finish()


def emit_check(api):
    w = Writer()
    w.head(api, "The description against NVIDIA's nvml.h")
    w.text(CHECK_HEAD)
    w.blank()
    w.text(SAME)
    w.blank()
    w.line("#ifndef CHECK_MACROS")
    w.blank()
    emit_description(w, api, api.public, RESULT)
    for define in api.defines:
        if define.value.startswith("NVML_STRUCT_VERSION"):
            w.line(f"SAME_VALUE({define.name}, {define.value});")
    w.line("#else /* CHECK_MACROS */")
    w.blank()
    w.text(MACROS)
    w.blank()
    hidden = {c.macro for c in api.public}
    for call in api.public:
        if call.symbol not in hidden:
            w.line(f'SAME_NAME({call.public_name}, "{call.symbol}");')
    w.blank()
    w.line("#endif /* CHECK_MACROS */")
    return w.finish()


HOST = "answered from what the host publishes"
LIBRARY = "answered by the library alone"


def answer_of(call, by_symbol):
    """The call whose answer it has."""
    return by_symbol[call.same_as] if call.same_as else call


def kind_of(call):
    if call.reply == "refused":
        return "refused"
    return LIBRARY if call.why else HOST


def how(call):
    if call.reply == "refused":
        return f"{call.code or REFUSAL}: {call.why}"
    return f"{kind_of(call)}: {call.why}" if call.why else kind_of(call)


def emit_page(api):
    w = Writer()
    w.line("# Coverage of NVML")
    w.blank()
    w.line("Generated from protocol/api by protocol/gen; do not edit.")
    w.blank()
    w.line("A named test calls the function and compares its answer. Each refusal is compared with")
    w.line("this page by tests/nvml/test_nvml.py, with arguments that are right.")
    w.blank()
    by_symbol = {c.symbol: c for c in api.public}
    kinds = [kind_of(answer_of(c, by_symbol)) for c in api.public]
    w.line("| how | symbols |")
    w.line("|---|---|")
    for kind in (HOST, LIBRARY, "refused"):
        w.line(f"| {kind} | {kinds.count(kind)} |")
    w.line(f"| all | {len(api.public)} |")
    w.blank()
    for family, calls in api.by_family(api.public).items():
        w.line(f"## {family}")
        w.blank()
        w.line("| call | how | description | proved by |")
        w.line("|---|---|---|---|")
        for call in calls:
            answer = answer_of(call, by_symbol)
            w.line(f"| `{call.symbol}` | {how(answer)} | {call.brief} | "
                   f"{proof_of(answer, api.proofs)} |")
        w.blank()
    return w.finish()
