# SPDX-License-Identifier: Apache-2.0
"""A file of figures, as vgpu-bench writes it.

A file is not trusted: any deviation from the documented form is refused with a sentence.
"""

import json
import math
import re

BYTES_MAX = 16 << 20
RESULTS_MAX = 10000
UNITS = ("ns", "1/s", "B/s", "cpu")
NAME = re.compile(r"[a-z0-9_]{1,64}")
DRIVER = re.compile(r"[A-Za-z0-9_./-]{1,64}")
NOTE = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
SIZES = {"b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
PREFIXES = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0, "")]


class Refused(Exception):
    """The reason, as a sentence, why a file is refused."""


def need(condition, sentence):
    if not condition:
        raise Refused(sentence)


def is_number(value):
    """Floats that are finite, and integers that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


class Result:
    """One row. `limit` is (driver, name) of the row that it is judged by, or None."""

    def __init__(self, row, where):
        need(isinstance(row, dict), f"{where} is no object")
        self.name, self.driver = row.get("name"), row.get("driver")
        need(isinstance(self.name, str) and NAME.fullmatch(self.name), f"{where} has no name")
        need(
            isinstance(self.driver, str) and DRIVER.fullmatch(self.driver),
            f"{where} ({self.name}) has no driver",
        )
        where = f"{where} ({self.driver}/{self.name})"
        self.unit, self.n = row.get("unit"), row.get("n")
        need(self.unit in UNITS, f"{where} has a unit other than {', '.join(UNITS)}")
        need(type(self.n) is int and self.n >= 0, f"{where} has no number of samples")
        self.note = row.get("note")
        need(
            self.note is None or (isinstance(self.note, str) and NOTE.fullmatch(self.note)),
            f"{where} has a note that is no line of text",
        )
        self.median = self.p10 = self.p90 = self.limit = None
        if not self.n:
            need(self.note, f"{where} has neither a sample nor a note")
            return
        values = [row.get(key) for key in ("p10", "median", "p90")]
        need(
            all(is_number(value) for value in values) and values == sorted(values),
            f"{where} has no median between its 10 % and its 90 %",
        )
        # An idle process may use no time; any other figure is positive.
        least = 0 if self.unit == "cpu" else 1e-9
        need(values[0] >= least, f"{where} has a value that nothing can have")
        self.p10, self.median, self.p90 = (float(value) for value in values)
        if "limit" in row:
            need(
                isinstance(row["limit"], str) and "/" in row["limit"],
                f"{where} has a limit that is no DRIVER/NAME",
            )
            self.limit = tuple(row["limit"].rsplit("/", 1))


class Figures:
    """All rows of a run by (driver, name), and the description of the machine."""

    def __init__(self, value, path):
        need(isinstance(value, dict), f"{path} holds no object")
        need(value.get("version") == 1, f"{path} is of another version than 1")
        self.path, self.machine = path, value.get("machine")
        rows = value.get("results")
        need(isinstance(self.machine, dict), f"{path} does not describe its machine")
        need(isinstance(rows, list), f"{path} has no list of results")
        need(len(rows) <= RESULTS_MAX, f"{path} has more than {RESULTS_MAX} results")
        self.results = {}
        for i, row in enumerate(rows):
            result = Result(row, f"{path}: result {i}")
            key = (result.driver, result.name)
            need(key not in self.results, f"{path} has {'/'.join(key)} twice")
            self.results[key] = result
        for result in self.results.values():
            if result.limit:
                limit = self.results.get(result.limit)
                need(
                    limit and limit.n and limit.median > 0,
                    f"{path}: {result.driver}/{result.name} is judged by "
                    f"{'/'.join(result.limit)}, which is not there",
                )

    def get(self, driver, name):
        """Returns: the row if it has a figure, else None."""
        result = self.results.get((driver, name))
        return result if result and result.n else None

    def limit(self, result):
        return self.results[result.limit] if result.limit else None


def read(path):
    """Raises Refused."""
    try:
        with open(path, "rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    need(len(data) <= BYTES_MAX, f"{path} has more than {BYTES_MAX} bytes")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path} is no JSON: {error}") from None
    return Figures(value, path)


def ratio(value, unit, limit):
    """A value in its limits; the limit of a time may be the bandwidth for a copy of 4 KiB."""
    if unit != limit.unit:
        return value / (4096 / limit.median * 1e9)
    return value / limit.median


def size_of(name):
    """Returns: (what, bytes) of a name such as copy_h2d_pinned_64kib, or None."""
    found = re.fullmatch(r"(.*)_(\d{1,4})(b|kib|mib|gib)", name)
    return (found[1], int(found[2]) * SIZES[found[3]]) if found else None


def readable(value, unit):
    if unit == "cpu":
        return f"{100 * value:.3g} %"
    if unit == "ns":
        for least, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
            if value >= least:
                return f"{value / least:.3g} {name}"
        return f"{value:.3g} ns"
    least, prefix = next(pair for pair in PREFIXES if value >= pair[0])
    return f"{value / (least or 1):.3g} {prefix}{'/s' if unit == '1/s' else unit}"
