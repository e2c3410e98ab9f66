#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a file as a C array with a final NUL: embed.py NAME INPUT OUTPUT."""

import sys

name, source, target = sys.argv[1:]
with open(source, "rb") as f:
    data = f.read()
with open(target, "w", encoding="ascii") as f:
    f.write(f"/* {name}: made by tests/e2e/embed.py */\n")
    f.write(f"extern const char {name}[];\nconst char {name}[] = {{\n")
    for i in range(0, len(data), 16):
        f.write("\t" + ", ".join(str(b) for b in data[i : i + 16]) + ",\n")
    f.write("\t0,\n};\n")
