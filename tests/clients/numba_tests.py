#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A module of numba-cuda's own tests.

    numba_tests.py MODULE

Prints each test that does not pass, with the last line of its reason. Fails unless they are
those that numba-known.txt beside the lists of expected results names for this module.
"""

import fnmatch
import importlib
import os
import sys
import unittest
from pathlib import Path

KNOWN = Path(__file__).resolve().parent / "expected/numba-known.txt"


def known_failures():
    """Patterns of tests, from lines 'MODULE.CLASS.TEST: reason'."""
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split(": ")[0]


def name_of(test):
    """Of a test, or of a module or class that cannot be set up."""
    name = test.id()
    if "(" in name:
        name = name.split("(")[1].rstrip(")")
    return name.split("numba.cuda.tests.")[-1]


def main():
    (module,) = sys.argv[1:]
    tests = unittest.defaultTestLoader.loadTestsFromModule(
        importlib.import_module(f"numba.cuda.tests.{module}"))
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        done = unittest.TextTestRunner(nowhere).run(tests)
    failed = {}
    for test, text in done.failures + done.errors:
        failed[name_of(test)] = text.strip(": \n").splitlines()[-1]
    for test in done.unexpectedSuccesses:
        failed[name_of(test)] = "it was expected to fail"
    patterns = [pattern for pattern in known_failures()
                if pattern.startswith(f"{module}.") or pattern == module]
    unknown = [name for name in failed
               if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    unused = [pattern for pattern in patterns if not fnmatch.filter(failed, pattern)]
    for name, reason in failed.items():
        print(f"{'unknown' if name in unknown else 'known'}: {name}: {reason}")
    for pattern in unused:
        print(f"passed: {pattern}")
    print(f"{done.testsRun} tests, {len(failed)} failed, {len(done.skipped)} skipped")
    return 1 if unknown or unused else 0


# Some tests start Python again, which imports this file.
if __name__ == "__main__":
    sys.exit(main())
