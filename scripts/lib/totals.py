#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of a Meson test run, or of one program that prints TAP, in numbers.

usage: totals.py TESTLOG.json
       totals.py --tap OUTPUT STATUS

Meson's log has each program's verdict, and of its cases only the TAP that the program
printed. A program that Meson failed though no case failed (it crashed, printed fewer cases
than planned, ended with an error after its plan, or took too long) counts as one failed
case. Prints the failed and skipped cases by name, below the failed ones of a program the last
lines of its standard error, then 'N passed, N failed, N skipped'.
"""
import json
import re
import sys
from pathlib import Path

CASE = re.compile(r"^(not )?ok\b(?: \d+)?(?: - )?([^#\n]*?) *"
                  r"(?:# *(?:(SKIP|TODO)\S* *(.*)|.*))?$", re.M | re.I)
PLAN = re.compile(r"^1\.\.(\d+)\b", re.M)
LINES_OF_ERROR = 20
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


def entries(path):
    """The programs in a log of Meson's."""
    with open(path, encoding="utf-8") as log:
        for line in filter(str.strip, log):
            yield json.loads(line)


def tap_entry(path, status):
    """A program by its output and exit status, as Meson would have logged it."""
    stdout = Path(path).read_text(encoding="utf-8")
    plan = PLAN.search(stdout)
    is_whole = plan and int(plan[1]) == len(CASE.findall(stdout))
    result = "FAIL" if status else "OK" if is_whole else "ERROR"
    return {"name": Path(path).name, "stdout": stdout, "result": result,
            "returncode": status}


def main():
    numbers = {"ok": 0, "FAIL": 0, "skip": 0}
    if sys.argv[1] == "--tap":
        programs = [tap_entry(sys.argv[2], int(sys.argv[3]))]
    else:
        programs = entries(sys.argv[1])
    for entry in programs:
        found = cases(entry)
        for verdict, what in found:
            numbers[verdict] += 1
            if verdict != "ok":
                print(f"{verdict} {entry['name']}: {what}")
        if any(verdict == "FAIL" for verdict, _ in found):
            for line in (entry.get("stderr") or "").splitlines()[-LINES_OF_ERROR:]:
                print(f"| {line}")
    print("{} passed, {} failed, {} skipped".format(*numbers.values()))


if __name__ == "__main__":
    main()
