# SPDX-License-Identifier: Apache-2.0
"""coverage.md: the behaviour of each call, and the end-to-end test that proves it, one
table a family; the attributes with fixed values.

The proofs come from a list that tests/lib/proofs.py makes of the tests.
"""

from writer import Writer

HOW = {
    "sync": "remoted, waits for the reply",
    "async": "remoted, does not wait",
    "local": "answered in the guest",
    "refused": "CUDA_ERROR_NOT_SUPPORTED",
}


def proof_of(call, proofs):
    """One test, the first of a program that is about the family, and how many more."""
    tests = proofs.get(call.symbol, [])
    if not tests or call.reply == "refused":
        return ""
    program, test = min(tests, key=lambda t: not t[0].endswith(call.family))
    more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
    return f"{program}: {test}{more}"


def emit_family(w, family, calls, proofs):
    w.line(f"## {family}")
    w.blank()
    w.line("| call | since | how | description | proved by |")
    w.line("|---|---|---|---|---|")
    for call in calls:
        twin = f", `{call.pt_symbol}`" if call.pt else ""
        since = f"{call.since // 1000}.{call.since % 1000 // 10}"
        how = f"{HOW[call.reply]}: {call.why}" if call.why else HOW[call.reply]
        w.line(f"| `{call.symbol}`{twin} | {since} | {how} | {call.brief} | "
               f"{proof_of(call, proofs)} |")
    w.blank()


def emit_attributes(w, answers):
    w.line("## Device attributes")
    w.blank()
    w.line("All attributes have the value of the host's driver, except these; the values of")
    w.line("softgpu are in attributes.md.")
    w.blank()
    w.line("| attribute | value |")
    w.line("|---|---|")
    for answer in answers:
        w.line(f"| `{answer.name}` | {answer.answer} |")


def emit(api):
    w = Writer()
    w.line("# Coverage of the CUDA Driver API")
    w.blank()
    w.line("Generated from protocol/api by protocol/gen; do not edit.")
    w.blank()
    w.line("A named test calls the function and checks its effect; when the tests run, a trace of")
    w.line("the program has to show that the call was made and succeeded.")
    w.blank()
    w.line("| how | symbols |")
    w.line("|---|---|")
    for reply, text in HOW.items():
        n = sum(1 + bool(c.pt) for c in api.public if c.reply == reply)
        w.line(f"| {text} | {n} |")
    w.line(f"| all | {len(api.symbols())} |")
    w.blank()
    for family, calls in api.by_family(api.public).items():
        emit_family(w, family, calls, api.proofs)
    emit_attributes(w, api.answers)
    return w.finish()
