# SPDX-License-Identifier: Apache-2.0
"""Rules that a description keeps, one function a rule.

Each takes the whole description and refuses it at the first fault.
"""

import re

from model import ATTRIBUTES, DescriptionError

ID_MAX = 0xFFFF  # the frame header has 16 bits for it
REPLY_MAX = 2032  # VGPU_REPLY_MAX: the room in a reply slot
MINOR_MAX = 255  # the tables have 8 bits for it
REQUEST_MAX = 65520  # VGPU_FRAME_MAX without the frame header

# Names of variables in generated functions.
RESERVED_NAMES = ("call", "r", "request", "reply", "message", "per_thread", "n_bytes")


def refuse(thing, sentence):
    raise DescriptionError(thing.place, sentence)


def all_params(api):
    """Every parameter and wire-only field, with its call."""
    return [(call, param) for call in api.calls for param in call.params + call.extras]


def ids_are_unique(api):
    seen = {}
    for call in api.calls:
        if not 0 < call.id <= ID_MAX:
            refuse(call, f"id {call.id} of {call.symbol} is not in 1..{ID_MAX}")
        if call.id in seen:
            refuse(call, f"id {call.id} belongs to {seen[call.id].symbol} already")
        seen[call.id] = call


def symbols_are_unique(api):
    seen = {}
    for call in api.calls:
        for symbol in [call.symbol] + ([call.pt_symbol] if call.pt else []):
            if symbol in seen:
                refuse(call, f"{symbol} is already defined at {seen[symbol].place}")
            seen[symbol] = call


def names_start_with_their_layer(api):
    for call in api.calls:
        prefix = "vgpu" if call.internal else api.library.prefix
        if not call.symbol.startswith(prefix):
            refuse(call, f"{call.symbol} does not start with {prefix!r}")
        if not call.symbol.startswith(call.name):
            refuse(call, f"symbol {call.symbol} does not start with its name {call.name}")


def versions_tell_symbols_of_a_name_apart(api):
    seen = {}
    for call in api.public:
        key = (call.name, call.since)
        if not call.since:
            refuse(call, f"{call.symbol} needs since=, the version that brought it")
        if key in seen:
            refuse(call, f"{call.symbol} and {seen[key].symbol} both are {call.name} of "
                         "the same version")
        seen[key] = call


def every_call_has_a_brief(api):
    for call in api.calls:
        if not re.match(r"[A-Z].*\.\Z", call.brief):
            refuse(call, f"{call.symbol} needs a <brief> that is a sentence with a full "
                         "stop")


def remoted_calls_say_how(api):
    for call in api.calls:
        for name in ("blocks", "guest", "host", "context"):
            if call.remoted and not getattr(call, name):
                refuse(call, f"{call.symbol} is remoted and needs {name}=")
            if not call.remoted and getattr(call, name):
                refuse(call, f"{call.symbol} is {call.reply}: {name}= has no meaning there")
        if not call.remoted and call.extras:
            refuse(call.extras[0], f"{call.symbol} is {call.reply} and has no message for "
                                   f"{call.extras[0].name!r}")


def reasons_are_of_refusals(api):
    for call in api.calls:
        if call.why and call.reply != "refused":
            refuse(call, f"{call.symbol} is {call.reply}: why= has no meaning there")


def tables_name_enumerators(api):
    for table in api.tables:
        found = api.types.get(table.enum)
        if found is None or found.kind != "enum":
            refuse(table, f"{table.enum} is no enumeration")
        names = {name for name, _, _ in found.values}
        for row in table.rows:
            for name in row.names:
                if table.prefix + name not in names:
                    refuse(row, f"{table.enum} has no {table.prefix + name}")


def every_attribute_has_one_row(api):
    for table in api.tables:
        numbers = {name: number for name, number, _ in api.types[table.enum].values}
        answers = {a.number for a in api.answers if table.enum == ATTRIBUTES}
        seen = {}
        for row in table.rows:
            for name in row.names:
                number = numbers[table.prefix + name]
                if number in seen:
                    refuse(row, f"{table.prefix + name} has a row already at {seen[number]}")
                seen[number] = row.place
                if bool(row.value) == (number in answers):
                    refuse(row, f"{table.prefix + name} needs value= here or answer= in its "
                                "enumeration, and not both")
        for name, number, place in api.types[table.enum].values:
            if number not in seen and name != table.prefix + "MAX":
                raise DescriptionError(place, f"{name} has no row in the table at "
                                              f"{table.place}")


def rows_have_a_value_a_sample(api):
    for table in api.tables:
        for row in table.rows:
            if len(row.value.split(" / ")) not in (1, len(table.samples)):
                refuse(row, f"value={row.value!r} is not of {len(table.samples)} samples")


def callbacks_make_no_call_that_travels(api):
    for call in api.calls:
        if call.in_callback and (call.internal or call.reply != "local"):
            refuse(call, f"{call.symbol} is not answered in the guest: a callback cannot "
                         "make it")


def asynchronous_calls_never_block_nor_return(api):
    for call in api.calls:
        if not call.is_async:
            continue
        if call.blocks == "maybe":
            refuse(call, f"{call.symbol} is async and may block: the dispatcher "
                         "would block")
        for param in call.reply_fields:
            refuse(param, f"{call.symbol} is async, so there is no reply with {param.name!r}")


def only_answers_are_remembered(api):
    for call in api.calls:
        if call.remembers and call.reply != "sync":
            refuse(call, f"{call.symbol} is {call.reply}: there is no answer to remember")
        if call.remembers and call.forgets:
            refuse(call, f"{call.symbol} changes something: its answer cannot be "
                         "remembered")


def stream_order_names_a_stream(api):
    for call in api.calls:
        if call.order == "stream" and not call.is_async:
            refuse(call, f"{call.symbol} has order=\"stream\" but is not async")
        if call.order == "stream" and (call.stream is None or not call.stream.wire):
            refuse(call, f"{call.symbol} is ordered by a stream but sends no CUstream")


def twins_say_since_when(api):
    for call in api.calls:
        if bool(call.pt) != bool(call.pt_since):
            refuse(call, f"{call.symbol} needs both or none of pt= and pt-since=")


def parameters_are_unique(api):
    seen = set()
    for call, param in all_params(api):
        key = param.field if param.wire else param.name
        if (call.symbol, key) in seen:
            refuse(param, f"{call.symbol} has two parameters named {key!r}")
        seen.add((call.symbol, key))


def names_are_free_for_generated_code(api):
    for call, param in all_params(api):
        if call.remoted and param.position >= 0 and param.name in RESERVED_NAMES:
            refuse(param, f"{param.name!r} is a name that generated functions use "
                          "themselves")


def roles_match_directions_and_kinds(api):
    kinds = {t.object_kind for t in api.object_kinds}
    for _, param in all_params(api):
        if param.object_kind and param.object_kind not in kinds:
            refuse(param, f"no handle has the kind {param.object_kind!r}")
        if param.role == "creates" and param.direction == "in":
            refuse(param, f"{param.name!r} is an input and cannot create a "
                          f"{param.object_kind}")
        if param.role in ("uses", "destroys") and param.direction == "out":
            refuse(param, f"{param.name!r} is an output and cannot use an object")


def one_handle_per_kind(api):
    seen = {}
    for handle in api.object_kinds:
        if handle.object_kind in seen:
            refuse(handle, f"kind {handle.object_kind!r} belongs to "
                           f"{seen[handle.object_kind]} already")
        seen[handle.object_kind] = handle.name


def generated_outputs_can_be_filled(api):
    for call in api.calls:
        if not call.remoted or call.host_by_hand:
            continue
        for param in call.reply_fields:
            if param.object_kind:
                refuse(param, f"{param.name!r} returns a {param.object_kind}: the host "
                              "side must be by hand")
            if param.repeated or param.wire in ("string", "bytes"):
                refuse(param, f"{param.name!r} has a size that only a hand-written host "
                              "side knows")


def forwarded_calls_fit(api):
    calls = {call.symbol: call for call in api.public}
    for call in api.calls:
        if not call.same_as:
            continue
        if call.reply != "local":
            refuse(call, f"{call.symbol} is {call.reply}: as= has no meaning there")
        if call.same_as not in calls or call.same_as == call.symbol:
            refuse(call, f"{call.symbol} cannot go on to {call.same_as}")
        if len(call.params) != len(calls[call.same_as].params):
            refuse(call, f"{call.symbol} has other parameters than {call.same_as}")


def wrapped_calls_have_an_entry_point(api):
    for call in api.calls:
        if call.guest_wrapped and call.internal:
            refuse(call, f'guest="wrapped" is for entry points, and {call.symbol} has none')


def generated_calls_send_all(api):
    for call, param in all_params(api):
        if (call.guest_by_hand and call.host_by_hand) or not call.remoted:
            continue
        if not param.wire:
            refuse(param, f"{param.name!r} does not travel, so both sides must be by hand")
        if param.position < 0:
            refuse(param, f"{param.name!r} is no parameter, so both sides must be by hand")


def sizes_name_parameters(api):
    for call, param in all_params(api):
        if not param.bytes and not param.range:
            continue
        if not param.bytes or not param.range:
            refuse(param, f"{param.name!r} needs both or none of range= and bytes=")
        if param.range != "any" and not call.host_by_hand:
            refuse(param, f"{param.name!r}: generated code checks for range=\"any\" only")
        names = [p.name for p in call.params]
        factors = param.bytes.split("*")
        for factor in factors:
            if not factor.isdigit() and factor not in names:
                refuse(param, f"bytes={param.bytes!r}: {factor!r} is no parameter of "
                              f"{call.symbol}")
        if len(factors) > 2:
            refuse(param, f"bytes={param.bytes!r} is more than a product of two")


def variable_parts_are_bounded(api):
    for _, param in all_params(api):
        if param.wire in ("string", "bytes") and param.max <= 0:
            refuse(param, f"{param.name!r} needs max=, its largest size in bytes")


def memory_is_that_of_bytes(api):
    for _, param in all_params(api):
        if param.memory and (param.wire != "bytes" or not param.in_request):
            refuse(param, f"{param.name!r}: memory= is for bytes of a request")


def messages_fit(api):
    for call in api.remoted:
        size = sum(p.packed_max for p in call.request_fields)
        if size > REQUEST_MAX:
            refuse(call, f"a request of {call.symbol} may take {size} bytes, a frame "
                         f"{REQUEST_MAX}")
        size = 11 + sum(p.packed_max for p in call.reply_fields)
        if size > REPLY_MAX:
            refuse(call, f"a reply of {call.symbol} may take {size} bytes, a slot "
                         f"{REPLY_MAX}")


def message_names_differ(api):
    seen = {}
    for call in api.remoted:
        if call.message in seen:
            refuse(call, f"{call.symbol} and {seen[call.message].symbol} have one message "
                         "name")
        seen[call.message] = call


def one_symbol_per_macro(api):
    reached = {c.symbol for c in api.public}
    seen = {}
    for call in api.public:
        if call.macro in ("", "no"):
            continue
        if call.macro in seen:
            refuse(call, f"macro {call.macro} leads to {seen[call.macro].symbol} already")
        if call.macro == call.symbol:
            refuse(call, f"macro {call.macro} leads to itself")
        seen[call.macro] = call
    for call in api.public:
        if call.name not in reached | set(seen):
            refuse(call, f"no symbol has the name {call.name}")


def aliases_lead_somewhere(api):
    for found in api.types.values():
        if found.kind == "alias" and api.resolve(found.name) is None:
            refuse(found, f"alias {found.name} leads to no described type")


def enumerators_are_unique(api):
    seen = {}
    for found in api.types.values():
        for name, _, place in found.values:
            if name in seen:
                raise DescriptionError(place, f"{name} is already defined at {seen[name]}")
            seen[name] = place


def answers_are_of_device_attributes(api):
    seen = {}
    for found in api.types.values():
        for answer in found.answers:
            if found.name != ATTRIBUTES:
                refuse(answer, f"{answer.name} is no device attribute, it has no answer")
            if answer.number in seen:
                refuse(answer, f"{answer.name} is answered as "
                               f"{seen[answer.number].name} already")
            seen[answer.number] = answer


def types_are_described(api):
    """Every type of the library in a prototype or a structure is defined in the description."""
    def members(fields):
        for f in fields:
            yield from members(f.fields) if f.fields else [f]

    users = [param for call in api.public for param in call.params]
    users += [f for found in api.types.values() for f in members(found.fields)]
    for user in users:
        for word in re.findall(api.library.type_names, user.type):
            if word not in api.types:
                refuse(user, f"type {word} is not described")


def words_of_nvml_stay_there(api):
    for call in api.calls:
        for name in ("code", "before_init", "returns"):
            if getattr(call, name):
                attribute = "init" if name == "before_init" else name
                refuse(call, f"{call.symbol}: {attribute}= is for calls of NVML")


def nothing_travels(api):
    for call in api.calls:
        if call.reply not in ("local", "refused") or call.id or call.internal:
            refuse(call, f"{call.symbol} is of a library whose calls stay in the guest")


def minors_are_of_calls_that_travel(api):
    for call in api.calls:
        if call.minor and not call.remoted:
            refuse(call, f"{call.symbol} is {call.reply}: minor= has no meaning there")
        if call.minor > MINOR_MAX:
            refuse(call, f"minor= of {call.symbol} is beyond {MINOR_MAX}")


def refusals_have_a_reason(api):
    for call in api.calls:
        if call.reply == "refused" and not call.why:
            refuse(call, f"{call.symbol} is refused and needs why=, the reason")
        if call.reply != "refused" and call.code:
            refuse(call, f"{call.symbol} is {call.reply}: code= has no meaning there")


RULES = (
    aliases_lead_somewhere,
    enumerators_are_unique,
    answers_are_of_device_attributes,
    one_handle_per_kind,
    ids_are_unique,
    symbols_are_unique,
    names_start_with_their_layer,
    versions_tell_symbols_of_a_name_apart,
    every_call_has_a_brief,
    types_are_described,
    parameters_are_unique,
    names_are_free_for_generated_code,
    remoted_calls_say_how,
    reasons_are_of_refusals,
    tables_name_enumerators,
    every_attribute_has_one_row,
    rows_have_a_value_a_sample,
    callbacks_make_no_call_that_travels,
    asynchronous_calls_never_block_nor_return,
    twins_say_since_when,
    roles_match_directions_and_kinds,
    only_answers_are_remembered,
    stream_order_names_a_stream,
    forwarded_calls_fit,
    wrapped_calls_have_an_entry_point,
    generated_calls_send_all,
    generated_outputs_can_be_filled,
    sizes_name_parameters,
    variable_parts_are_bounded,
    memory_is_that_of_bytes,
    messages_fit,
    message_names_differ,
    one_symbol_per_macro,
    words_of_nvml_stay_there,
    minors_are_of_calls_that_travel,
)

# Of a library whose calls stay in the guest.
LOCAL_RULES = (
    aliases_lead_somewhere,
    enumerators_are_unique,
    symbols_are_unique,
    names_start_with_their_layer,
    every_call_has_a_brief,
    types_are_described,
    parameters_are_unique,
    nothing_travels,
    refusals_have_a_reason,
    forwarded_calls_fit,
    one_symbol_per_macro,
)


def check(api):
    for rule in RULES if api.library.travels else LOCAL_RULES:
        rule(api)


def check_frozen(api, lines):
    """Compares with the released ids: (place, id, symbol)."""
    calls = {c.symbol: c for c in api.calls}
    for place, number, symbol in lines:
        if symbol not in calls:
            raise DescriptionError(place, f"{symbol} was released and has been removed")
        if calls[symbol].id != number:
            refuse(calls[symbol], f"{symbol} was released with id {number}, not "
                                  f"{calls[symbol].id}")
