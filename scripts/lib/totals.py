#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of a Meson test run, in numbers.

usage: totals.py TESTLOG.json

Meson's log has each program's verdict, and of its cases only the TAP that the program
printed. A program that Meson failed though no case failed (it crashed, printed fewer cases
than planned, ended with an error after its plan, or took too long) counts as one failed
case. Prints the failed and skipped cases by name, then 'N passed, N failed, N skipped'.
"""
import json
import re
import sys

CASE = re.compile(r"^(not )?ok\b(?: \d+)?(?: - )?([^#\n]*?) *"
                  r"(?:# *(?:(SKIP|TODO)\S* *(.*)|.*))?$", re.M | re.I)
PLAN_SKIPS = re.compile(r"^1\.\.0\b\s*(?:# *SKIP\S* *(.*))?$", re.M | re.I)


def cases(entry):
    """(verdict, what to print) of each case of one program."""
    found = []
    stdout = entry.get("stdout") or ""
    for match in CASE.finditer(stdout):
        failed, name, directive, reason = match.groups()
        directive = (directive or "").upper()
        if directive == "SKIP" and not failed:
            found.append(("skip", f"{name}: {reason or 'no reason'}"))
        elif bool(failed) != (directive == "TODO"):
            found.append(("FAIL", name))
        else:
            found.append(("ok", name))
    result = entry["result"]
    plan = PLAN_SKIPS.search(stdout)
    if result not in ("OK", "SKIP"):
        if not any(verdict == "FAIL" for verdict, _ in found):
            found.append(("FAIL", f"{result.lower()}, exit status {entry['returncode']}, "
                                  f"after {len(found)} cases"))
    elif not found and plan:
        found.append(("skip", plan[1] or "no reason"))
    elif not found:  # for Meson this is a skip
        found.append(("FAIL", "no case"))
    return found


def main():
    numbers = {"ok": 0, "FAIL": 0, "skip": 0}
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in filter(str.strip, log):
            entry = json.loads(line)
            for verdict, what in cases(entry):
                numbers[verdict] += 1
                if verdict != "ok":
                    print(f"{verdict} {entry['name']}: {what}")
    print("{} passed, {} failed, {} skipped".format(*numbers.values()))


if __name__ == "__main__":
    main()
