# SPDX-License-Identifier: Apache-2.0
"""Programs for the test of the runner, one for each result of a program."""

import sys
from pathlib import Path

from suite import Broken, Case, Skip, Suite

PROGRAM = Path(__file__).resolve().parent / "example.py"


def cannot_build():
    raise Broken("build: no such compiler")


def has_no_source():
    raise Skip("its source is missing")


class Example(Suite):
    name = "example"
    title = "programs of the runner's own test"
    in_all = False
    seconds = 60

    def cases(self):
        if self.source and not (self.source / "example.txt").exists():
            raise Skip(f"there is no example.txt in {self.source}")

        def case(name, *arguments, **options):
            return Case(name, [sys.executable, PROGRAM, *arguments], **options)

        return [
            case("launches", "launch", "3"),
            case("launches/judged", "launch", "1", judge=judge_text),
            case("launches/terminal", "launch", "2", judge=judge_terminal, on_terminal=True),
            case("idles", "idle"),
            case("fails", "bad-image"),
            case("refused", "refused"),
            case("aborts", "abort"),
            case("sleeps", "sleep", seconds=2),
            case("unbuilt", build=cannot_build),
            case("absent", build=has_no_source),
        ]


def judge_text(status, output):
    return None if not status and "launched 1" in output else "it does not say so"


def judge_terminal(status, output):
    return None if not status and "on a terminal" in output else "it is on none"
