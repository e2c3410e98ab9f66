#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every call that is not refused has to occur in an end-to-end test.

    check-calls.py API-FOLDER

What the tests check of a call only a reader can judge; this finds those that have been
forgotten.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

# Answered in the guest, always with CUDA_ERROR_NOT_SUPPORTED.
EXCEPTIONS = {"cuLibraryGetManaged"}


def main():
    folder = Path(__file__).resolve().parent
    text = "".join(
        path.read_text()
        for path in folder.rglob("*")
        if path.suffix in (".c", ".cu", ".h", ".py") and path.name != Path(__file__).name
    )
    words = {re.sub(r"_(v\d|pt[ds]s?z?)$", "", word) for word in re.findall(r"\bcu\w+", text)}
    forgotten = set()
    for path in Path(sys.argv[1]).glob("driver-*.xml"):
        for call in ElementTree.parse(path).getroot().iter("call"):
            if call.get("reply") != "refused" and call.get("name") not in words:
                forgotten.add(call.get("name"))
    for name in sorted(forgotten - EXCEPTIONS):
        print(f"{name} occurs in no end-to-end test")
    return 1 if forgotten - EXCEPTIONS or not words else 0


sys.exit(main())
