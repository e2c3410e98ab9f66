#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of PTX instructions that softgpu runs: decodes each form of a list.

    ptx_page.py INFO FORMS OUTPUT
    ptx_page.py --check INFO FORMS ISA

INFO is vgpu-softgpu-info, ISA the source that has all opcodes. A form that is decoded
although the list has it as refused, or the reverse, is an error of the list, and so is an
opcode without a form.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HEADER = """.version 9.0
.target sm_121a
.address_size 64
.global .align 16 .b8 gl[64];
.const .align 16 .b8 co[64];
.shared .align 16 .b8 sh[256];
.global .texref TX;
.global .samplerref SA;
.global .surfref SX;
.func f() { ret; }
"""
KERNEL = """.visible .entry k{number}(.param .u64 pa) {{
.reg .pred %p<5>; .reg .b16 %h<9>; .reg .b32 %r<10>; .reg .b64 %d<10>; .reg .b128 %q<4>;
.local .align 16 .b8 lo[64];
P: .callprototype _ ();
T: .branchtargets L;
ld.param.u64 %d9, [pa];
{form};
L: ret;
}}
"""
INTRODUCTION = """# PTX instructions on softgpu

Each form of [ptx-forms.txt](../tests/softgpu/ptx-forms.txt) is decoded when this page is built;
`<A|B>` there stands for several forms. A form that is refused refuses the kernels that can reach
it, with its name and line.
"""


def expand(form):
    """All forms for which one with alternatives stands."""
    found = re.search(r"<([^<>]*)>", form)
    if not found:
        return [form]
    return [result for choice in found[1].split("|")
            for result in expand(form[:found.start()] + choice + form[found.end():])]


def chosen(form):
    """Operands that belong to one of the alternatives: 'k16 ... 16:OPERANDS'."""
    found = re.search(r" (\d+):", form)
    if not found:
        return form
    if f"k{found[1]}." not in form:
        return None
    return form.replace(found[0], " ")


def read_forms(path):
    """Lists (group, whether refused, form)."""
    group, forms = None, []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            group = line[2:]
        elif line and not line.startswith("#"):
            refused = line.startswith("! ")
            expanded = dict.fromkeys(filter(None, map(chosen, expand(line.removeprefix("! ")))))
            forms += [(group, refused, form) for form in expanded]
    return forms


def decode(info, forms):
    """The reasons for which forms are refused, None for those that run."""
    text = HEADER + "".join(KERNEL.format(number=i, form=form)
                            for i, (_, _, form) in enumerate(forms))
    with tempfile.TemporaryDirectory(prefix="vgpu-ptx-") as folder:
        path = Path(folder) / "forms.ptx"
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([info, "--json", path], stdout=subprocess.PIPE, check=False)
    ptx = json.loads(done.stdout)["images"][0]["ptx"]
    if "kernels" not in ptx:
        line = text.splitlines()[ptx["line"] - 1]
        sys.exit(f"{ptx['reason']}: {line}")
    return [None if kernel["runs"] else kernel["refused"][0]["reason"]
            for kernel in ptx["kernels"]]


def check(forms, reasons, opcodes):
    """Sentences for what the list has wrong."""
    for (_, refused, form), reason in zip(forms, reasons):
        if refused != bool(reason):
            yield f"{form}: {reason or 'runs, although the list has it as refused'}"
    # the words of an opcode may be apart: wmma.load, and cp.async.mbarrier.arrive
    for opcode in opcodes:
        pattern = re.compile(rf"{re.escape(opcode)}(?![\w:])")
        if not any(pattern.match(form) for _, _, form in forms):
            yield f"{opcode}: no form"


def opcode_of(form):
    return re.match(r"[a-z0-9_]+", form)[0]


def print_page(forms, reasons, out):
    n_refused = sum(map(bool, reasons))
    print(INTRODUCTION, file=out)
    print(f"{len(forms)} forms: {len(forms) - n_refused} run, {n_refused} are refused.", file=out)
    for group in dict.fromkeys(group for group, _, _ in forms):
        print(f"\n## {group}\n\n| instruction | forms that run | refused |\n|---|---|---|",
              file=out)
        rows = [(form, reason) for (of, _, form), reason in zip(forms, reasons) if of == group]
        for opcode in dict.fromkeys(opcode_of(form) for form, _ in rows):
            mine = [(form, reason) for form, reason in rows if opcode_of(form) == opcode]
            refused = dict.fromkeys(f"`{form.split()[0]}`" for form, reason in mine if reason)
            print(f"| {opcode} | {sum(not reason for _, reason in mine)} | "
                  f"{', '.join(refused)} |", file=out)


def main():
    is_check = sys.argv[1] == "--check"
    info, forms_path, *rest = sys.argv[1 + is_check:]
    forms = read_forms(Path(forms_path))
    reasons = decode(info, forms)
    if not is_check:
        with open(rest[0], "w", encoding="utf-8") as out:
            print_page(forms, reasons, out)
        return
    opcodes = re.findall(r'^\tX\([A-Z0-9_]+, "([a-z0-9_.:]+)", "', Path(rest[0]).read_text(
        encoding="utf-8"), re.M)
    assert len(opcodes) > 100, f"only {len(opcodes)} opcodes in {rest[0]}"
    wrong = list(check(forms, reasons, opcodes))
    print("\n".join(wrong) or f"{len(forms)} forms, {len(opcodes)} opcodes")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
