#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source of guest library, worker, broker, keeper, vgpuctl and vgpu-metrics has a unit test
beside it, or tests/build/untested names the reason.

    test_units.py SOURCE
"""

import fnmatch
import sys
from pathlib import Path

TOP = Path(sys.argv[1])
sys.path.insert(0, str(TOP / "tests/lib"))
import tap  # noqa: E402

FOLDERS = ("guest-shim/doctor", "guest-shim/nvml", "guest-shim/runtime", "guest-shim/smi",
           "guest-shim/src",
           "host-daemon/broker", "host-daemon/ctl", "host-daemon/keeper",
           "host-daemon/metrics", "host-daemon/replay", "host-daemon/vgpud", "host-daemon/worker")


def untested():
    """Returns the sources without a test beside them."""
    sources = [file for folder in FOLDERS for file in (TOP / folder).rglob("*.c")
               if not file.name.startswith("test-")]
    assert len(sources) > 200, f"only {len(sources)} sources in {TOP}"
    return {str(file.relative_to(TOP)) for file in sources
            if not file.with_name(f"test-{file.name}").exists()}


def read_list(text):
    """Returns {pattern: reason}, and the tests that it names."""
    patterns, tests, reason = {}, [], None
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        kind, _, rest = line.partition(" ")
        if kind == "=":
            reason = rest
        elif kind == "+":
            tests.append(rest)
        else:
            assert reason, f"{line}: no reason"
            assert line not in patterns, f"{line}: twice"
            patterns[line] = reason
    return patterns, tests


def check_sources(sources, patterns):
    """Returns what is wrong."""
    wrong = []
    used = set()
    for source in sorted(sources):
        found = [pattern for pattern in patterns if fnmatch.fnmatch(source, pattern)]
        used.update(found)
        if not found:
            wrong.append(f"{source}: no unit test beside it, and no line in tests/build/untested")
    wrong += [f"{pattern}: not needed in tests/build/untested: there is no such source "
              "without a test" for pattern in patterns if pattern not in used]
    return wrong


def test_each_source_has_a_unit_test_or_a_reason():
    patterns, _ = read_list((TOP / "tests/build/untested").read_text(encoding="utf-8"))
    wrong = check_sources(untested(), patterns)
    assert not wrong, "\n".join(wrong)


def test_the_tests_that_are_named_exist():
    _, tests = read_list((TOP / "tests/build/untested").read_text(encoding="utf-8"))
    missing = [test for test in tests if not (TOP / test).is_file()]
    assert tests and not missing, missing


def test_offences_are_found():
    patterns, _ = read_list("= why\na/b.c\na/entry-*.c\n")
    assert not check_sources({"a/b.c", "a/entry-x.c"}, patterns)
    assert len(check_sources({"a/b.c", "a/entry-x.c", "a/c.c"}, patterns)) == 1
    assert len(check_sources({"a/entry-x.c"}, patterns)) == 1
    assert len(check_sources({"a/b.c"}, patterns)) == 1


if __name__ == "__main__":
    sys.exit(tap.run(tap.functions(globals())))
