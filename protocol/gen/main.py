#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates one product of the API description.

	main.py --product NAME --output FILE... [--frozen FILE] [--proofs FILE]
		[--later CALL=MINOR]... -- XML...

Some products are several files; all of them must be named, as a build knows what it
gets. An error of the description is printed as file:line: sentence, exit status 1.
"""

import argparse
import os
import sys

import check
import emit_attributes
import emit_calls
import emit_check_cuda_h
import emit_cuda_h
import emit_dispatch
import emit_docs
import emit_driver
import emit_entries
import emit_packers
import emit_names
import emit_proto
import emit_nvml
import emit_rows
import emit_stubs
import emit_symbols
import emit_tests
import emit_wire
import parse
from model import DescriptionError, Place

PRODUCTS = {
    "attributes.c": emit_attributes.emit,
    "cuda.h": emit_cuda_h.emit,
    "calls.h": emit_calls.emit_header,
    "calls.c": emit_calls.emit_source,
    "ids": emit_calls.emit_ids,
    "names.c": emit_names.emit,
    "proto": emit_proto.emit,
    "map": emit_symbols.emit_map,
    "symbols": emit_symbols.emit_list,
    "symbols.json": emit_symbols.emit_json,
    "procaddr.c": emit_symbols.emit_procaddr,
    "driver.h": emit_driver.emit_header,
    "driver.c": emit_driver.emit_source,
    "handlers.h": emit_dispatch.emit_header,
    "messages.c": emit_tests.emit_messages,
    "check-cuda-h.c": emit_check_cuda_h.emit,
    "coverage.md": emit_docs.emit,
    "attributes.md": emit_rows.emit_page,
    "attribute-rows.h": emit_rows.emit_header,
    "nvml.h": emit_nvml.emit_header,
    "nvml-answers.h": emit_nvml.emit_answers,
    "nvml-entries.c": emit_nvml.emit_entries,
    "nvml-check.c": emit_nvml.emit_check,
    "nvml-coverage.md": emit_nvml.emit_page,
    "wire": emit_wire.emit,
}
# Products of several files: their names and texts.
SETS = {
    "stubs": emit_stubs.emit,
    "dispatch": emit_dispatch.emit_sources,
    "entries": emit_entries.emit,
    "packers": emit_packers.emit,
}
# Products that are folders write themselves.
FOLDERS = {
    "fuzz-seeds": emit_tests.write_seeds,
}


def read_frozen(path):
    lines = []
    with open(path, encoding="utf-8") as file:
        for i, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if words:
                lines.append((Place(path, i), int(words[0]), words[1]))
    return lines


def read_proofs(path):
    proofs = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            symbol, program, test = line.split()
            proofs.setdefault(symbol, []).append((program, test))
    return proofs


def change_minors(api, later):
    calls = {call.symbol: call for call in api.calls}
    for word in later:
        symbol, minor = word.split("=")
        calls[symbol].minor = int(minor)


def write_product(api, product, outputs):
    if product in SETS:
        return write_set(SETS[product](api), product, outputs)
    if len(outputs) != 1:
        print(f"{product} is one file, not {len(outputs)}", file=sys.stderr)
        return 1
    if product in FOLDERS:
        FOLDERS[product](api, outputs[0])
    else:
        write_file(outputs[0], PRODUCTS[product](api))
    return 0


def write_set(texts, product, outputs):
    paths = {os.path.basename(path): path for path in outputs}
    for name in sorted(texts.keys() ^ paths.keys()):
        fault = "is not" if name in texts else "should not be"
        print(f"{product}: {name} {fault} among the outputs", file=sys.stderr)
    if texts.keys() != paths.keys():
        return 1
    for name, path in paths.items():
        write_file(path, texts[name])
    return 0


def write_file(path, text):
    """A file that has this text already stays as it is, and what is made of it too."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(argv=None):
    parser = argparse.ArgumentParser(description="Generates from the API description.")
    parser.add_argument("--product", required=True,
                        choices=sorted(PRODUCTS | SETS | FOLDERS))
    parser.add_argument("--output", required=True, nargs="+")
    parser.add_argument("--frozen", help="released ids, which may not change")
    parser.add_argument("--proofs", help="name, program and test a line, for the pages")
    parser.add_argument("--later", action="append", default=[], metavar="CALL=MINOR",
                        help="for tests: that minor version added the call")
    parser.add_argument("xml", nargs="+")
    arguments = parser.parse_args(argv)
    try:
        api = parse.load(arguments.xml, shown=os.path.relpath)
        change_minors(api, arguments.later)
        check.check(api)
        if arguments.frozen:
            check.check_frozen(api, read_frozen(arguments.frozen))
        if arguments.proofs:
            api.proofs = read_proofs(arguments.proofs)
    except DescriptionError as error:
        print(error, file=sys.stderr)
        return 1
    return write_product(api, arguments.product, arguments.output)


if __name__ == "__main__":
    sys.exit(main())
