#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/troubleshooting.md, for comparison with printed messages.

    troubleshooting.py PAGE ROW CODE FILE...

looks for the row's line in a file, and whether the row has that code.
"""

import re
import sys
from pathlib import Path

ROW = re.compile(r"^\| (?P<name>[a-z][a-z-]*) \| (?P<code>\d+) \| `(?P<line>[^`]+)`[^|]* \| "
                 r"(?P<cause>[^|]+) \| (?P<help>[^|]+) \|$")


class Row:
    def __init__(self, match):
        self.name, self.code, self.line = match["name"], int(match["code"]), match["line"]

    def pattern(self):
        """A pattern in which an ellipsis matches anything."""
        return ".*".join(re.escape(part) for part in self.line.split("…"))

    def count(self, text):
        """The number of lines that match."""
        return sum(bool(re.search(self.pattern(), line)) for line in text.splitlines())

    def expect(self, code, text):
        assert code == self.code, f"{self.name}: code {code}, the page says {self.code}\n{text}"
        assert self.count(text), f"{self.name}: no line like\n  {self.line}\nin\n{text}"


def rows(page):
    """All rows of the page, by name."""
    found = {}
    for line in Path(page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|") or re.match(r"\| (row|-)|\|-", line):
            continue
        match = ROW.match(line)
        assert match, f"this is no row: {line}"
        assert match["name"] not in found, f"two rows are called {match['name']}"
        found[match["name"]] = Row(match)
    assert found, f"{page} has no rows"
    return found


def main():
    page, name, code, *files = sys.argv[1:]
    text = "\n".join(Path(file).read_text(errors="replace") for file in files)
    rows(page)[name].expect(int(code), text)


if __name__ == "__main__":
    main()
