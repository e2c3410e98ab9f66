# SPDX-License-Identifier: Apache-2.0
"""The exports of the guest's libcuda.so.1.

g-libcuda.map		version script: these names and no others, one unnamed version
symbols.txt		the same names, compared with the snapshot in git
g-procaddr.c		the table of cuGetProcAddress, declared in vgpu/procaddr.h,
			sorted by name, then by version
"""

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
