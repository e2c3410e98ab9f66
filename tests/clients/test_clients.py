#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/clients: its results, its table, its lists, its clean-up, and the directives of
DejaGnu.

    test_clients.py TOP

VGPU_BUILD is the build folder.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(sys.argv.pop(1)).absolute()
sys.path[:0] = [str(TOP / folder) for folder in ("scripts/lib", "tests/clients", "tests/lib")]
import dejagnu  # noqa: E402
import tap  # noqa: E402

COMMAND = TOP / "scripts/clients"
LISTED = TOP / "tests/clients/expected/example.txt"
SECONDS = 200
PROPERTIES = {"yes": True, "no": False, "lp64": True}


class Clients(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="vgpu-clients-test-")
        self.addCleanup(self.folder.cleanup)
        self.place = Path(self.folder.name)

    def run_it(self, *arguments):
        """Returns its status, and the words of each line of its table, by name of the program."""
        environment = dict(os.environ, TMPDIR=str(self.place))
        done = subprocess.run(
            [COMMAND, "--cache", self.place / "cache", "--no-fetch", *arguments, "example"],
            text=True, env=environment, timeout=SECONDS, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual([p.name for p in self.place.glob("vgpu-clients.*")], [])
        self.output = done.stdout + done.stderr
        lines = re.findall(r"^(\S+) +(\d+) ([ !])(pass|idle|fail|skip)\b *(.*)$", done.stdout,
                           re.M)
        return done.returncode, {line[0]: line[1:] for line in lines}

    def expecting(self, text):
        """The option for a list of expected results with this text."""
        (self.place / "example.txt").write_text(text, encoding="utf-8")
        return ["--expected", self.place]

    def test_each_way_to_end_has_its_line_and_reason(self):
        status, lines = self.run_it("--logs", self.place / "logs")
        self.assertEqual(status, 0, self.output)
        self.assertEqual({name: (line[0], line[2]) for name, line in lines.items()}, {
            "launches": ("3", "pass"), "launches/judged": ("1", "pass"),
            "launches/terminal": ("2", "pass"),
            "idles": ("0", "idle"), "fails": ("0", "fail"), "aborts": ("0", "fail"),
            "refused": ("0", "fail"),
            "sleeps": ("0", "fail"), "unbuilt": ("0", "fail"), "absent": ("0", "skip")})
        for name, reason in {
                "fails": r"exit status 3; .*CUDA_ERROR_INVALID_IMAGE",
                "refused": "does not look; cuLaunchKernel fails with .*wgmma",
                "aborts": "ended by SIGABRT", "sleeps": "no end in 2 s",
                "unbuilt": "build: no such compiler",
                "absent": "its source is missing"}.items():
            self.assertRegex(lines[name][3], reason)
        self.assertRegex(self.output, r"(?m)^9 passed, 0 failed, 1 skipped$")
        log = (self.place / "logs/example-fails.log").read_text(encoding="utf-8")
        self.assertRegex(log, "the module was not loaded")
        self.assertRegex(log, "session ended")

    def test_an_unexpected_failure_fails(self):
        text = LISTED.read_text(encoding="utf-8")
        status, lines = self.run_it(*self.expecting(re.sub("(?m)^fails:.*\n", "", text)))
        self.assertEqual(status, 1, self.output)
        self.assertEqual(lines["fails"][1:3], ("!", "fail"))
        self.assertEqual([n for n, line in lines.items() if line[1] == "!"], ["fails"])
        self.assertRegex(self.output, r"(?m)^8 passed, 1 failed, 1 skipped$")

    def test_an_unexpected_pass_fails(self):
        status, lines = self.run_it(*self.expecting("launches: fail: so it was once\n"),
                                    "--only", "launches")
        self.assertEqual(status, 1, self.output)
        self.assertEqual(lines["launches"][1:3], ("!", "pass"))
        self.assertIn("so it was once", lines["launches"][3])

    def test_idling_is_not_passing(self):
        status, lines = self.run_it(*self.expecting(""), "--only", "idles")
        self.assertEqual((status, lines["idles"][1:3]), (1, ("!", "idle")), self.output)

    def test_any_result_can_be_expected(self):
        for name in ("launches", "fails"):
            status, _ = self.run_it(*self.expecting("*: any: it measures time\n"),
                                    "--only", name)
            self.assertEqual(status, 0, self.output)

    def test_a_list_that_names_no_program_fails(self):
        text = LISTED.read_text(encoding="utf-8")
        status, _ = self.run_it(*self.expecting(text + "gone: fail: for ever\n"))
        self.assertEqual(status, 1, self.output)
        self.assertIn("gone, which is no program", self.output)

    def test_a_list_of_another_form_is_refused(self):
        for line in ("fails: fail\n", "fails: fail: \n", "fails: falls: badly\n"):
            status, lines = self.run_it(*self.expecting(line))
            self.assertEqual((status, lines), (125, {}), self.output)

    def test_a_suite_without_its_source_skips_aloud(self):
        status, lines = self.run_it("--source", f"example={self.place}")
        self.assertEqual((status, lines), (77, {}))
        self.assertRegex(self.output, "(?m)^skip: example: there is no example.txt in ")

    def test_what_is_to_be_fetched_is_not_at_hand_without_fetching(self):
        done = subprocess.run(
            [COMMAND, "--cache", self.place / "cache", "--no-fetch", "halide"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 77, done.stdout)
        self.assertRegex(done.stdout, "(?m)^skip: halide: .+")


class Directives(unittest.TestCase):
    def read(self, text, options=("-O2", "-DACC_MEM_SHARED=0")):
        return dejagnu.Test(text, dejagnu.Target(PROPERTIES, list(options)), [])

    def test_words_are_those_of_tcl(self):
        self.assertEqual(dejagnu.split_words(r'a "b \"c\" \[d\]\n" {e {f g}} {}'),
                         ["a", 'b "c" [d]\n', "e {f g}", ""])

    def test_selectors_are_evaluated(self):
        target = dejagnu.Target(PROPERTIES, [])
        for text, value in {"yes": True, "no": False, "! no": True, "x86_64-*-*": True,
                            "*-*-*": True, "powerpc-*-*": False, "yes && no": False,
                            "{ yes && { ! no } }": True, "no || { yes && lp64 }": True,
                            "powerpc-*-* x86_64-*-*": True}.items():
            self.assertIs(target.matches(text), value, text)
        with self.assertRaises(dejagnu.Unknown):
            target.matches("unheard_of")

    def test_options_and_environment_are_collected(self):
        test = self.read('/* { dg-do run { target yes } } */\n'
                         '/* { dg-options "-O0 -g" } */\n'
                         '! { dg-additional-options "-DX" { target yes } }\n'
                         '// { dg-additional-options "-DY" { target no } }\n'
                         '/* { dg-set-target-env-var "A" "1 2" } */\n'
                         '! { dg-additional-sources "b.c c.c" }\n')
        self.assertEqual((test.action, test.options, test.variables, test.sources),
                         ("run", ["-O0", "-g", "-DX"], {"A": "1 2"}, ["b.c", "c.c"]))
        self.assertIsNone(test.skip)

    def test_what_a_suite_leaves_out_is_skipped(self):
        for text, skipped in {
                '{ dg-skip-if "here" { *-*-* } { "*" } { "-DACC_MEM_SHARED=0" } }': False,
                '{ dg-skip-if "here" { *-*-* } { "*" } { "-DACC_MEM_SHARED=1" } }': True,
                '{ dg-skip-if "here" { *-*-* } { "-DACC_MEM_SHARED=1" } }': False,
                '{ dg-skip-if "here" { *-*-* } { "-O2" } }': True,
                '{ dg-skip-if "here" { no } }': False,
                '{ dg-require-effective-target no }': True,
                '{ dg-require-effective-target yes }': False,
                '{ dg-do run { target no } }': True}.items():
            self.assertEqual(self.read(text).skip is not None, skipped, text)

    def test_runs_are_judged(self):
        plain = self.read("{ dg-do run }")
        self.assertIsNone(plain.judge(0, ""))
        self.assertRegex(plain.judge(1, ""), "exit status 1")
        failing = self.read('{ dg-shouldfail "why" }')
        self.assertIsNone(failing.judge(134, ""))
        self.assertRegex(failing.judge(0, ""), "ends well")
        self.assertIsNotNone(self.read('{ dg-shouldfail "" { no } }').judge(1, ""))

    def test_output_is_matched_piece_after_piece(self):
        test = self.read('{ dg-output "one(\\n|\\r\\n|\\r)" }\n'
                         '{ dg-output "\\\\\\[\\[0-9\\]+\\\\\\]" }\n')
        self.assertIsNone(test.judge(0, "zero\none\n[42]\n"))
        self.assertRegex(test.judge(0, "one\ntwo\n[42]"), "in its output")
        test = self.read('{ dg-output "one.*two" }\n{ dg-output "three" { xfail *-*-* } }')
        self.assertIsNone(test.judge(0, "one\n\nlibrary: two\n"))


if __name__ == "__main__":
    sys.exit(tap.unittest_main(sys.argv[1:]))
