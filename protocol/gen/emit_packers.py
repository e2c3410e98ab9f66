# SPDX-License-Identifier: Apache-2.0
"""g-packers.c: a function for each request that is packed straight into the ring.

	vgpu_call_packer[id]	how the request of the call is packed; empty where
				vgpu_message_pack() has to do it

The bytes are those of vgpu_message_pack(), without its look at each field's description.
"""

from writer import Writer

NUMBERS = {"uint32": "", "uint64": "", "int32": "(uint64_t)(int64_t)"}


def has_packer(call):
    return call.remoted and call.in_place and all(
        p.wire in NUMBERS or p.wire in ("fixed64", "bytes") for p in call.request_fields)


def emit_field(w, p):
    value = f"message->{p.field}"
    if p.wire == "bytes":
        w.line(f"\tout = vgpu_put_bytes(out, {p.number}, &{value});")
    elif p.wire == "fixed64":
        w.line(f"\tout = vgpu_put_fixed64(out, {p.number}, {value});")
    else:
        w.line(f"\tout = vgpu_put_number(out, {p.number}, {NUMBERS[p.wire]}{value});")


def emit_bound(w, call):
    sizes = ["FIELDS(%d)" % len(call.request_fields)]
    sizes += [f"message->{p.field}.len" for p in call.request_fields if p.wire == "bytes"]
    w.line(f"static size_t bound_{call.symbol}(const ProtobufCMessage *base)")
    w.line("{")
    if len(sizes) > 1:
        w.wrapped_value(f"\tconst {call.c_struct('Request')} *message =",
                        f"(const {call.c_struct('Request')} *)base")
        w.blank()
    w.line("\treturn " + " + ".join(sizes) + ";")
    w.line("}")
    w.blank()


def emit_pack(w, call):
    w.line(f"static size_t pack_{call.symbol}(const ProtobufCMessage *base, uint8_t *out)")
    w.line("{")
    w.wrapped_value(f"\tconst {call.c_struct('Request')} *message =",
                    f"(const {call.c_struct('Request')} *)base")
    w.line("\tconst uint8_t *start = out;")
    w.blank()
    for p in sorted(call.request_fields, key=lambda p: p.number):
        emit_field(w, p)
    w.line("\treturn (size_t)(out - start);")
    w.line("}")
    w.blank()


def emit(api):
    calls = [call for call in api.remoted if has_packer(call) and call.request_fields]
    w = Writer()
    w.head(api, "Packing of requests")
    w.line('#include "vgpu/g-calls.h"')
    w.line('#include "vgpu/g-driver.pb-c.h"')
    w.line('#include "vgpu/pack.h"')
    w.blank()
    w.line("#define FIELDS(_n) ((size_t)(_n) * VGPU_FIELD_MAX)")
    w.blank()
    for call in calls:
        emit_bound(w, call)
        emit_pack(w, call)
    w.line("const struct vgpu_packer vgpu_call_packer[_VGPU_CALL_N] = {")
    for call in calls:
        w.line(f"\t[VGPU_CALL_{call.symbol}] = {{")
        w.line(f"\t\tbound_{call.symbol},")
        w.line(f"\t\tpack_{call.symbol},")
        w.line("\t},")
    w.line("};")
    return w.finish()
