#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The libraries of scripts/lib/layers call no library of a higher layer.

    test_layers.py SOURCE BUILD
"""

import glob
import subprocess
import sys

sys.path.insert(0, f"{sys.argv[1]}/scripts/lib")
import check_style  # noqa: E402


def symbols(archive):
    """Returns the symbols that it defines, and undefined symbols by object."""
    defined, needed = set(), {}
    listing = subprocess.run(["nm", "-A", "-g", "-P", archive], text=True, check=True,
                             stdout=subprocess.PIPE).stdout
    for line in listing.splitlines():
        where, name, kind = line.split()[:3]
        if kind in "Uw":
            needed[name] = where.rstrip(":")
        else:
            defined.add(name)
    return defined, needed


def main():
    source, build = sys.argv[1:3]
    with open(f"{source}/scripts/lib/layers", encoding="utf-8") as rules:
        layers = check_style.read_layers(rules.read())
    contents = {}
    for folder in layers:
        for archive in glob.glob(f"{build}/{folder}/lib*.a"):
            defined, needed = contents.setdefault(folder, (set(), {}))
            own = symbols(archive)
            defined |= own[0]
            needed.update(own[1])
    offences, n_calls = [], 0
    for folder, (_, needed) in contents.items():
        tree = folder.rpartition("/")[0]
        for name, rule in layers[folder].items():
            other = f"{tree}/{name.rpartition('/')[2]}"
            if other == folder or other not in contents:
                continue
            used = needed.keys() & contents[other][0]
            n_calls += len(used)
            if rule:
                offences += [f"{needed[symbol]} needs {symbol} of {other}/" for symbol in
                             sorted(used)]
    print(f"{len(contents)} libraries, {n_calls} symbols that they use of each other")
    print("\n".join(offences))
    assert len(contents) > 16 and n_calls, "hardly any library was looked at"
    return bool(offences)


sys.exit(main())
