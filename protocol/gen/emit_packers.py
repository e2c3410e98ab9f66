# SPDX-License-Identifier: Apache-2.0
"""g-pack-*.c, g-unpack-*.c: functions for messages of numbers and bytes alone.

	vgpu_request_packer[id], vgpu_reply_packer[id]
	vgpu_request_unpacker[id], vgpu_reply_unpacker[id]

Each side of the boundary needs one of each, so they are four files. The encoding is that
of vgpu/message.h, without a look at each field's description; entries are empty if its
functions have to do it.
"""

from writer import Writer

NUMBERS = {
    "uint32": ("", "uint32_t"),
    "uint64": ("", "uint64_t"),
    "int32": ("(uint64_t)(int64_t)", "int32_t"),
}

RESULT = 1  # the number of the field that each reply begins with


class Field:
    def __init__(self, name, number, wire):
        self.name = name
        self.number = number
        self.wire = wire


def fields_of(call, part):
    if part == "Request":
        params, fields = call.request_fields, []
    else:
        params, fields = call.reply_fields, [Field("result", RESULT, "int32")]
    if any(p.repeated or (p.wire not in NUMBERS and p.wire not in ("fixed64", "bytes"))
           for p in params):
        return None
    fields += [Field(p.field, p.number, p.wire) for p in params]
    return sorted(fields, key=lambda f: f.number)


def can_pack(call, part):
    if fields_of(call, part) is None:
        return False
    return part == "Reply" or call.in_place


def can_unpack(call, part):
    """Bytes stay where they are, and a reply's place is soon that of the next one."""
    fields = fields_of(call, part)
    if fields is None:
        return False
    return part == "Request" or not any(f.wire == "bytes" for f in fields)


def emit_put(w, field):
    value = f"message->{field.name}"
    if field.wire == "bytes":
        w.line(f"\tout = vgpu_put_bytes(out, {field.number}, &{value});")
    elif field.wire == "fixed64":
        w.line(f"\tout = vgpu_put_fixed64(out, {field.number}, {value});")
    else:
        cast = NUMBERS[field.wire][0]
        w.line(f"\tout = vgpu_put_number(out, {field.number}, {cast}{value});")


def declare_message(w, call, part):
    struct = call.c_struct(part)
    w.wrapped_value(f"\tconst {struct} *message =", f"(const {struct} *)base")


def emit_packer(w, call, part):
    fields = fields_of(call, part)
    sizes = ["FIELDS(%d)" % len(fields)]
    sizes += [f"message->{f.name}.len" for f in fields if f.wire == "bytes"]
    w.line(f"static size_t bound_{call.symbol}(const ProtobufCMessage *base)")
    w.line("{")
    if len(sizes) > 1:
        declare_message(w, call, part)
        w.blank()
    w.line("\treturn " + " + ".join(sizes) + ";")
    w.line("}")
    w.blank()
    w.line(f"static size_t pack_{call.symbol}(const ProtobufCMessage *base, uint8_t *out)")
    w.line("{")
    if fields:
        declare_message(w, call, part)
        w.line("\tconst uint8_t *start = out;")
        w.blank()
        for field in fields:
            emit_put(w, field)
        w.line("\treturn (size_t)(out - start);")
    else:
        w.line("\treturn 0;")
    w.line("}")
    w.blank()


def emit_take(w, field):
    target = f"message->{field.name}"
    if field.wire in NUMBERS and field.wire != "uint64":
        w.line("\tnumber = 0;")
        w.line(f"\tin = vgpu_take_number(in, end, {field.number}, &number);")
        w.line(f"\t{target} = ({NUMBERS[field.wire][1]})number;")
    else:
        kind = "number" if field.wire == "uint64" else field.wire
        w.line(f"\tin = vgpu_take_{kind}(in, end, {field.number}, &{target});")


def emit_unpacker(w, call, part):
    fields = fields_of(call, part)
    struct = call.c_struct(part)
    w.wrapped(f"static ProtobufCMessage *unpack_{call.symbol}(",
              ["ProtobufCAllocator *allocator", "size_t size", "const uint8_t *in"], ")")
    w.line("{")
    w.wrapped_value(f"\tstatic const {struct} nothing =", call.c_macro(part))
    w.line(f"\t{struct} *message = NEW(message);")
    w.line("\tconst uint8_t *end = in + size;")
    if any(f.wire in NUMBERS and f.wire != "uint64" for f in fields):
        w.line("\tuint64_t number;")
    w.blank()
    w.line("\tif (!message)")
    w.line("\t\treturn NULL;")
    w.line("\t*message = nothing;")
    for field in fields:
        emit_take(w, field)
    w.line("\treturn in == end ? &message->base : NULL;")
    w.line("}")
    w.blank()


def emit_table(w, calls, part, direction):
    w.line(f"const struct vgpu_{direction}er vgpu_{part.lower()}_{direction}er"
           "[_VGPU_CALL_N] = {")
    for call in calls:
        w.line(f"\t[VGPU_CALL_{call.symbol}] = {{")
        w.line(f"\t\t&{call.c_prefix(part)}__descriptor,")
        if direction == "pack":
            w.line(f"\t\tbound_{call.symbol},")
        w.line(f"\t\t{direction}_{call.symbol},")
        w.line("\t},")
    w.line("};")


def begin(api, what):
    w = Writer()
    w.head(api, what)
    w.line('#include "vgpu/g-calls.h"')
    w.line('#include "vgpu/g-driver.pb-c.h"')
    return w


def emit_pack_file(api, part, what):
    calls = [call for call in api.remoted if can_pack(call, part)]
    w = begin(api, what)
    w.line('#include "vgpu/pack.h"')
    w.blank()
    w.line("#define FIELDS(_n) ((size_t)(_n) * VGPU_FIELD_MAX)")
    w.blank()
    for call in calls:
        emit_packer(w, call, part)
    emit_table(w, calls, part, "pack")
    return w.finish()


def emit_unpack_file(api, part, what):
    calls = [call for call in api.remoted if can_unpack(call, part)]
    w = begin(api, what)
    w.line('#include "vgpu/unpack.h"')
    w.blank()
    w.line("#define NEW(_message) "
           "allocator->alloc(allocator->allocator_data, sizeof(*(_message)))")
    w.blank()
    for call in calls:
        emit_unpacker(w, call, part)
    emit_table(w, calls, part, "unpack")
    return w.finish()


def emit(api):
    """Returns the text of each file."""
    return {
        "g-pack-requests.c": emit_pack_file(api, "Request", "Packing of requests"),
        "g-pack-replies.c": emit_pack_file(api, "Reply", "Packing of replies"),
        "g-unpack-requests.c": emit_unpack_file(api, "Request", "Unpacking of requests"),
        "g-unpack-replies.c": emit_unpack_file(api, "Reply", "Unpacking of replies"),
    }
