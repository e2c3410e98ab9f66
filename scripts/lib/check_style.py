#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what a machine can check of CODING-STYLE.md.

usage: check_style.py ROOT FILE...

Prints 'FILE:LINE: what is wrong' for each offence. Exit status: 0 none, 1 some.
"""
import os
import re
import sys

WIDTH = 90
FILE_LINES = 1000
FUNCTION_LINES = 100
TAB = 8
# Modules (NAME.c and NAME.h) of a folder that include each other in a circle.
CYCLE_MODULES = 4
# Needs no SPDX line: has no comments, or is data.
NO_SPDX = re.compile(r"(^LICENSE|\.md|\.json|\.txt|\.ptx|\.tsv|\.ini|\.clang-format|"
                     r"\.gitignore|\.editorconfig|\.golden|/frozen|/api/wire|/api/layout|"
                     r"\.args\.out|"
                     # Their formats are Debian's, most without comments.
                     r"^debian/(changelog|control|copyright|source/format|not-installed|"
                     r"tests/control|[a-z0-9-]+\.(docs|examples|install|triggers|"
                     r"lintian-overrides|README\.Debian)))$")
TEXT_MAY_BE_WIDE = re.compile(r"\.(md|json|txt|ptx|tsv|xml|golden|proto)$|/golden/|"
                              r"^LICENSE$|/frozen$|/api/(wire|layout)$")
# Inputs of fuzz targets are bytes, whatever they look like.
IS_DATA = re.compile(r"^tests/fuzz/seeds/")
TODO = re.compile(r"\b(TODO|FIXME|XXX)\b(?! ?\(?#\d)")
# There it is a directive of the Test Anything Protocol.
TODO_OF_TAP = re.compile(r"^(scripts/lib/totals|tests/scripts/test_totals)\.py$")
# Bounded sleeps, and wake-ups that a test can lose, are in vgpu/wake.h.
PRODUCT = re.compile(r"^(guest-shim|host-daemon)/(?!.*\btest-).*\.[ch]$")
WAKE = re.compile(r"\bpthread_cond_(wait|signal|broadcast)\(|\bFUTEX_WAKE")
COMMENT = re.compile(r"(//|/\*|^\s*\*|#|<!--)")
INCLUDE = re.compile(r'#\s*include "(.*)/[^/]*"')


def read_layers(text):
    """Returns {folder: {name in #include: "" or the rule that forbids it}}."""
    layers = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        where, order = line.split(":")
        tree, prefix = (where.split() + [""])[:2]
        rank = {folder: i for i, level in enumerate(order.split("<"))
                for folder in level.split()}
        for folder in rank:
            layers[f"{tree}/{folder}"] = {
                prefix + other: "" if other == folder or rank[other] < rank[folder] else
                f"{folder}/ includes {other}/, scripts/lib/layers has {order.strip()}"
                for other in rank}
    return layers


def check_includes(path, lines, layers):
    allowed = layers.get(os.path.dirname(path), {})
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match and allowed.get(match[1]):
            yield number, allowed[match[1]]


def read_module(path, lines, layers, modules):
    """Adds what a file includes of its own folder to {folder: {module: modules}}."""
    folder, name = os.path.split(path)
    if not path.endswith((".c", ".h")) or folder not in layers or name.startswith("test-"):
        return
    own = next(name for name in layers[folder]
               if os.path.basename(name) == os.path.basename(folder))
    module = os.path.splitext(name)[0]
    includes = modules.setdefault(folder, {}).setdefault(module, set())
    includes |= {included for line in lines
                 for included in re.findall(rf'#\s*include "{own}/([^/]*)\.h"', line)} - {module}


def reachable(modules, module):
    found, left = set(), [module]
    while left:
        for other in modules.get(left.pop(), set()) - found:
            found.add(other)
            left.append(other)
    return found


def check_cycles(modules):
    """Yields the largest circle that each module is in, once."""
    reach = {module: reachable(modules, module) for module in modules}
    cycles = {tuple(sorted(other for other in reach[module] if module in reach.get(other, ())))
              for module in modules if module in reach[module]}
    for cycle in cycles:
        if len(cycle) > CYCLE_MODULES:
            yield (f"{', '.join(cycle)} include each other: {len(cycle)} modules, at most "
                   f"{CYCLE_MODULES}")


def check_lines(path, lines):
    wide = TEXT_MAY_BE_WIDE.search(path)
    is_python = path.endswith(".py") or (lines and lines[0].endswith("python3"))
    limit = 100 if is_python else WIDTH
    for number, line in enumerate(lines, 1):
        width = len(line.expandtabs(TAB))
        if width > limit and not wide:
            yield number, f"{width} columns, at most {limit}"
        if line != line.rstrip() and not wide:
            yield number, "space at the end of the line"
        if TODO.search(line) and COMMENT.search(line) and "check_style" not in path and \
                not TODO_OF_TAP.search(path):
            yield number, "a TODO without a number"
        if PRODUCT.search(path) and WAKE.search(line):
            yield number, "sleeps or wakes past vgpu/wake.h"


def check_functions(lines):
    """Bodies start with '{' in column 0 and end with '}' in column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            if number - start - 1 > FUNCTION_LINES:
                yield start, f"a function of {number - start - 1} lines"
            start = None


def check_file(path, text, layers):
    lines = text.splitlines()
    if not NO_SPDX.search(path) and lines and \
            not any("SPDX-License-Identifier:" in line for line in lines[:4]):
        yield 1, "no SPDX-License-Identifier in the first lines"
    yield from check_lines(path, lines)
    if path.endswith((".c", ".h", ".py", ".sh")):
        if len(lines) > FILE_LINES:
            yield len(lines), f"{len(lines)} lines, at most {FILE_LINES}"
    if path.endswith((".c", ".h")):
        yield from check_functions(lines)
        yield from check_includes(path, lines, layers)


def main():
    root, n_offences, modules = sys.argv[1], 0, {}
    with open(f"{root}/scripts/lib/layers", encoding="utf-8") as source:
        layers = read_layers(source.read())
    for path in sys.argv[2:]:
        if IS_DATA.search(path):
            continue
        try:
            with open(f"{root}/{path}", encoding="utf-8") as source:
                text = source.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for number, what in check_file(path, text, layers):
            print(f"{path}:{number}: {what}")
            n_offences += 1
        read_module(path, text.splitlines(), layers, modules)
    for folder in modules:
        for what in check_cycles(modules[folder]):
            print(f"{folder}: {what}")
            n_offences += 1
    return 1 if n_offences else 0


if __name__ == "__main__":
    sys.exit(main())
