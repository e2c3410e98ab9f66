#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the generator and of the API description.

	test_gen.py --root SOURCE [--xml FILE...] [--nvml FILE...]	runs all
	test_gen.py --root SOURCE --update		rewrites the golden files and the
							lists of symbols, for a look at git diff
"""

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import tap  # noqa: E402

# Golden file and product.
GOLDEN = {
    "cuda.h": "cuda.h",
    "g-attribute-rows.h": "attribute-rows.h",
    "g-attributes.c": "attributes.c",
    "g-attributes.md": "attributes.md",
    "g-calls.c": "calls.c",
    "g-calls.h": "calls.h",
    "g-check-cuda-h.c": "check-cuda-h.c",
    "g-coverage.md": "coverage.md",
    "g-driver.c": "driver.c",
    "g-driver.h": "driver.h",
    "g-driver.proto": "proto",
    "g-handlers.h": "handlers.h",
    "g-names.c": "names.c",
    "libcuda.map": "map",
    "libcuda-symbols.json": "symbols.json",
    "g-messages.c": "messages.c",
    "g-procaddr.c": "procaddr.c",
    "g-wire.txt": "wire",
}

GOLDEN_SETS = {
    "dispatch": ["g-dispatch.c", "g-dispatch-launch.c", "g-dispatch-small.c"],
    "entries": ["g-entries.h", "g-entries-launch.c", "g-entries-small.c"],
    "stubs": ["g-stubs.h", "g-remote.h", "g-stubs-launch.c", "g-stubs-small.c"],
}
GOLDEN_XML = ["small.xml", "driver-launch.xml"]

# The same of a description of NVML.
GOLDEN_NVML = {
    "nvml.h": "nvml.h",
    "g-nvml-answers.h": "nvml-answers.h",
    "g-nvml-check.c": "nvml-check.c",
    "g-nvml-coverage.md": "nvml-coverage.md",
    "g-nvml-entries.c": "nvml-entries.c",
    "libnvidia-ml.map": "map",
}
NVML_XML = ["nvml-small.xml"]

arguments = None


def folder(*names):
    return os.path.join(arguments.root, *names)


def generate(product, outputs, xml, where, *options):
    """Runs the generator in a folder. Returns: exit status and messages."""
    import main as generator
    said = io.StringIO()
    with contextlib.chdir(where), contextlib.redirect_stderr(said):
        status = generator.main(
            ["--product", product, "--output", *outputs, *options, "--", *xml])
    return status, said.getvalue()


def product_text(product, xml, where):
    return product_texts(product, ["out"], xml, where)[0]


def product_texts(product, names, xml, where):
    with tempfile.TemporaryDirectory() as scratch:
        paths = [os.path.join(scratch, name) for name in names]
        status, said = generate(product, paths, xml, where)
        if status:
            raise AssertionError(said)
        return [read(path) for path in paths]


def golden_texts():
    """The name of each golden file, and the output of the generator."""
    where = folder("tests", "gen", "golden")
    for name, product in GOLDEN.items():
        yield name, product_text(product, GOLDEN_XML, where)
    for name, product in GOLDEN_NVML.items():
        yield name, product_text(product, NVML_XML, where)
    for product, names in GOLDEN_SETS.items():
        yield from zip(names, product_texts(product, names, GOLDEN_XML, where))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Command(unittest.TestCase):
    def test_a_fault_ends_the_build_with_one_line(self):
        done = subprocess.run(
            [sys.executable, "-B", folder("protocol", "gen", "main.py"), "--product",
             "proto", "--output", os.devnull, "--", "bad/id-twice.xml"],
            cwd=folder("tests", "gen"), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (
            1, "", "bad/id-twice.xml:8: id 1 belongs to cuOne already\n"))


class Golden(unittest.TestCase):
    def test_a_small_description_gives_these_very_bytes(self):
        self.maxDiff = None
        where = folder("tests", "gen", "golden")
        for name, text in golden_texts():
            with self.subTest(name):
                self.assertEqual(text, read(os.path.join(where, name)))

    def test_outputs_other_than_the_families_are_told(self):
        with tempfile.TemporaryDirectory() as scratch:
            paths = [os.path.join(scratch, name)
                     for name in ("g-dispatch.c", "g-dispatch-small.c", "g-dispatch-x.c")]
            told = generate("dispatch", paths, GOLDEN_XML,
                            folder("tests", "gen", "golden"))
            self.assertEqual(os.listdir(scratch), [])
        self.assertEqual(told, (
            1, "dispatch: g-dispatch-launch.c is not among the outputs\n"
               "dispatch: g-dispatch-x.c should not be among the outputs\n"))


class Bad(unittest.TestCase):
    def test_a_bad_description_fails_with_its_line_and_a_sentence(self):
        where = folder("tests", "gen")
        names = sorted(os.listdir(os.path.join(where, "bad")))
        self.assertGreaterEqual(len(names), 20)
        for name in names:
            with self.subTest(name):
                path = f"bad/{name}"
                expected = re.search(r"<!-- expect (\d+: .*) -->",
                                     read(os.path.join(where, path))).group(1)
                status, said = generate("proto", [os.devnull], [path], where)
                self.assertEqual((status, said), (1, f"{path}:{expected}\n"))


class Description(unittest.TestCase):
    def test_released_ids_stand(self):
        status, said = generate("proto", [os.devnull], arguments.xml, folder(), "--frozen",
                                folder("protocol", "api", "frozen"))
        self.assertEqual((status, said), (0, ""))

    def test_a_released_id_that_changes_is_told(self):
        self.check_frozen("1 vgpuHello\n2 cuInit\n",
                          r"small\.xml:\d+: cuInit was released with id 2, not 16\n")

    def test_a_released_call_that_goes_is_told(self):
        self.check_frozen("# a comment\n3 cuGone\n",
                          r".*frozen:2: cuGone was released and has been removed\n")

    def check_frozen(self, text, expected):
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "frozen")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            status, said = generate("proto", [os.devnull], GOLDEN_XML,
                                    folder("tests", "gen", "golden"), "--frozen", path)
        self.assertEqual(status, 1)
        self.assertRegex(said, rf"\A{expected}\Z")

    def test_the_exported_symbols_are_those_of_the_list(self):
        self.assertEqual(product_text("symbols", arguments.xml, folder()),
                         read(folder("protocol", "api", "symbols.txt")))

        self.assertEqual(product_text("symbols", arguments.nvml, folder()),
                         read(folder("protocol", "api", "nvml-symbols.txt")))

    def test_one_run_reads_one_library(self):
        status, said = generate("proto", [os.devnull], ["small.xml", *NVML_XML],
                                folder("tests", "gen", "golden"))
        self.assertEqual((status, said), (
            1, "nvml-small.xml:4: this file describes another library than small.xml\n"))

    def test_a_file_that_stays_the_same_is_not_written(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "out")
            where = folder("tests", "gen", "golden")
            generate("map", [path], NVML_XML, where)
            os.utime(path, (1, 1))
            generate("map", [path], NVML_XML, where)
            self.assertEqual(os.stat(path).st_mtime, 1)
            generate("symbols", [path], NVML_XML, where)
            self.assertNotEqual(os.stat(path).st_mtime, 1)

    def test_every_word_of_the_vocabulary_is_explained(self):
        import parse
        text = read(folder("protocol", "api", "vocabulary.md"))
        explained = set(re.findall(r"`([^`]+)`", text))
        for element, (_, form, _) in parse.VOCABULARY.items():
            self.assertIn(f"<{element}>", explained)
            for name, values in form.items():
                self.assertIn(f"{name}=", explained)
                if isinstance(values, tuple):
                    for value in values:
                        self.assertIn(value, explained)

    def test_two_runs_give_the_same(self):
        self.assertEqual(product_text("driver.c", arguments.xml, folder()),
                         product_text("driver.c", arguments.xml, folder()))


def update():
    where = folder("tests", "gen", "golden")
    for name, text in golden_texts():
        with open(os.path.join(where, name), "w", encoding="utf-8") as file:
            file.write(text)
    # The lists of symbols are made of the whole descriptions.
    for name, xml in (("symbols.txt", arguments.xml), ("nvml-symbols.txt", arguments.nvml)):
        if xml:
            with open(folder("protocol", "api", name), "w", encoding="utf-8") as file:
                file.write(product_text("symbols", xml, folder()))


def main():
    global arguments
    parser = argparse.ArgumentParser(description="Tests the generator.")
    parser.add_argument("--root", required=True, help="top of the source tree")
    parser.add_argument("--update", action="store_true", help="rewrite what is compared")
    parser.add_argument("--xml", nargs="+", default=[], help="files of the description")
    parser.add_argument("--nvml", nargs="+", default=[], help="those of NVML")
    arguments = parser.parse_args()
    arguments.root = os.path.abspath(arguments.root)
    arguments.xml = [os.path.abspath(path) for path in arguments.xml]
    arguments.nvml = [os.path.abspath(path) for path in arguments.nvml]
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder("protocol", "gen"))
    if arguments.update:
        update()
        return 0
    return tap.unittest_main()


if __name__ == "__main__":
    sys.exit(main())
