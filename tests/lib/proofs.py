#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which end-to-end test proves which call.

    proofs.py --output FILE SOURCE.c...         lists them: symbol, program, test
    proofs.py --nvml --output FILE SOURCE.c...  the same of NVML's, which a test that names
                                                them compares

A test claims the calls that stand in its check_ok(...), in functions that it calls there,
and in the check_ok(...) of all other functions that it uses. "cuName", VERSION claims the
form that a program of that version gets. A claim is not yet a proof: when a program of
tests runs, through.py has a trace written (VGPU_TRACE) and check_trace() tells which
claimed calls were never made, or never succeeded.
"""

import argparse
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "protocol/gen"))
import parse  # pylint: disable=wrong-import-position

LINE = re.compile(r"^\S+ \d+/\d+ (\w+)\(.* = (\w+) <", re.MULTILINE)
LOOK_UP = re.compile(r'"(cu[A-Z]\w+)",\s*(\d{4,5})\b')
CALL = re.compile(r"^\S+ (\d+/\d+) (\w+\(.*\)) = (\w+) <[^>]*>(?: (\d+) sent)?$", re.MULTILINE)
NVML = re.compile(r"\bnvml[A-Z]\w+")
ATTRIBUTE = re.compile(r"\bCU_(?:DEVICE|FUNC|POINTER|LAUNCH)_ATTRIBUTE_\w+|\bCU_LIMIT_\w+")
WORD = re.compile(r"\b\w+\b")

# What CUDA documents for calls on objects that another thread changes or destroys, in a
# context with a fault, in a capture, and for arguments that come to be wrong in that way.
# A host that has gone, or a driver that does not know what happened, is not among it.
RACE_RESULTS = """
    CUDA_SUCCESS INVALID_VALUE OUT_OF_MEMORY INVALID_CONTEXT INVALID_HANDLE NOT_FOUND NOT_READY
    NOT_PERMITTED NOT_SUPPORTED ILLEGAL_STATE ILLEGAL_ADDRESS CONTEXT_IS_DESTROYED INVALID_PTX
    LAUNCH_OUT_OF_RESOURCES CONTEXT_ALREADY_IN_USE GRAPH_EXEC_UPDATE_FAILURE
    PEER_ACCESS_UNSUPPORTED PEER_ACCESS_ALREADY_ENABLED PEER_ACCESS_NOT_ENABLED
    STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_MERGE
    STREAM_CAPTURE_UNMATCHED STREAM_CAPTURE_UNJOINED STREAM_CAPTURE_ISOLATION
    STREAM_CAPTURE_IMPLICIT STREAM_CAPTURE_WRONG_THREAD CAPTURED_EVENT
    INVALID_RESOURCE_TYPE INVALID_RESOURCE_CONFIGURATION
""".split()


class Calls:
    """The described calls: by symbol, and by the names that programs write."""

    def __init__(self):
        # All but nvml-*.xml.
        api = parse.load(sorted(map(str, (SOURCE / "protocol/api").glob("[!n]*.xml"))))
        self.public = api.public
        self.by_symbol = {c.symbol: c for c in api.public}
        self.by_name = dict(self.by_symbol)
        self.by_name.update({c.pt_symbol: c for c in api.public if c.pt})
        # What a macro hides is out of a program's reach.
        self.by_name.update(
            {c.macro: c for c in api.public if c.macro not in ("", "no")})

    def looked_up(self, text):
        """The calls that a text names by name and version."""
        for name, version in LOOK_UP.findall(text):
            forms = [c for c in self.public
                     if c.name == name and c.since <= int(version)]
            if forms:
                yield max(forms, key=lambda c: c.since)


def functions(text):
    """(name, is a test, body) of each function of a C file in the style of the house."""
    pieces = re.split(r"^\{$(.*?)^\}$", text, flags=re.MULTILINE | re.DOTALL)
    for head, body in zip(pieces[0::2], pieces[1::2]):
        test = re.search(r"^TEST(?:_SECONDS)?\((\w+)[^\n]*\s*\Z", head, re.MULTILINE)
        if test:
            yield test.group(1), True, body
            continue
        head = re.split(r"\n\n|[;/]\n", head.rstrip())[-1]
        named = re.search(r"(\w+)\(", head)
        if named:
            yield named.group(1), False, body


def strip_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def end_of(text, start):
    """Where the parenthesis closes that opens in front of start."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i
    return len(text)


def claimed_words(text, whole):
    """Words that claim, words that are called among them, and all words."""
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    spans = [text] if whole else [
        text[opening.end():end_of(text, opening.end())]
        for opening in re.finditer(r"\bcheck_ok\(", text)
    ]
    claimed = " ".join(spans)
    called = set(re.findall(r"\b(\w+)\(", claimed))
    return set(WORD.findall(claimed)), called, set(WORD.findall(text))


def claims(path, calls):
    """Symbol: the tests of the file that claim it, in their order."""
    text = ""
    for header in re.findall(r'^#include "(\w+\.h)"', path.read_text(), re.MULTILINE):
        if (path.parent / header).exists():
            text += (path.parent / header).read_text(encoding="utf-8")
    text = strip_comments(text + path.read_text(encoding="utf-8"))
    bodies, tests = {}, []
    for name, is_test, body in functions(text):
        bodies[name] = bodies.get(name, "") + body
        if is_test:
            tests.append(name)

    found = {}
    for test in tests:
        seen, waiting = set(), [(test, False)]
        while waiting:
            name, whole = waiting.pop()
            if (name, whole) in seen:
                continue
            seen.add((name, whole))
            claimed, called, words = claimed_words(bodies[name], whole)
            waiting += [(word, word in called) for word in words if word in bodies]
            named = [calls.by_name[word] for word in claimed & calls.by_name.keys()]
            named += calls.looked_up(bodies[name])
            for call in named:
                tested = found.setdefault(call.symbol, [])
                if test not in tested:
                    tested.append(test)
    return found


# Of a function whose macro a file takes away, to call the form that it hides.
FIRST_FORM = "_first_form"


def without_macros(text):
    """The text with names of its own for what stands after #undef."""
    head, *parts = re.split(r"^#undef (\w+)$", text, flags=re.MULTILINE)
    for i in range(0, len(parts), 2):
        for k in range(i + 1, len(parts), 2):
            parts[k] = re.sub(rf"\b{parts[i]}\b", parts[i] + FIRST_FORM, parts[k])
    return head + "".join(parts[1::2])


def mentions(path, pattern=ATTRIBUTE):
    """Attribute: the tests of the file that name it, by themselves or by a function."""
    text = without_macros(strip_comments(path.read_text(encoding="utf-8")))
    text = re.sub(r"\b(TEXTURE|SURFACE)\((\w+)\)",
                  r"CU_DEVICE_ATTRIBUTE_MAXIMUM_\1\2", text)
    bodies = {}
    for name, is_test, body in functions(text):
        bodies[name] = (is_test, bodies.get(name, (False, ""))[1] + body)
    found = {}
    for test, (is_test, _) in bodies.items():
        seen, waiting = set(), [test] if is_test else []
        while waiting:
            name = waiting.pop()
            seen.add(name)
            body = bodies[name][1]
            waiting += [w for w in WORD.findall(body) if w in bodies and w not in seen]
            for attribute in pattern.findall(body):
                tested = found.setdefault(attribute, [])
                if test not in tested:
                    tested.append(test)
    return found


def check_trace(path, trace):
    """A sentence for each claim of the file that the trace does not bear out."""
    calls = Calls()
    results = {}
    for name, result in LINE.findall(trace):
        results.setdefault(re.sub(r"_pt[sd][sz]\Z", "", name), set()).add(result)
    wrong = []
    for symbol in claims(path, calls):
        got = results.get(symbol)
        if not got:
            wrong.append(f"{path.name} names {symbol}, but never calls it")
        elif "CUDA_SUCCESS" not in got and calls.by_symbol[symbol].reply != "refused":
            wrong.append(f"{path.name} calls {symbol}, which never succeeds: "
                         f"{', '.join(sorted(got))}")
    return wrong


def check_results(trace):
    """A sentence for each result that a call has not for what other threads do meanwhile."""
    wrong = [] if LINE.search(trace) else ["the program made no call"]
    for name, result in sorted(set(LINE.findall(trace))):
        if result.removeprefix("CUDA_ERROR_") not in RACE_RESULTS:
            wrong.append(f"{name} ends with {result}")
    return wrong


def check_repeats(trace):
    """A sentence for each call that succeeded as the one before it and sent a message."""
    wrong, last, n = [], {}, 0
    for thread, call, result, sent in CALL.findall(trace):
        # What a call left behind a pointer is no argument.
        asked = re.sub(r"\[[^]]*\]", "", call)
        before, last[thread] = last.get(thread), (asked, result, sent)
        if not before or before[:2] != (asked, result):
            continue
        n += 1
        if result == "CUDA_SUCCESS" and sent:
            wrong.append(f"{call} was asked before and sent {sent} messages")
        if result != "CUDA_SUCCESS" and before[2] and not sent:
            wrong.append(f"{call} failed with {result}, which was remembered")
    return wrong if n else ["no call was made twice in a row"]


def list_nvml(sources):
    """The lines of NVML's functions, by the names that programs write."""
    api = parse.load(sorted(map(str, (SOURCE / "protocol/api").glob("nvml-*.xml"))))
    by_name = {c.symbol: c for c in api.public}
    by_name.update({c.symbol + FIRST_FORM: c for c in api.public})
    by_name.update({c.macro: c for c in api.public if c.macro not in ("", "no")})
    return [f"{by_name[name].symbol} {path.stem} {test}\n"
            for path in sources for name, tests in sorted(mentions(path, NVML).items())
            if name in by_name for test in tests]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvml", action="store_true", help="of NVML")
    parser.add_argument("--output", required=True)
    parser.add_argument("--more", nargs="*", default=[], type=Path,
                        help="tests that claim no call, but may name attributes")
    parser.add_argument("source", nargs="+", type=Path)
    options = parser.parse_args()
    if options.nvml:
        text = "".join(list_nvml(options.source))
        Path(options.output).write_text(text, encoding="utf-8")
        return
    calls = Calls()
    lines = []
    for path in options.source:
        for symbol, tests in sorted(claims(path, calls).items()):
            lines += [f"{symbol} {path.stem} {test}\n" for test in tests]
    for path in options.source + options.more:
        for attribute, tests in sorted(mentions(path).items()):
            lines += [f"{attribute} {path.stem} {test}\n" for test in tests]
    Path(options.output).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
