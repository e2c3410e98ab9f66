#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program on the guest library against a private vgpud, and checks the host's books.

    through.py [--driver D] [--sync] [--expect NAME=N]... [--host-set NAME=VALUE]... \
        [--claims SOURCE [--once]] [--log PATTERN]... [--copies FOLDER] \
        [--vm LINE]... [--races] [--runtime FOLDER] BUILD -- PROGRAM [ARGUMENT...]

The program is found a libcuda.so.1 by LD_LIBRARY_PATH and nothing else. After it
ended, vgpud's line on each session must show at least N of NAME (launches,
copies_h2d, ...) in all, no call that was refused although nobody waited for its
answer, and a session that ended in good order. Then vgpud is stopped: neither a
process nor a file may be left. The program's cases are passed on where it prints TAP;
any other program is one case. Exit status: 0, or 1 where something was wrong.
"""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import tap
from host import Host
from proofs import check_repeats, check_results, check_trace


def count_processes(folder):
    """How many processes still run with the private folder on their command line."""
    n = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                n += folder.encode() in f.read()
        except OSError:
            pass
    return n


def sessions(text):
    """The books: one dictionary a session that ended."""
    found = []
    for line in re.findall(r"session ended (.*)", text):
        found.append(dict(re.findall(r"(\w+)=(\S+)", line)))
    return found


def check_runtime(runtime, folder):
    """Returns a sentence if another CUDA runtime was loaded than that of the folder."""
    text = "".join(path.read_text(errors="replace") for path in Path(folder).glob("libs.*"))
    loaded = set(re.findall(r"calling init: (\S*libcudart\.so\S*)", text))
    if {os.path.dirname(path) for path in loaded} == {runtime}:
        return []
    return [f"the CUDA runtimes that were loaded are {loaded or 'none'}"]


def check_books(books, expected, faults, races):
    """Returns a sentence a thing that is wrong."""
    wrong = []
    if expected and not books:
        wrong.append("the host saw no session")
    for item in expected:
        name, least = item.split("=")
        total = sum(int(book.get(name, 0)) for book in books)
        if total < int(least):
            wrong.append(f"the host counts {total} {name}, at least {least} were done")
    for book in books:
        if int(book.get("refused_async", 0)) and not races:
            wrong.append(f"{book['refused_async']} calls without a reply were refused")
        if book.get("reason") not in ("none", "closed", None) and not faults:
            wrong.append(f"a session ended by {book['reason']}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", default="soft")
    parser.add_argument("--sync", action="store_true", help="every call waits (VGPU_SYNC=1)")
    parser.add_argument("--expect", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--any-end", action="store_true", help="sessions may end badly")
    parser.add_argument("--host-set", action="append", default=[], metavar="NAME=VALUE",
                        help="a variable of the host's environment")
    parser.add_argument("--claims", metavar="SOURCE", type=Path,
                        help="the program's text: it must make every call it names")
    parser.add_argument("--once", action="store_true",
                        help="a call that succeeds twice in a row sends nothing again")
    parser.add_argument("--log", action="append", default=[], metavar="PATTERN",
                        help="once in the host's log, whatever it says besides")
    parser.add_argument("--vm", action="append", default=[], metavar="LINE",
                        help="of the machine's section in the host's configuration")
    parser.add_argument("--vgpud", action="append", default=[], metavar="LINE",
                        help="of the first section")
    parser.add_argument("--races", action="store_true",
                        help="threads destroy what others use: calls that nobody waits for "
                        "may be refused, and each call has to end with a code for that")
    parser.add_argument("--preload", metavar="LIBRARY", help="into program and worker alike")
    parser.add_argument("--copies", metavar="FOLDER",
                        help="where another vgpud is, with its worker and both libraries")
    parser.add_argument("--runtime", metavar="FOLDER",
                        help="where the program is to find a CUDA runtime")
    parser.add_argument("build")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    counts = tempfile.TemporaryDirectory(prefix="vgpu-counts-")
    both, extra, unproved = {}, "\n".join(options.vgpud) + "\n", []
    if options.preload:
        both = {"LD_PRELOAD": options.preload, "VGPU_COUNT_DIR": counts.name}
        extra += "warm-workers = 0"  # one that starts up meanwhile would count too
    host_environment = dict(both, **dict(v.split("=", 1) for v in options.host_set))
    vgpud = options.copies and os.path.join(options.copies, "vgpud")
    with counts, Host(options.build, options.driver, extra, host_environment, vgpud,
                      "\n".join(options.vm)) as host:
        environment = dict(os.environ, VGPU_SOCKET=str(host.socket), **both)
        # The library keeps what a reader may still hold: to a sanitizer that is a leak.
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        library = options.copies or os.path.join(options.build, "guest-shim")
        library = os.path.abspath(library)
        environment["LD_LIBRARY_PATH"] = library
        if options.runtime:
            environment["LD_LIBRARY_PATH"] += ":" + options.runtime
            environment.update(LD_DEBUG="libs", LD_DEBUG_OUTPUT=f"{counts.name}/libs")
        if options.sync:
            environment["VGPU_SYNC"] = "1"
        if options.claims or options.races:
            environment["VGPU_TRACE"] = os.path.join(counts.name, "trace")
        child = tap.Child(options.command, environment)
        code = child.status
        if options.claims and not code:
            trace = Path(environment["VGPU_TRACE"]).read_text(encoding="utf-8")
            unproved = check_trace(options.claims, trace)
            unproved += check_repeats(trace) if options.once else []
        if options.races and not code:
            trace = Path(environment["VGPU_TRACE"]).read_text(encoding="utf-8")
            unproved += check_results(trace)
        if options.runtime:
            unproved += check_runtime(options.runtime, counts.name)
        folder = host.folder.name
        n_open = len(re.findall(r"session opened", host.text()))
        host.wait_for(r"session ended", n_open) if n_open else None
        text = host.text()
    if code == tap.EXIT_SKIP:
        return child.end(False)
    wrong = unproved + check_books(sessions(text), options.expect, options.any_end,
                                   options.races)
    for pattern in options.log:
        n_lines = len(re.findall(pattern, text))
        if n_lines != 1:
            wrong.append(f"{n_lines} lines of the log match {pattern!r}")
    # A call that the worker needs is missing on its list.
    wrong += re.findall(r"the sandbox refuses .*", text)
    if count_processes(folder):
        wrong.append("a process of the host was left behind")
    for sentence in wrong:
        print(f"through.py: {sentence}", file=sys.stderr)
    if wrong or code:
        print(text[-6000:], file=sys.stderr)
    return child.end(not code and not wrong)


if __name__ == "__main__":
    sys.exit(main())
