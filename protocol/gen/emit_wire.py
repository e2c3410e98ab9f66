# SPDX-License-Identifier: Apache-2.0
"""wire: what both sides have to agree on, one fact a line, for a comparison of releases.

	call ID SYMBOL MINOR PROPERTY...	a call that travels; MINOR is the minor
						version of the protocol that added it
	field MESSAGE NUMBER TYPE NAME		of its request or reply
"""


def properties(call):
    """Those by which the guest counts and the host runs a call."""
    yield call.reply
    if call.order:
        yield "order=" + call.order
    if call.context == "current":
        yield "context"


def fields(call, part, params):
    for p in params:
        kind = "repeated-" + p.wire if p.repeated else p.wire
        yield f"field {call.message}{part} {p.number} {kind} {p.field}"


def lines(call):
    yield " ".join([f"call {call.id} {call.symbol} {call.minor}", *properties(call)])
    yield from fields(call, "Request", call.request_fields)
    yield from fields(call, "Reply", call.reply_fields)


def emit(api):
    calls = sorted(api.remoted, key=lambda c: c.id)
    return "".join(line + "\n" for call in calls for line in lines(call))
