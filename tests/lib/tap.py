#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test Anything Protocol: how a test tells Meson its cases.

    tap.py [--must-fail] PROGRAM [ARGUMENT...]

A Python test prints its cases by run(), functions() or unittest_main(). As a command, this
makes one case of a program that has only an exit status: 0 passed, 77 skipped (the reason
is its line "skipped: REASON"), else failed; cases of a program that prints TAP itself are
passed on. With --must-fail the one case passes if the program fails by exit status 1, as a
check that fails does: a crash or an unknown option is not what was planted.

Only TAP is written to stdout; what a test prints goes to stderr.
"""

import os
import subprocess
import sys
import traceback
import unittest

EXIT_SKIP = 77
VERSION = "TAP version 13"


def one_line(text):
    return " ".join(str(text).split())


class Writer:
    """Numbers the cases; stdout is stderr for everybody else from now on."""

    def __init__(self, n_cases):
        sys.stdout.flush()
        self.file = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self.n_done = self.n_failed = 0
        self.line(VERSION)
        self.line(f"1..{n_cases}")

    def line(self, text):
        print(text, file=self.file, flush=True)

    def case(self, name, passed, skipped=None):
        """skipped: the reason"""
        self.n_done += 1
        self.n_failed += not passed
        name = one_line(name).replace("#", "")
        directive = "" if skipped is None else f" # SKIP {one_line(skipped)}".rstrip()
        self.line(f"{'ok' if passed else 'not ok'} {self.n_done} - {name}{directive}")

    def status(self):
        return 1 if self.n_failed or not self.n_done else 0


def run(cases, after_failure=None):
    """Runs (name, function) pairs, each a case, and returns the exit status. A case skips by
    unittest.SkipTest(reason)."""
    cases = list(cases)
    writer = Writer(len(cases))
    for name, function in cases:
        try:
            function()
            writer.case(name, True)
        except unittest.SkipTest as reason:
            writer.case(name, True, reason)
        except (Exception, SystemExit):  # pylint: disable=broad-except
            traceback.print_exc()
            writer.case(name, False)
    if writer.n_failed and after_failure:
        after_failure()
    return writer.status()


def functions(names, *arguments, only=()):
    """The cases of a module: its functions test_NAME, called with the arguments."""
    return [(name[5:], lambda function=function: function(*arguments))
            for name, function in list(names.items())
            if name.startswith("test_") and (not only or name[5:] in only)]


class Result(unittest.TestResult):
    """Prints a case when a test ends; a fixture that fails is a case of its own."""

    def __init__(self, writer):
        super().__init__()
        self.writer = writer
        self.verdict = None

    @staticmethod
    def name(test):
        return test.id().removeprefix("__main__.")

    def startTest(self, test):
        super().startTest(test)
        self.verdict = (True, None)

    def stopTest(self, test):
        super().stopTest(test)
        self.writer.case(self.name(test), *self.verdict)
        self.verdict = None

    def end(self, test, passed, skipped=None):
        if self.verdict is None:
            self.writer.case(self.name(test), passed, skipped)
        else:
            self.verdict = (passed, skipped)

    def failed(self, test, error):
        traceback.print_exception(*error)
        self.end(test, False)

    addError = addFailure = failed

    def addSubTest(self, test, subtest, err):
        if err:
            print(f"in {subtest}:", file=sys.stderr)
            self.failed(test, err)

    def addSkip(self, test, reason):
        self.end(test, True, reason)

    def addUnexpectedSuccess(self, test):
        print(f"{test} passed unexpectedly", file=sys.stderr)
        self.end(test, False)


def unittest_main(arguments=()):
    """For tests of the unittest module in __main__; returns the exit status. The arguments
    are names of tests."""
    loader, module = unittest.defaultTestLoader, sys.modules["__main__"]
    suite = loader.loadTestsFromNames(arguments, module) if arguments else \
        loader.loadTestsFromModule(module)
    writer = Writer(suite.countTestCases())
    suite.run(Result(writer))
    return writer.status()


class Child:
    """A program that may print TAP."""

    def __init__(self, command, env=None):
        self.name = " ".join([os.path.basename(command[0]), *map(os.path.basename, command[1:])])
        self.reason = ""
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
            sys.stdout.flush()
            first = process.stdout.readline()
            self.prints_tap = first.startswith(VERSION.encode())
            target = sys.stdout.buffer if self.prints_tap else sys.stderr.buffer
            for line in (first, *iter(process.stdout.readline, b"")):
                if line.startswith(b"skipped: "):
                    self.reason = line[9:].decode(errors="replace")
                target.write(line)
                target.flush()
        self.status = process.returncode

    def end(self, passed):
        """Returns the exit status for Meson, with the case that takes its verdict of it."""
        if self.prints_tap:
            return 0 if passed else 1
        writer = Writer(1)
        skipped = self.status == EXIT_SKIP
        writer.case(self.name, passed or skipped, self.reason if skipped else None)
        if not passed and not skipped:
            print(f"{self.name}: exit status {self.status}", file=sys.stderr)
        return writer.status()


def must_fail(command):
    process = subprocess.run(command, stdout=sys.stderr, check=False)
    writer = Writer(1)
    writer.case(f"{os.path.basename(command[0])} fails", process.returncode == 1)
    print(f"exit status {process.returncode}", file=sys.stderr)
    return writer.status()


def main():
    command = sys.argv[1:]
    if command and command[0] == "--must-fail":
        return must_fail(command[1:])
    if command[0].endswith(".py"):
        command = [sys.executable, *command]
        name = command[1]
    else:
        name = command[0]
    child = Child(command)
    child.name = os.path.splitext(os.path.basename(name))[0]
    return child.end(child.status == 0)


if __name__ == "__main__":
    sys.exit(main())
