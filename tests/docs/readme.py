#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A block of code of the README, so that a test runs the commands of the reader.

    readme.py README.md STEP NUMBER [LANGUAGE]

STEP is the bold word that the step starts with, as **Host.**; NUMBER counts its blocks of
that language (default: sh), from 1.
"""

import re
import sys


def block(text, step, number, language):
    start = text.index(f"\n**{step}.** ")
    end = re.compile(r"\n(\*\*\w|## )").search(text, start + 1)
    part = text[start:end.start() if end else None]
    return re.findall(rf"^```{language}\n(.*?)^```$", part, re.M | re.S)[number - 1]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    language = sys.argv[4] if len(sys.argv) > 4 else "sh"
    sys.stdout.write(block(text, sys.argv[2], int(sys.argv[3]), language))


if __name__ == "__main__":
    main()
