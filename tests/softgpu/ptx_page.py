#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of PTX instructions that softgpu runs: decodes each form of a list.

    ptx_page.py INFO FORMS INVENTORY OUTPUT
    ptx_page.py --check INFO FORMS INVENTORY ISA

INFO is vgpu-softgpu-info, ISA the source that has all opcodes. A form that is decoded
although the list has it as refused, or the reverse, is an error of the list, and so is an
opcode without a form, or an operation of the inventory.
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
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc(.param .b64 a);
.extern .func free(.param .b64 a);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,
.param .b64 e);
"""
KERNEL = """.visible .entry k{number}(.param .u64 pa) {{
.reg .pred %p<5>; .reg .b8 %b<4>;
.reg .b16 %h<9>; .reg .b32 %r<10>; .reg .b64 %d<10>; .reg .b128 %q<4>;
.local .align 16 .b8 lo[64];
.param .b32 r4; .param .b64 r8; .param .b32 a4;
.param .b64 a8; .param .b64 b8; .param .b64 c8; .param .b64 d8;
P: .callprototype _ ();
T: .branchtargets L;
ld.param.u64 %d9, [pa];
{form};
L: ret;
}}
"""
# Words that an operation of the inventory may leave out.
SPACES = {"global", "shared", "local", "const", "param", "shared::cta", "shared::cluster"}
HINTS = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified"}
SCOPES = {"cta", "cluster", "gpu", "sys", "gl"}
SCOPED = {"ld", "st", "atom", "red", "fence", "mbarrier", "membar"}
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


def read_inventory(path):
    """Lists (group, operation)."""
    group, operations = None, []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            group = line[2:]
        elif not line.startswith("#"):
            operations += [(group, operation) for operation in line.split()]
    return operations


def names_of(form):
    """The operations for which a form stands, as the inventory has them."""
    opcode, *words = form.split()[0].split(".")
    words = [word for word in words
             if word not in HINTS and not word.startswith(("L1::", "L2::"))]
    scopes = SCOPES if opcode in SCOPED else set()
    for left_out in set(), SPACES, scopes, SPACES | scopes:
        yield ".".join([opcode] + [word for word in words if word not in left_out])
    yield from re.findall(r"%[a-z]\w*(?:\.[xyz])?", form)
    if opcode == "call":
        yield from (f"{name}()" for name in re.findall(r"\b([a-z_]{4,})\b", form))


def not_run(operations, forms, reasons):
    """Operations of the inventory that no form stands for which runs."""
    names = {name for (_, _, form), reason in zip(forms, reasons) if not reason
             for name in names_of(form)}
    return [operation for _, operation in operations if operation not in names]


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


def print_inventory(operations, lacks, out):
    print(f"\n## Operations of real programs\n\n"
          f"[Operations](../tests/softgpu/ptx-inventory.txt) with the opcodes, types and modifiers "
          f"of what nvcc\nmakes of NVIDIA's samples and of ggml, and of what gcc and clang emit: "
          f"{len(operations)}, of which\n{len(operations) - len(lacks)} run.\n\n"
          "| group | operations | run | do not run |\n|---|---|---|---|", file=out)
    for group in dict.fromkeys(group for group, _ in operations):
        mine = [operation for of, operation in operations if of == group]
        missing = [f"`{operation}`" for operation in mine if operation in lacks]
        print(f"| {group} | {len(mine)} | {len(mine) - len(missing)} | {', '.join(missing)} |",
              file=out)


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
    info, forms_path, inventory_path, *rest = sys.argv[1 + is_check:]
    forms = read_forms(Path(forms_path))
    operations = read_inventory(Path(inventory_path))
    reasons = decode(info, forms)
    lacks = not_run(operations, forms, reasons)
    if not is_check:
        with open(rest[0], "w", encoding="utf-8") as out:
            print_page(forms, reasons, out)
            print_inventory(operations, lacks, out)
        return
    opcodes = re.findall(r'^\tX\([A-Z0-9_]+, "([a-z0-9_.:]+)", "', Path(rest[0]).read_text(
        encoding="utf-8"), re.M)
    assert len(opcodes) > 100, f"only {len(opcodes)} opcodes in {rest[0]}"
    assert len(operations) > 466, f"only {len(operations)} operations in {inventory_path}"
    wrong = list(check(forms, reasons, opcodes))
    wrong += [f"{operation}: no form of that operation runs" for operation in lacks]
    print("\n".join(wrong) or f"{len(forms)} forms, {len(opcodes)} opcodes, "
          f"{len(operations)} operations")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
