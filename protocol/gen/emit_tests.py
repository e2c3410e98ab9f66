# SPDX-License-Identifier: Apache-2.0
"""Inputs of tests and fuzzers.

g-messages.c	table of all messages, declared in tests/gen/messages.h
g-fuzz-seeds/	one frame for each remoted call, as on the ring, every field
		set: a corpus to start from
"""

import os
import struct

from writer import Writer

FRAME_REPLY = 1
HEADER = struct.Struct("<IHHII")  # struct vgpu_frame


def emit_messages(api):
    w = Writer()
    w.head(api, "All messages")
    w.line('#include "messages.h"')
    w.line('#include "vgpu/g-calls.h"')
    w.line('#include "vgpu/g-driver.pb-c.h"')
    w.blank()
    w.line("const struct message_pair message_pairs[] = {")
    for call in api.remoted:
        w.line("\t{")
        w.line(f"\t\tVGPU_CALL_{call.symbol},")
        w.line(f"\t\t&{call.c_prefix('Request')}__descriptor,")
        w.line(f"\t\t&{call.c_prefix('Reply')}__descriptor,")
        w.line("\t},")
    w.line("};")
    w.blank()
    w.line("const size_t n_message_pairs = sizeof(message_pairs) / sizeof(message_pairs[0]);")
    return w.finish()


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def value_of(wire, number):
    """A value that is not the default and differs from field to field."""
    if wire == "fixed64":
        return struct.pack("<Q", 0x0010000100000000 + number)
    if wire in ("float", "double"):
        return struct.pack("<f" if wire == "float" else "<d", number)
    return varint(number)


def pack_field(p):
    wire_type = {"fixed64": 1, "double": 1, "float": 5, "string": 2, "bytes": 2}.get(p.wire, 0)
    if p.wire in ("string", "bytes"):
        value = f"field {p.number}".encode()[:p.max]
        value = varint(len(value)) + value
    elif p.repeated:
        wire_type = 2
        value = b"".join(value_of(p.wire, n) for n in (1, 2, 3))
        value = varint(len(value)) + value
    else:
        value = value_of(p.wire, p.number)
    return varint(p.number << 3 | wire_type) + value


def seed(call, sequence):
    body = b"".join(pack_field(p) for p in call.request_fields)
    flags = 0 if call.is_async else FRAME_REPLY
    return HEADER.pack(HEADER.size + len(body), call.id, flags, 0, sequence) + body


def write_seeds(api, folder):
    os.makedirs(folder, exist_ok=True)
    for i, call in enumerate(api.remoted, 1):
        with open(os.path.join(folder, call.symbol), "wb") as file:
            file.write(seed(call, i))
