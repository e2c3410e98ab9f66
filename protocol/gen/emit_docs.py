# SPDX-License-Identifier: Apache-2.0
"""g-coverage.md: which calls do what, one table a family; which attributes pass."""

from writer import Writer

HOW = {
    "sync": "remoted, waits for the reply",
    "async": "remoted, does not wait",
    "local": "answered in the guest",
    "refused": "CUDA_ERROR_NOT_SUPPORTED",
}


def emit_family(w, family, calls):
    w.line(f"## {family}")
    w.blank()
    w.line("| call | since | how | what it does |")
    w.line("|---|---|---|---|")
    for call in calls:
        twin = f", `{call.pt_symbol}`" if call.pt else ""
        since = f"{call.since // 1000}.{call.since % 1000 // 10}"
        w.line(f"| `{call.symbol}`{twin} | {since} | {HOW[call.reply]} | {call.brief} |")
    w.blank()


def emit_attributes(w, answers):
    w.line("## Device attributes")
    w.blank()
    w.line("All attributes have the value that the host's driver gives, but for these:")
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
    w.line("| how | symbols |")
    w.line("|---|---|")
    for reply, text in HOW.items():
        n = sum(1 + bool(c.pt) for c in api.public if c.reply == reply)
        w.line(f"| {text} | {n} |")
    w.line(f"| all | {len(api.symbols())} |")
    w.blank()
    for family, calls in api.by_family(api.public).items():
        emit_family(w, family, calls)
    emit_attributes(w, api.answers)
    return w.finish()
