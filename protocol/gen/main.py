#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates one product of the API description.

	main.py --product NAME --output FILE [--frozen FILE] XML...

A fault of the description is printed as file:line: sentence, exit status 1.
"""

import argparse
import os
import sys

import check
import emit_calls
import emit_check_cuda_h
import emit_cuda_h
import emit_dispatch
import emit_docs
import emit_driver
import emit_proto
import emit_stubs
import emit_symbols
import emit_tests
import parse
from model import DescriptionError, Place

PRODUCTS = {
    "cuda.h": emit_cuda_h.emit,
    "calls.h": emit_calls.emit_header,
    "calls.c": emit_calls.emit_source,
    "ids": emit_calls.emit_ids,
    "proto": emit_proto.emit,
    "stubs.c": emit_stubs.emit,
    "map": emit_symbols.emit_map,
    "symbols": emit_symbols.emit_list,
    "procaddr.c": emit_symbols.emit_procaddr,
    "driver.h": emit_driver.emit_header,
    "driver.c": emit_driver.emit_source,
    "handlers.h": emit_dispatch.emit_header,
    "dispatch.c": emit_dispatch.emit_source,
    "messages.c": emit_tests.emit_messages,
    "check-cuda-h.c": emit_check_cuda_h.emit,
    "coverage.md": emit_docs.emit,
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


def main(argv=None):
    parser = argparse.ArgumentParser(description="Generates from the API description.")
    parser.add_argument("--product", required=True, choices=sorted(PRODUCTS | FOLDERS))
    parser.add_argument("--output", required=True)
    parser.add_argument("--frozen", help="released ids, which may not change")
    parser.add_argument("xml", nargs="+")
    arguments = parser.parse_args(argv)
    try:
        api = parse.load(arguments.xml, shown=os.path.relpath)
        check.check(api)
        if arguments.frozen:
            check.check_frozen(api, read_frozen(arguments.frozen))
    except DescriptionError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.product in FOLDERS:
        FOLDERS[arguments.product](api, arguments.output)
        return 0
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(PRODUCTS[arguments.product](api))
    return 0


if __name__ == "__main__":
    sys.exit(main())
