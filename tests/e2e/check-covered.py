#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every call that is remoted or answered locally is claimed by an end-to-end test.

    check-covered.py SOURCE PROOFS

PROOFS is the list that proofs.py makes. Each run of a program checks its claims (through.py
--claims).
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

# Always errors: arrays of softgpu have no planes and only the memory that they were created
# with, and no device of a guest has concurrent managed access.
NEVER_SUCCEED = {
    "cuArrayGetPlane",
    "cuArrayGetSparseProperties",
    "cuMipmappedArrayGetSparseProperties",
    "cuArrayGetMemoryRequirements",
    "cuMipmappedArrayGetMemoryRequirements",
    "cuMemPrefetchBatchAsync",
    "cuMemDiscardBatchAsync",
    "cuMemDiscardAndPrefetchBatchAsync",
}


def main():
    source = Path(sys.argv[1])
    lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    proved = {line.split()[0] for line in lines}
    n_calls, missing = 0, []
    # All but nvml-*.xml.
    for path in sorted((source / "protocol/api").glob("[!n]*.xml")):
        for call in ElementTree.parse(path).getroot().iter("call"):
            if call.get("reply") == "refused" or call.get("internal"):
                continue
            n_calls += 1
            symbol = call.get("symbol", call.get("name"))
            if symbol not in proved | NEVER_SUCCEED:
                missing.append(symbol)
    for symbol in missing:
        print(f"{symbol} succeeds in no end-to-end test")
    needless = sorted(proved & NEVER_SUCCEED)
    for symbol in needless:
        print(f"{symbol} is no exception: an end-to-end test proves it")
    n_proved = n_calls - len(missing) - len(NEVER_SUCCEED)
    print(f"{n_proved} of {n_calls} calls are proved by an end-to-end test, "
          f"{len(NEVER_SUCCEED)} never succeed")
    return 1 if missing or needless or not n_calls else 0


if __name__ == "__main__":
    sys.exit(main())
