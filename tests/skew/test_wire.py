#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was released of the wire protocol does not change within a major version.

    test_wire.py --root SOURCE --layout PROGRAM --xml FILE... [--update]

Compares calls, fields and shared structures of the tree with protocol/api/wire and
protocol/api/layout, which list those of the last release: docs/compatibility.md has the
rules. A release writes both files with --update.
"""

import argparse
import contextlib
import io
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import tap  # noqa: E402

HEAD = """\
# {what} of the last release, one fact a line: see docs/compatibility.md. Written by
# tests/skew/test_wire.py --update, when a release is made.
version {version}
"""
WHAT = {"wire": "Calls and fields", "layout": "Shared structures"}

arguments = None


def is_of_tree(path):
    return arguments.root / path


def find(path, pattern):
    return int(re.search(pattern, is_of_tree(path).read_text(), re.MULTILINE)[1])


def version():
    """The version of the tree: major and minor."""
    return (find("protocol/include/vgpu/ring-layout.h",
                 r"^#define VGPU_PROTOCOL_VERSION (\d+)u$"),
            find("protocol/include/vgpu/version.h", r"^#define VGPU_PROTOCOL_MINOR (\d+)u$"))


def wire_of(xml):
    """The lines that the generator makes of descriptions."""
    import main as generator
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "wire"
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = generator.main(["--product", "wire", "--output", str(path), "--", *xml])
        if status:
            raise AssertionError(said.getvalue())
        return path.read_text().splitlines()


def layout_of_tree():
    done = subprocess.run([arguments.layout], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def parse(text):
    """Version and lines of a file of the last release."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    major, minor = re.fullmatch(r"version (\d+)\.(\d+)", lines[0]).groups()
    return (int(major), int(minor)), lines[1:]


def dotted(numbers):
    return "{}.{}".format(*numbers)


def compare(old_version, old, new_version, new):
    """Returns what is wrong, one sentence each."""
    if new_version[0] != old_version[0]:
        return []
    if new_version < old_version:
        return [f"version {dotted(new_version)} is older than {dotted(old_version)}"]
    gone = [line for line in old if line not in set(new)]
    added = [line for line in new if line not in set(old)]
    wrong = [f"'{line}' was released in {dotted(old_version)}, and has changed or gone: that "
             "needs another major version" for line in gone]
    if new_version == old_version:
        wrong += [f"'{line}' is new, and needs a higher minor version than that of the last "
                  f"release, {dotted(old_version)}" for line in added]
    for line in added:
        words = line.split()
        if words[0] == "call" and not old_version[1] < int(words[3]) <= new_version[1]:
            wrong.append(f"{words[2]} is new, and needs minor=\"{new_version[1]}\"")
    return wrong


class Tree(unittest.TestCase):
    def must_agree(self, name, lines):
        old_version, old = parse(is_of_tree(f"protocol/api/{name}").read_text())
        self.assertGreater(len(old), 50)
        self.assertEqual(compare(old_version, old, version(), lines), [])

    def test_calls_and_fields_that_were_released_stand(self):
        self.must_agree("wire", wire_of(arguments.xml))

    def test_shared_structures_that_were_released_stand(self):
        self.must_agree("layout", layout_of_tree())

    def test_the_release_knows_every_released_id(self):
        _, lines = parse(is_of_tree("protocol/api/wire").read_text())
        calls = {line.split()[2]: line.split()[1] for line in lines
                 if line.startswith("call ")}
        frozen = [line.split() for line in is_of_tree("protocol/api/frozen").read_text()
                  .splitlines() if line and not line.startswith("#")]
        self.assertGreater(len(frozen), 100)
        for number, symbol in frozen:
            self.assertEqual(calls.get(symbol, number), number)


CALL = """\
  <call name="{name}" id="{id}" since="2.0"{more} reply="{reply}" blocks="never"
        guest="generated" host="generated" context="none">
    <brief>Do something.</brief>
    {params}
  </call>
"""


def description(*calls):
    """The lines of an API with these calls: name, parameters and what differs."""
    texts = []
    for number, (name, params, *more) in enumerate(calls, 1):
        options = dict({"id": number, "reply": "sync", "more": ""}, **(more or [{}])[0])
        texts.append(CALL.format(name=name, params=params, **options))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "driver-small.xml"
        path.write_text('<?xml version="1.0" encoding="UTF-8"?>\n<api>\n'
                        '  <enum name="CUresult" tag="cudaError_enum">\n'
                        '    <value name="CUDA_SUCCESS" value="0"/>\n  </enum>\n'
                        + "".join(texts) + "</api>\n")
        return wire_of([str(path)])


A, B = '<in name="a" type="int"/>', '<in name="b" type="int"/>'
OLD = ("cuOne", A + B)


class Rules(unittest.TestCase):
    """Each change that another release would misread is found."""

    def check(self, *calls, version=(3, 2)):
        return compare((3, 1), description(OLD), version, description(*calls))

    def must_break(self, *calls, n=1):
        wrong = self.check(*calls)
        self.assertEqual(len(wrong), n, wrong)
        self.assertIn("needs another major version", wrong[0])
        self.assertEqual(self.check(*calls, version=(4, 0)), [])

    def test_nothing_changed(self):
        self.assertEqual(self.check(OLD), [])
        self.assertEqual(self.check(OLD, version=(3, 1)), [])

    def test_a_field_of_another_type(self):
        self.must_break(("cuOne", A + B.replace("int", "unsigned int")))

    def test_a_field_with_another_number(self):
        self.must_break(("cuOne", B + A), n=2)

    def test_a_field_that_goes(self):
        self.must_break(("cuOne", A))

    def test_a_call_with_another_id(self):
        self.must_break(("cuOne", A + B, {"id": 7, "more": ' minor="2"'}))

    def test_a_call_that_waits_no_longer(self):
        self.must_break(("cuOne", A + B, {"reply": "async", "more": ' minor="2"'}))

    def test_a_call_that_goes(self):
        self.must_break(("cuTwo", A + B, {"more": ' minor="2"'}), n=3)

    def test_a_new_call(self):
        new = ("cuTwo", A, {"more": ' minor="2"'})
        self.assertEqual(self.check(OLD, new), [])
        self.assertEqual(len(self.check(OLD, new, version=(3, 1))), 3)

    def test_a_new_call_that_does_not_say_since_when(self):
        self.assertEqual(self.check(OLD, ("cuTwo", A)),
                         ['cuTwo is new, and needs minor="2"'])
        self.assertEqual(self.check(OLD, ("cuTwo", A, {"more": ' minor="3"'})),
                         ['cuTwo is new, and needs minor="2"'])

    def test_a_new_field(self):
        old = description(OLD)
        new = [*old, "field CuOneRequest 100 uint64 c"]
        self.assertEqual(compare((3, 1), old, (3, 2), new), [])
        wrong = compare((3, 1), old, (3, 1), new)
        self.assertEqual(len(wrong), 1)
        self.assertIn("needs a higher minor version", wrong[0])

    def test_a_version_that_falls(self):
        self.assertEqual(self.check(OLD, version=(3, 0)), ["version 3.0 is older than 3.1"])


def update():
    for name, lines in (("wire", wire_of(arguments.xml)), ("layout", layout_of_tree())):
        head = HEAD.format(what=WHAT[name], version=dotted(version()))
        is_of_tree(f"protocol/api/{name}").write_text(head + "\n".join(lines) + "\n")
    return 0


def main():
    global arguments
    parser = argparse.ArgumentParser(description="Compares the wire with the last release.")
    parser.add_argument("--root", required=True, type=Path, help="top of the source tree")
    parser.add_argument("--layout", required=True, help="program that prints the structures")
    parser.add_argument("--xml", required=True, nargs="+", help="files of the description")
    parser.add_argument("--update", action="store_true", help="write those of a release")
    arguments = parser.parse_args()
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(is_of_tree("protocol/gen")))
    return update() if arguments.update else tap.unittest_main()


if __name__ == "__main__":
    sys.exit(main())
