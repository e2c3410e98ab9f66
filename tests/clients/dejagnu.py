# SPDX-License-Identifier: Apache-2.0
"""The directives of a DejaGnu test: how it is compiled, run and judged.

They are comments `{ dg-NAME ARGUMENT... }` in the source, in Tcl syntax, as documented in
GCC's internals manual under "Directives". Diagnostics and dumps of the compiler (dg-error,
dg-final and so on) are ignored, because the compiler is not under test.
"""

import fnmatch
import re

TARGET = "x86_64-pc-linux-gnu"
DIRECTIVE = re.compile(r"\{\s+dg-([-a-z]+)(?=\s)")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class Unknown(Exception):
    """An unknown directive or property of the target."""


def split_words(text):
    """The words of one Tcl command. A word in braces is literal; backslashes of others are
    removed."""
    words, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] == "{":
            end = closing_brace(text, at)
            words.append(text[at + 1:end])
            at = end + 1
        else:
            word, at = plain_word(text, at)
            words.append(word)
    return words


def plain_word(text, at):
    quoted, word = text[at] == '"', ""
    at += quoted
    while at < len(text) and not (text[at] == '"' if quoted else text[at].isspace()):
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            word += ESCAPES.get(text[at], text[at])
        else:
            word += text[at]
        at += 1
    return word, at + quoted


def closing_brace(text, at):
    """The position of the matching closing brace, or the end."""
    depth = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] in "{}":
            depth += 1 if text[at] == "{" else -1
            if not depth:
                return at
        at += 1
    return len(text)


def directives(source):
    """Name and words of each directive, in order. A directive does not span lines."""
    for line in source.splitlines():
        for found in DIRECTIVE.finditer(line):
            end = closing_brace(line, found.start())
            if end < len(line):
                yield found[1], split_words(line[found.end():end])


class Target:
    """The properties of the target, and of the options that a test is compiled with."""

    def __init__(self, properties, options):
        self.properties, self.options = properties, options

    def has(self, word):
        if "-*-" in word or word.startswith("*"):
            return fnmatch.fnmatchcase(TARGET, word)
        if word not in self.properties:
            raise Unknown(f"the property {word} of a target is not known")
        return self.properties[word]

    def matches(self, expression):
        """Operators have no precedence among each other, as braces always group."""
        value, join, negate = None, None, False
        for word in split_words(expression):
            if word == "!":
                negate = not negate
            elif word in ("&&", "||"):
                join = word
            else:
                nested = any(c.isspace() for c in word.strip())
                term = (self.matches(word) if nested else self.has(word.strip())) != negate
                negate = False
                # Words without an operator, such as names of systems, are alternatives.
                value = term if value is None else \
                    (value and term if join == "&&" else value or term)
                join = None
        return bool(value)

    def selects(self, words):
        """Whether a directive with an optional `target EXPRESSION` applies."""
        if not words:
            return True
        parts = split_words(words[0])
        if parts and parts[0] in ("target", "xfail"):
            expression = words[0].strip()[len(parts[0]):]
            return self.matches(expression)
        return self.matches(words[0])

    def has_option(self, patterns):
        flags = [word for option in self.options for word in option.split()]
        return any(fnmatch.fnmatchcase(flag, pattern)
                   for pattern in split_words(patterns) for flag in flags or [""])

    def applies(self, words):
        """Evaluates dg-skip-if and the like: COMMENT TARGETS [OPTIONS [EXCEPT-OPTIONS]]."""
        if len(words) > 1 and not self.matches(words[1]):
            return False
        if len(words) > 2 and not self.has_option(words[2]):
            return False
        return len(words) < 4 or not words[3].strip() or not self.has_option(words[3])


class Test:
    """One test: its directives, evaluated for a target."""

    def __init__(self, source, target, options):
        self.action, self.skip = "run", None
        self.options, self.sources, self.variables = list(options), [], {}
        self.fails, self.may_fail, self.seconds = False, None, None
        self.output = ""
        self.target = target
        for name, words in directives(source):
            method = getattr(self, "on_" + name.replace("-", "_"), None)
            if method:
                method(words)

    def on_do(self, words):
        if self.target.selects(words[1:]):
            self.action = words[0]
        elif words[0] == self.action and not self.skip:
            self.skip = f"the suite runs it elsewhere: {words[1].strip()}"

    def on_options(self, words):
        if self.target.selects(words[1:]):
            self.options = words[0].split()
            self.target.options += self.options

    def on_additional_options(self, words):
        if self.target.selects(words[1:]):
            self.options += words[0].split()
            self.target.options += words[0].split()

    def on_additional_sources(self, words):
        self.sources += [name for word in words[:1] for name in word.split()]

    def on_require_effective_target(self, words):
        if self.target.selects(words[1:]) and not self.target.has(words[0]):
            self.skip = f"the suite wants {words[0]}"

    def on_skip_if(self, words):
        if self.target.applies(words):
            self.skip = f"the suite skips it: {words[0] or words[1].strip()}"

    def on_set_target_env_var(self, words):
        self.variables[words[0]] = words[1]

    def on_shouldfail(self, words):
        if self.target.applies(words):
            self.fails = True

    def on_xfail_run_if(self, words):
        if self.target.applies(words):
            self.may_fail = words[0] or "no reason given"

    on_xfail_if = on_xfail_run_if

    def on_excess_errors(self, words):
        if self.target.selects(words[1:]):
            self.may_fail = words[0]

    def on_timeout(self, words):
        self.seconds = int(words[0])

    def on_output(self, words):
        # With xfail the suite expects another output.
        is_xfail = bool(words[1:]) and words[1].split()[:1] == ["xfail"]
        if self.target.selects(words[1:]) != is_xfail:
            self.output += words[0]

    def judge(self, status, output):
        """The reason why a run with this status failed, or None."""
        if self.fails and not status:
            return "ends well where the suite wants a failure"
        if status and not self.fails:
            return f"exit status {status}" if status < 128 else f"signal {status - 128}"
        # In Tcl a dot is any character.
        if self.output and not re.search(self.output, output, re.S):
            return f"no {self.output!r} in its output"
        return None
