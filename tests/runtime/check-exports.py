#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a runtime library exports: the described names, in the version node that programs
ask for, and the same as NVIDIA's library where a toolkit has one.

    check-exports.py VERSION LIBRARY LIST NVIDIA NM
"""

import subprocess
import sys
from pathlib import Path


def exports(nm, library):
    """Returns the names, each with @@ and its version."""
    lines = subprocess.run([nm, "--dynamic", "--defined-only", "--with-symbol-versions",
                            library], text=True, check=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return {line.split()[2] for line in lines if line.split()[1] in "TWDBRV"}


def main():
    version, library, described, nvidia, nm = sys.argv[1:]
    node = f"libcudart.so.{version}"
    ours = exports(nm, library)
    wanted = {f"{name}@@{node}" for name in Path(described).read_text().split()}
    print(f"{len(ours)} exports of {library}")
    wrong = [f"missing: {name}" for name in sorted(wanted - ours)]
    wrong += [f"not described: {name}" for name in sorted(ours - wanted)]
    if Path(nvidia).exists():
        theirs = exports(nm, nvidia)
        print(f"{len(theirs)} exports of {nvidia}")
        wrong += [f"NVIDIA's has it, ours has not: {name}" for name in sorted(theirs - ours)]
        wrong += [f"NVIDIA's does not have it: {name}" for name in sorted(ours - theirs)]
    print("\n".join(wrong))
    assert len(wanted) > 400, "hardly any name is described"
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
