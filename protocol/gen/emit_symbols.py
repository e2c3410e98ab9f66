# SPDX-License-Identifier: Apache-2.0
"""The exports of the guest's libcuda.so.1.

libcuda.map		version script: these names and no others, one unnamed version
symbols.txt		the same names, compared with the snapshot in git
libcuda-symbols.json	what each of them is: installed for packagers and tools
g-procaddr.c		the table of cuGetProcAddress, declared in vgpu/procaddr.h,
			sorted by name, then by version
"""

import json

from writer import Writer, width


def emit_map(api):
    w = Writer()
    w.head(api, "Exported symbols")
    w.line("{")
    w.line("global:")
    for symbol in api.symbols():
        w.line(f"\t{symbol};")
    w.line("local:")
    w.line("\t*;")
    w.line("};")
    return w.finish()


def emit_list(api):
    return "\n".join(api.symbols()) + "\n"


def describe(call, symbol, since):
    """What a packager or a tool wants to know of a symbol."""
    version = f"{since // 1000}.{since % 1000 // 10}"
    if call.remoted:
        answered = "host"
    else:
        answered = "guest" if call.reply == "local" else "refused"
    entry = {"symbol": symbol, "name": call.name, "since": version, "answered": answered}
    if symbol != call.symbol:
        entry["default_stream"] = "per-thread"
    if call.why:
        entry["why"] = call.why
    return entry


def emit_json(api):
    entries = [describe(c, c.symbol, c.since) for c in api.public]
    entries += [describe(c, c.pt_symbol, c.pt_since) for c in api.public if c.pt]
    entries.sort(key=lambda entry: entry["symbol"])
    lines = ",\n".join("  " + json.dumps(entry) for entry in entries)
    newest = max(call.since for call in api.public)
    api_version = f"{newest // 1000}.{newest % 1000 // 10}"
    return (f'{{"library": "libcuda.so.1", "api": "{api_version}", "symbols": [\n'
            f"{lines}\n]}}\n")


def emit_procaddr(api):
    w = Writer()
    w.head(api, "Table of cuGetProcAddress")
    w.line('#include "vgpu/cuda.h"')
    w.line('#include "vgpu/procaddr.h"')
    w.blank()
    calls = sorted(api.public, key=lambda c: (c.name, c.since))
    w.line("const struct vgpu_procaddr vgpu_procaddr[] = {")
    for call in calls:
        fields = [f'"{call.name}"', str(call.since), f"(void *){call.symbol}"]
        fields += [str(call.pt_since), f"(void *){call.pt_symbol}"] if call.pt else ["0", "NULL"]
        line = "\t{ " + ", ".join(fields) + " },"
        if width(line) <= 90:
            w.line(line)
        else:
            w.line("\t{ " + ", ".join(fields[:2]) + ",")
            w.line("\t\t" + fields[2] + ",")
            w.line("\t\t" + ", ".join(fields[3:]) + " },")
    w.line("};")
    w.blank()
    w.line("const size_t vgpu_n_procaddr = sizeof(vgpu_procaddr) / sizeof(vgpu_procaddr[0]);")
    return w.finish()
