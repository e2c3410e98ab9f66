# SPDX-License-Identifier: Apache-2.0
"""g-driver.proto: one request and one reply message for each remoted call.

Field number = position of the parameter + 2; field 1 is `result` in replies and
reserved in requests; wire-only fields count from 100. So a reply of any call decodes
as AnyReply where only the result matters. proto3: a zero is not sent.
"""

from writer import Writer


def emit_message(w, name, fields, reply):
    w.line(f"message {name} {{")
    w.line("\tint32 result = 1;" if reply else "\treserved 1;")
    for p in fields:
        repeated = "repeated " if p.repeated else ""
        w.line(f"\t{repeated}{p.wire} {p.field} = {p.number};")
    w.line("}")
    w.blank()


def emit(api):
    w = Writer()
    w.head(api, "Messages of the driver API", "// {}")
    w.line('syntax = "proto3";')
    w.blank()
    w.line("package vgpu;")
    w.blank()
    emit_message(w, "AnyReply", [], True)
    for call in api.remoted:
        w.line(f"// {call.symbol}: {call.brief}")
        emit_message(w, call.message + "Request", call.request_fields, False)
        emit_message(w, call.message + "Reply", call.reply_fields, True)
    return w.finish()
