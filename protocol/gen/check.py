# SPDX-License-Identifier: Apache-2.0
"""Rules that a description keeps, one function a rule.

Each takes the whole description and raises DescriptionError at the first fault.
"""

import re

from model import DescriptionError

ID_MAX = 0xFFFF  # the frame header has 16 bits for it
REPLY_MAX = 1984  # VGPU_REPLY_MAX: what fits a reply slot
REQUEST_MAX = 65520  # VGPU_FRAME_MAX without the frame header

RESERVED_NAMES = ("call", "r", "request", "reply", "message", "per_thread")


def ids_are_unique(api):
    seen = {}
    for call in api.calls:
        if not 0 < call.id <= ID_MAX:
            raise DescriptionError(
                call.place, f"id {call.id} of {call.symbol} is not in 1..{ID_MAX}")
        if call.id in seen:
            raise DescriptionError(
                call.place, f"id {call.id} belongs to {seen[call.id].symbol} already")
        seen[call.id] = call


def symbols_are_unique(api):
    seen = {}
    for call in api.calls:
        for symbol in [call.symbol] + ([call.pt_symbol] if call.pt else []):
            if symbol in seen:
                raise DescriptionError(
                    call.place,
                    f"{symbol} stands already at {seen[symbol].place}")
            seen[symbol] = call


def names_start_with_their_layer(api):
    for call in api.calls:
        prefix = "vgpu" if call.internal else "cu"
        if not call.symbol.startswith(prefix):
            raise DescriptionError(
                call.place, f"{call.symbol} does not start with {prefix!r}")
        if not call.symbol.startswith(call.name):
            raise DescriptionError(
                call.place,
                f"symbol {call.symbol} does not start with its name {call.name}")


def public_calls_have_a_version(api):
    for call in api.public:
        if not call.since:
            raise DescriptionError(
                call.place, f"{call.symbol} needs since=, the version that brought it")


def versions_of_a_name_differ(api):
    seen = {}
    for call in api.public:
        key = (call.name, call.since)
        if key in seen:
            raise DescriptionError(
                call.place,
                f"{call.symbol} and {seen[key].symbol} both are {call.name} of the "
                "same version")
        seen[key] = call


def every_call_has_a_brief(api):
    for call in api.calls:
        if not re.match(r"[A-Z].*\.\Z", call.brief):
            raise DescriptionError(
                call.place,
                f"{call.symbol} needs a <brief> that is a sentence with a full stop")


def remoted_calls_say_how(api):
    for call in api.calls:
        for name in ("blocks", "method", "context"):
            if call.remoted and not getattr(call, name):
                raise DescriptionError(
                    call.place, f"{call.symbol} is remoted and needs {name}=")
            if not call.remoted and getattr(call, name):
                raise DescriptionError(
                    call.place,
                    f"{call.symbol} is {call.reply}: {name}= has no meaning there")


def local_calls_have_no_wire_fields(api):
    for call in api.calls:
        if call.remoted:
            continue
        for extra in call.extras:
            raise DescriptionError(
                extra.place,
                f"{call.symbol} is {call.reply} and has no message for {extra.name!r}")


def asynchronous_calls_never_block(api):
    for call in api.calls:
        if call.is_async and call.blocks == "maybe":
            raise DescriptionError(
                call.place,
                f"{call.symbol} is async and may block: the dispatcher would stand still")


def asynchronous_calls_return_nothing(api):
    for call in api.calls:
        if not call.is_async:
            continue
        for param in call.reply_fields:
            raise DescriptionError(
                param.place,
                f"{call.symbol} is async, so nobody waits for {param.name!r}")


def stream_order_names_a_stream(api):
    for call in api.calls:
        if call.order == "stream" and not call.is_async:
            raise DescriptionError(
                call.place, f"{call.symbol} has order=\"stream\" but is not async")
        if call.order == "stream" and (call.stream is None or not call.stream.wire):
            raise DescriptionError(
                call.place,
                f"{call.symbol} is ordered by a stream but sends no CUstream")


def twins_say_since_when(api):
    for call in api.calls:
        if bool(call.pt) != bool(call.pt_since):
            raise DescriptionError(
                call.place, f"{call.symbol} needs both or none of pt= and pt-since=")


def parameters_are_unique(api):
    for call in api.calls:
        seen = set()
        for param in call.params + call.extras:
            key = param.field if param.wire else param.name
            if key in seen:
                raise DescriptionError(
                    param.place, f"{call.symbol} has two parameters named {key!r}")
            seen.add(key)


def directions_match_types(api):
    for call in api.calls:
        for param in call.params + call.extras:
            if param.is_output and param.type.startswith("const ") \
                    and not param.type.endswith("*"):
                raise DescriptionError(
                    param.place, f"{param.name!r} is const and cannot be written")
            if param.role == "creates" and param.in_request and param.direction == "in":
                raise DescriptionError(
                    param.place,
                    f"{param.name!r} is an input and cannot create a {param.object_kind}")
            if param.role in ("uses", "destroys") and param.direction == "out":
                raise DescriptionError(
                    param.place, f"{param.name!r} is an output: it has nothing to use")


def roles_name_known_kinds(api):
    kinds = {t.object_kind for t in api.object_kinds}
    for call in api.calls:
        for param in call.params + call.extras:
            if param.object_kind and param.object_kind not in kinds:
                raise DescriptionError(
                    param.place, f"no handle has the kind {param.object_kind!r}")


def one_handle_per_kind(api):
    seen = {}
    for handle in api.object_kinds:
        if handle.object_kind in seen:
            raise DescriptionError(
                handle.place,
                f"kind {handle.object_kind!r} belongs to {seen[handle.object_kind]} already")
        seen[handle.object_kind] = handle.name


def generated_outputs_can_be_filled(api):
    for call in api.calls:
        if call.method not in ("generated", "custom-guest"):
            continue
        for param in call.reply_fields:
            if param.object_kind:
                raise DescriptionError(
                    param.place,
                    f"{param.name!r} returns a {param.object_kind}: the host side must "
                    "be by hand")
            if param.repeated or param.wire in ("string", "bytes"):
                raise DescriptionError(
                    param.place,
                    f"{param.name!r} has a size that only a hand-written host side knows")


def generated_calls_send_all(api):
    for call in api.calls:
        for param in call.params + call.extras:
            by_hand = call.method == "custom-both" or not call.remoted
            if not param.wire and not by_hand:
                raise DescriptionError(
                    param.place,
                    f"{param.name!r} does not travel, so both sides must be by hand")
            if param.position < 0 and not by_hand:
                raise DescriptionError(
                    param.place,
                    f"{param.name!r} is no parameter, so both sides must be by hand")


def names_are_free_for_generated_code(api):
    for call in api.calls:
        for param in call.params:
            if param.name in RESERVED_NAMES:
                raise DescriptionError(
                    param.place,
                    f"{param.name!r} is a name that generated functions use themselves")


def sizes_name_parameters(api):
    for call in api.calls:
        names = {p.name: p for p in call.params}
        for param in call.params:
            if not param.bytes and not param.range:
                continue
            if not param.bytes or not param.range:
                raise DescriptionError(
                    param.place, f"{param.name!r} needs both or none of range= and bytes=")
            if param.range != "any" and not call.host_by_hand:
                raise DescriptionError(
                    param.place,
                    f"{param.name!r}: generated code checks for range=\"any\" only")
            for factor in param.bytes.split("*"):
                if not factor.isdigit() and factor not in names:
                    raise DescriptionError(
                        param.place,
                        f"bytes={param.bytes!r}: {factor!r} is no parameter of "
                        f"{call.symbol}")
            if param.bytes.count("*") > 1:
                raise DescriptionError(
                    param.place,
                    f"bytes={param.bytes!r} is more than a product of two")


def variable_parts_are_bounded(api):
    for call in api.remoted:
        for param in call.params + call.extras:
            if param.wire in ("string", "bytes") and param.max <= 0:
                raise DescriptionError(
                    param.place, f"{param.name!r} needs max=, its largest size in bytes")


def messages_fit(api):
    for call in api.remoted:
        size = sum(p.packed_max for p in call.request_fields)
        if size > REQUEST_MAX:
            raise DescriptionError(
                call.place,
                f"a request of {call.symbol} may take {size} bytes, a frame {REQUEST_MAX}")
        size = 11 + sum(p.packed_max for p in call.reply_fields)
        if size > REPLY_MAX:
            raise DescriptionError(
                call.place,
                f"a reply of {call.symbol} may take {size} bytes, a slot {REPLY_MAX}")


def message_names_differ(api):
    seen = {}
    for call in api.remoted:
        if call.message in seen:
            raise DescriptionError(
                call.place,
                f"{call.symbol} and {seen[call.message].symbol} have one message name")
        seen[call.message] = call


def one_symbol_per_macro(api):
    symbols = {c.symbol for c in api.public}
    seen = {}
    for call in api.public:
        if call.macro in ("", "no"):
            continue
        if call.macro in seen:
            raise DescriptionError(
                call.place,
                f"macro {call.macro} leads to {seen[call.macro].symbol} already")
        if call.macro == call.symbol:
            raise DescriptionError(
                call.place, f"macro {call.macro} leads to itself")
        seen[call.macro] = call
    for call in api.public:
        if call.symbol != call.name and call.name not in symbols | set(seen):
            raise DescriptionError(
                call.place, f"nothing is reached by the name {call.name}")


def aliases_lead_somewhere(api):
    for found in api.types.values():
        if found.kind == "alias" and api.resolve(found.name) is None:
            raise DescriptionError(
                found.place, f"alias {found.name} leads to no described type")


def enumerators_are_unique(api):
    seen = {}
    for found in api.types.values():
        for name, _, place in found.values:
            if name in seen:
                raise DescriptionError(place, f"{name} stands already at {seen[name]}")
            seen[name] = place


def types_are_described(api):
    """A type of ours (CU...) in a prototype or a structure stands in the description."""

    def check(place, text):
        for word in re.findall(r"\b(?:CU|cu)[A-Za-z0-9_]+\b", text):
            if word not in api.types:
                raise DescriptionError(place, f"type {word} is not described")

    def check_fields(fields):
        for f in fields:
            if f.fields:
                check_fields(f.fields)
            elif f.type not in ("struct", "union"):
                check(f.place, f.type)

    for call in api.public:
        for param in call.params:
            check(param.place, param.type)
    for found in api.types.values():
        check_fields(found.fields)


RULES = (
    aliases_lead_somewhere,
    enumerators_are_unique,
    one_handle_per_kind,
    ids_are_unique,
    symbols_are_unique,
    names_start_with_their_layer,
    public_calls_have_a_version,
    versions_of_a_name_differ,
    every_call_has_a_brief,
    types_are_described,
    parameters_are_unique,
    remoted_calls_say_how,
    local_calls_have_no_wire_fields,
    asynchronous_calls_never_block,
    asynchronous_calls_return_nothing,
    twins_say_since_when,
    roles_name_known_kinds,
    directions_match_types,
    stream_order_names_a_stream,
    generated_calls_send_all,
    generated_outputs_can_be_filled,
    names_are_free_for_generated_code,
    sizes_name_parameters,
    variable_parts_are_bounded,
    messages_fit,
    message_names_differ,
    one_symbol_per_macro,
)


def check(api):
    for rule in RULES:
        rule(api)


def check_frozen(api, lines):
    """Compares with the released ids: (place, id, symbol)."""
    calls = {c.symbol: c for c in api.calls}
    for place, number, symbol in lines:
        if symbol not in calls:
            raise DescriptionError(place, f"{symbol} was released and is gone")
        if calls[symbol].id != number:
            raise DescriptionError(
                calls[symbol].place,
                f"{symbol} was released with id {number}, not {calls[symbol].id}")
