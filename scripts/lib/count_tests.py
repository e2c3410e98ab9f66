#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the individual tests in meson's logs.

usage: count_tests.py TESTLOG.json...

A test program of ours prints one line a test and ends with 'N passed, N failed, N
skipped'; any other program, and one that must fail, is one test. A program that
failed without saying which test failed (it crashed, or took too long) adds one
failed test. Prints the failed and skipped tests by name, then that line for all of
them together.
"""
import json
import re
import sys

SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
GOOD = {"OK", "EXPECTEDFAIL"}
BY_RESULT = {"EXPECTEDFAIL", "UNEXPECTEDPASS"}  # what the program counts says little


def count(entry):
    """(passed, failed, skipped) of one test program."""
    good, skipped = entry["result"] in GOOD, entry["result"] == "SKIP"
    summaries = SUMMARY.findall(entry.get("stdout") or "")
    if not summaries or entry["result"] in BY_RESULT:
        return int(good), int(not good and not skipped), int(skipped)
    passed, failed, n_skipped = map(int, summaries[-1])
    if not good and not skipped and not failed:
        failed = 1
    return passed, failed, n_skipped


def print_names(entry):
    """What the reader wants to know of a program in which not all went well."""
    name = entry["name"]
    if entry["result"] == "EXPECTEDFAIL":
        return
    lines = (entry.get("stdout") or "").splitlines()
    told = [line for line in lines if re.match(r"(FAIL|skip) ", line)]
    for line in told:
        print(f"{line[:4]} {name}: {line[5:]}")
    if not told and entry["result"] not in GOOD:
        print(f"{'skip' if entry['result'] == 'SKIP' else 'FAIL'} {name}: "
              f"{entry['result'].lower()}")


def main():
    total = [0, 0, 0]
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as log:
            entries = [json.loads(line) for line in log if line.strip()]
        for entry in entries:
            print_names(entry)
            total = [a + b for a, b in zip(total, count(entry))]
    print("{} passed, {} failed, {} skipped".format(*total))


if __name__ == "__main__":
    main()
