# SPDX-License-Identifier: Apache-2.0
"""attributes.md: the value of each documented attribute on softgpu, why, and the test
that proves it; g-attribute-rows.h: the same for the test that reads all of them back.

	static const struct attribute_row rows_<enumeration>[]

The includer has the structure: a name, its number, and a text for each sample.
"""

from writer import Writer


def proof_of(api, name):
    """One test that names the attribute, and how many more; all are read back."""
    tests = api.proofs.get(name, [])
    if not tests:
        return "read back"
    more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
    return f"{tests[0][0]}: {tests[0][1]}{more}"


def emit_page(api):
    w = Writer()
    w.line("# Attributes and limits")
    w.blank()
    w.line("Generated from protocol/api/attributes.xml by protocol/gen; do not edit.")
    w.blank()
    w.line("The values that a guest gets from softgpu without settings. A test reads all of them")
    w.line("back and compares (softgpu-attributes); if another test shows that the device enforces")
    w.line("one, that test is named. Values marked \"fixed\" are the same for every driver on the")
    w.line("host.")
    for table in api.tables:
        w.blank()
        w.line(f"## {table.enum}, by {table.call}")
        w.blank()
        w.line(table.brief)
        if len(table.samples) > 1:
            w.line(f"Of {', '.join(table.samples)}, in this order.")
        w.blank()
        w.line("| attribute | number | value | source | proved by |")
        w.line("|---|---|---|---|---|")
        for name, number, value, row in api.table_lines(table):
            fixed = "" if row.value else ", fixed"
            w.line(f"| `{name}` | {number} | {value}{fixed} | {row.source} | "
                   f"{proof_of(api, name)} |")
    return w.finish()


def emit_header(api):
    w = Writer()
    w.head(api, "The value of each documented attribute on softgpu")
    w.line("#pragma once")
    for table in api.tables:
        w.blank()
        w.line(f"static const struct attribute_row rows_{table.enum}[] = {{")
        for name, number, value, _ in api.table_lines(table):
            values = value.split(" / ")
            values = values if len(values) > 1 else values * len(table.samples)
            w.wrapped(f'\t{{ "{name}", {number}, {{ ',
                      [f'"{v}"' for v in values], " } },")
        w.line("};")
    return w.finish()
