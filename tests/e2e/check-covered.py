#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every call that is remoted or answered locally stands in an end-to-end test.

    check-covered.py SOURCE

A name in the text of a test is no proof that the test is good, but a call without
one is surely not tested.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def tested_names(folder):
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".c", ".h", ".py")
    )
    return set(re.findall(r"\bcu[A-Z]\w+", text))


def main():
    source = Path(sys.argv[1])
    names = tested_names(source / "tests/e2e") | tested_names(source / "tests/shim")
    n_calls, missing = 0, []
    for path in sorted((source / "protocol/api").glob("*.xml")):
        for call in ElementTree.parse(path).getroot().iter("call"):
            if call.get("reply") == "refused" or call.get("internal"):
                continue
            n_calls += 1
            symbol = call.get("symbol", call.get("name"))
            if symbol not in names and call.get("macro", symbol) not in names:
                missing.append(symbol)
    for symbol in missing:
        print(f"{symbol} is in no end-to-end test")
    print(f"{n_calls - len(missing)} of {n_calls} calls are in an end-to-end test")
    return 1 if missing or not n_calls else 0


if __name__ == "__main__":
    sys.exit(main())
