#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each case of a Meson test run is counted, and none of a program that fails is lost.

    test_totals.py SOURCE

A project of planted programs is tested by Meson, and what scripts/lib/totals.py says of the
log is compared. The C runner and tests/lib/tap.py are among the programs.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(sys.argv[1]).absolute()
sys.path.insert(0, str(TOP / "tests/lib"))
import tap  # noqa: E402

# program: (its text, (passed, failed, skipped), what is said of it)
PYTHON = {
    "good": ("print('TAP version 13\\n1..2\\nok 1 - a\\nok 2 - b # 0.1 s')", (2, 0, 0), []),
    "skips": ("print('TAP version 13\\n1..2\\nok 1 - a\\nok 2 - b # SKIP no b here')",
              (1, 0, 1), ["skip skips: b: no b here"]),
    "skips_all": ("print('1..0 # SKIP nothing here')", (0, 0, 1),
                  ["skip skips_all: nothing here"]),
    "planned": ("print('TAP version 13\\n1..2\\nok 1 - a\\nnot ok 2 - b # TODO later')",
                (2, 0, 0), []),
    "repaired": ("print('TAP version 13\\n1..1\\nok 1 - a # TODO later')", (0, 1, 0),
                 ["FAIL repaired: a"]),
    "fails": ("print('TAP version 13\\n1..2\\nok 1 - a\\nnot ok 2 - b'); raise SystemExit(1)",
              (1, 1, 0), ["FAIL fails: b"]),
    "dies": ("import os\nprint('TAP version 13\\n1..3\\nok 1 - a', flush=True)\nos.abort()",
             (1, 1, 0), ["FAIL dies: error, exit status -6, after 1 cases"]),
    "errs": ("import sys\nfor i in range(21): print('line', i, file=sys.stderr)\n"
             "print('TAP version 13\\n1..1\\nok 1 - a')\nraise SystemExit(3)", (1, 1, 0),
             ["FAIL errs: error, exit status 3, after 1 cases"]),
    "lacks": ("print('TAP version 13\\n1..3\\nok 1 - a\\nok 2 - b')", (2, 1, 0),
              ["FAIL lacks: error, exit status 0, after 2 cases"]),
    "exceeds": ("print('TAP version 13\\n1..1\\nok 1 - a\\nok 2 - b')", (2, 1, 0),
                ["FAIL exceeds: error, exit status 0, after 2 cases"]),
    "hangs": ("import time\nprint('TAP version 13\\n1..2\\nok 1 - a', flush=True)\n"
              "time.sleep(600)", (1, 1, 0),
              ["FAIL hangs: timeout, exit status -15, after 1 cases"]),
    "silent": ("", (0, 1, 0), ["FAIL silent: no case"]),
    "cases": ("""
import sys, unittest
sys.path.insert(0, LIB)
import tap
class Test(unittest.TestCase):
    def test_a(self): print("ok 9 - not a case")
    def test_b(self): self.fail("this is why")
    def test_c(self): self.skipTest("no c here")
    def test_d(self):
        for i in range(3):
            with self.subTest(i=i): self.assertEqual(i, 1)
    @unittest.expectedFailure
    def test_e(self): pass
sys.exit(tap.unittest_main())
""", (1, 3, 1), ["FAIL cases: Test.test_b", "skip cases: Test.test_c: no c here",
                 "FAIL cases: Test.test_d", "FAIL cases: Test.test_e"]),
}
RUNNER = r"""
#include <stdlib.h>
#include <unistd.h>
#include "test.h"
TEST(passes) { puts("ok 7 - not a case"); }
TEST(fails) { check_eq(1 + 1, 3); }
TEST(skips) { test_skip("no %s\nhere", "thing"); }
TEST(crashes) { abort(); }
TEST(leaves_a_descriptor) { check(dup(2) >= 0); }
"""
RUNNER_SAYS = ["FAIL runner: fails", "skip runner: skips: no thing here",
               "FAIL runner: crashes", "FAIL runner: leaves_a_descriptor"]
# what tap.py is given: (arguments, (passed, failed, skipped), what is said of it)
WRAPPED = {
    "ends_well": (["true"], (1, 0, 0), []),
    "ends_badly": (["false"], (0, 1, 0), ["FAIL ends_badly: false"]),
    "has_a_reason": (["sh", "-c", "echo skipped: no thing here; exit 77"], (0, 0, 1),
                     ["skip has_a_reason: sh: no thing here"]),
    "says_ok": (["echo", "ok 5 - not a case"], (1, 0, 0), []),
    "must_fail": (["--must-fail", "false"], (1, 0, 0), []),
    "must_fail_and_passes": (["--must-fail", "true"], (0, 1, 0),
                             ["FAIL must_fail_and_passes: true fails"]),
    "must_fail_and_crashes": (["--must-fail", "sh", "-c", "kill -ABRT $$"], (0, 1, 0),
                              ["FAIL must_fail_and_crashes: sh fails"]),
}


def write_project(folder):
    lib = TOP / "tests/lib"
    lines = ["project('planted', 'c', default_options: 'c_std=gnu11')",
             "python = find_program('python3')",
             f"test('runner', executable('runner', 'runner.c', '{lib}/runner.c',",
             f"  include_directories: include_directories('{os.path.relpath(lib, folder)}'),",
             "  c_args: '-D_GNU_SOURCE'), protocol: 'tap')"]
    (folder / "runner.c").write_text(RUNNER, encoding="ascii")
    for name, (text, _, _) in PYTHON.items():
        (folder / f"{name}.py").write_text(f"LIB = {str(lib)!r}\n{text}", encoding="ascii")
        lines.append(f"test('{name}', python, args: files('{name}.py'), protocol: 'tap', "
                     f"timeout: {2 if name == 'hangs' else 60})")
    for name, (arguments, _, _) in WRAPPED.items():
        lines.append(f"test('{name}', python, args: ['{lib}/tap.py'] + {arguments!r}, "
                     "protocol: 'tap')")
    (folder / "meson.build").write_text("\n".join(lines) + "\n", encoding="ascii")


def totals(*arguments):
    done = subprocess.run([sys.executable, TOP / "scripts/lib/totals.py", *arguments],
                          stdout=subprocess.PIPE, text=True, check=True)
    *said, numbers = done.stdout.splitlines()
    errors = [line for line in said if line.startswith("| ")]
    return sorted(line for line in said if line not in errors), errors, numbers


def main():
    wanted, said = [1, 3, 1], list(RUNNER_SAYS)
    for _, numbers, lines in [*PYTHON.values(), *WRAPPED.values()]:
        wanted = [a + b for a, b in zip(wanted, numbers)]
        said += lines
    with tempfile.TemporaryDirectory(prefix="vgpu-totals-") as name:
        folder = Path(name).resolve()
        write_project(folder)
        build = folder / "build"
        for command in (["setup", build, folder], ["test", "-C", build, "--print-errorlogs"]):
            done = subprocess.run(["meson", *command], stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.STDOUT, check=False)
            print(done.stdout)
        assert done.returncode, "meson finds nothing wrong"
        for reason in ("1 + 1 is 2, 3 is 3", "this is why", "Aborted",
                       "leaves descriptors open"):
            assert reason in done.stdout, reason
        found, errors, numbers = totals(build / "meson-logs/testlog.json")
    assert found == sorted(said), (found, sorted(said))
    assert numbers == "{} passed, {} failed, {} skipped".format(*wanted), (numbers, wanted)
    assert "1 + 1 is 2, 3 is 3" in "\n".join(errors), errors
    assert "| line 20" in errors and "| line 0" not in errors, errors


def count_without_meson():
    """The same for the output of one program, as scripts/test runs some."""
    with tempfile.TemporaryDirectory(prefix="vgpu-totals-") as name:
        output = Path(name) / "output"
        for program, (text, numbers, _) in PYTHON.items():
            if program == "hangs":
                continue
            text = f"LIB = {str(TOP / 'tests/lib')!r}\n{text}"
            done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE,
                                  text=True, check=False)
            output.write_text(done.stdout, encoding="utf-8")
            found = totals("--tap", output, str(done.returncode))[-1]
            assert found == "{} passed, {} failed, {} skipped".format(*numbers), \
                (program, found, numbers)


if __name__ == "__main__":
    sys.exit(tap.run([("each_case_is_counted", main),
                      ("cases_are_counted_without_meson", count_without_meson)]))
