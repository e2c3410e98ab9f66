#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The route of a call in the README matches the call graph of the built objects.

    test_route.py SOURCE BUILD

Each step of "Follow one call" names a file and, in the first code span with parentheses or
brackets, a function or table. It has to be defined in that file and, unless its list begins
with it, referenced by the file of an earlier step of its list.
"""

import re
import subprocess
import sys
from pathlib import Path

STEP = re.compile(r"(\d+)\. `([^`]+\.c)`: (.*)")
SYMBOL = re.compile(r"`(\w+)(?:\(\)|\[\])`")


def read_steps(text):
    """Returns the lists of the section, each of (path, symbol)."""
    section = text.split("\n## Follow one call\n", 1)[1].split("\n## ", 1)[0]
    lists, paragraph = [], re.sub(r"\n +", " ", section)
    for line in paragraph.splitlines():
        step = STEP.match(line)
        if not step:
            continue
        symbol = SYMBOL.search(step[3])
        assert symbol, f"no function in: {line}"
        if step[1] == "1":
            lists.append([])
        lists[-1].append((step[2], symbol[1]))
    return lists


def find_objects(build, path):
    """The objects of a source in libraries; the name has the path from its meson.build."""
    parts = path.split("/")
    if parts[0] == "build":
        return list(build.glob(f"**/lib*.p/meson-generated_*_{parts[-1]}.o"))
    return [found for i in range(len(parts)) for found in
            Path(build, *parts[:i]).glob(f"lib*.p/{'_'.join(parts[i:])}.o")]


def read_symbols(build, path):
    """Returns (defined, referenced) symbols of a source."""
    defined, referenced = set(), set()
    objects = find_objects(build, path)
    assert objects, f"{path} is not compiled into any library"
    for found in objects:
        listing = subprocess.run(["nm", "-P", found], text=True, check=True,
                                 stdout=subprocess.PIPE).stdout
        for line in listing.splitlines():
            name, kind = line.split()[:2]
            (referenced if kind in "Uvw" else defined).add(name)
    return defined, referenced


def check_list(source, build, steps):
    """Returns sentences about steps that are not on the route."""
    wrong, referenced = [], set()
    for i, (path, symbol) in enumerate(steps):
        if not path.startswith("build/") and not (source / path).is_file():
            wrong.append(f"{path} does not exist")
            continue
        defined, used = read_symbols(build, path)
        if symbol not in defined:
            wrong.append(f"{path} does not define {symbol}")
        # A file may be on the route twice: a call within it leaves no reference.
        if i and symbol not in referenced:
            wrong.append(f"no step before {path} refers to {symbol}")
        referenced |= used
    return wrong


def main():
    source, build = map(Path, sys.argv[1:3])
    lists = read_steps((source / "README.md").read_text(encoding="utf-8"))
    assert len(lists) == 2 and min(map(len, lists)) >= 5, f"not the lists expected: {lists}"
    wrong = [sentence for steps in lists for sentence in check_list(source, build, steps)]
    for steps in lists:
        print(" -> ".join(symbol for _, symbol in steps))
    print("\n".join(wrong))
    return bool(wrong)


sys.exit(main())
