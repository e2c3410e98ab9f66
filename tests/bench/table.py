#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of vgpu-bench as a table in Markdown, one column a driver.

    table.py FIGURES.json
"""

import json
import sys

PREFIXES = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0, "")]


def readable(value, unit):
    if unit == "ns":
        for least, name in ((1e6, "ms"), (1e3, "µs")):
            if value >= least:
                return f"{value / least:.3g} {name}"
        return f"{value:.3g} ns"
    least, prefix = next(pair for pair in PREFIXES if value >= pair[0])
    return f"{value / (least or 1):.3g} {prefix}{'/s' if unit == '1/s' else unit}"


def cell(result):
    if not result:
        return ""
    median, p10, p90 = (
        readable(result[key], result["unit"]) for key in ("median", "p10", "p90")
    )
    return f"{median} ({p10} … {p90})"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        figures = json.load(file)
    results = {(result["name"], result["driver"]): result for result in figures["results"]}
    names = list(dict.fromkeys(result["name"] for result in figures["results"]))
    drivers = list(dict.fromkeys(result["driver"] for result in figures["results"]))
    print("| name | " + " | ".join(f"`{driver}`" for driver in drivers) + " |")
    print("|---" * (len(drivers) + 1) + "|")
    for name in names:
        cells = [cell(results.get((name, driver))) for driver in drivers]
        print(f"| `{name}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
