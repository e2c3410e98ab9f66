#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/operator-review.md says of today is in the tree: files, and words of manuals.

    test_review.py SOURCE
"""

import re
import sys
from pathlib import Path

TOP = Path(sys.argv[1])
# In the last column: a file in `...`, or NAME(SECTION), perhaps with "words" of its page.
REFERENCE = re.compile(r'`([^`]+)`|([a-z-]+)\((\d)\)(?: "([^"]+)")?')


def rows():
    text = (TOP / "docs/operator-review.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] != "point":
            yield cells


def plain(page):
    """The text of a manual, without its macros and escapes."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^\.[A-Z]{1,2}\b ?", "", text, flags=re.M)
    text = re.sub(r"\\f[A-Z]", "", text).replace("\\-", "-").replace('"', "")
    return " ".join(text.split())


def main():
    wrong, n_rows = [], 0
    for cells in rows():
        n_rows += 1
        if len(cells) != 5 or not all(cells):
            wrong.append(f"{cells[0]}: not five cells")
            continue
        found = list(REFERENCE.finditer(cells[4]))
        # Nothing but references, which the pattern knows.
        if not found or REFERENCE.sub("", cells[4]).strip(", "):
            wrong.append(f"{cells[0]}: what is '{cells[4]}'?")
        for file, name, section, words in (match.groups() for match in found):
            path = TOP / (file or f"docs/man/{name}.{section}")
            if not path.exists():
                wrong.append(f"{cells[0]}: there is no {path.relative_to(TOP)}")
            elif words and words not in plain(path):
                wrong.append(f"{cells[0]}: {path.name} does not have '{words}'")
    if n_rows < 30:
        wrong.append(f"only {n_rows} rows")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
