# SPDX-License-Identifier: Apache-2.0
"""A strict parser of the text format of Prometheus, version 0.0.4."""

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
NUMBER = re.compile(r"\d+(\.\d+)?")
ENDINGS = {"gauge": ("",), "counter": ("",), "histogram": ("_bucket", "_sum", "_count")}


class Family:
    def __init__(self, name, text):
        self.name, self.help, self.type = name, text, None
        self.samples = {}  # of names with labels, as sorted tuples of pairs

    def labels(self):
        return {tuple(sorted(name for name, _ in labels if name != "le"))
                for _, labels in self.samples}


def parse_labels(text):
    labels, at = [], 0
    while text and at < len(text):
        found = LABEL.match(text, at)
        assert found, f"no label at {text[at:]!r}"
        labels.append((found[1], re.sub(r"\\(.)", lambda c: {"n": "\n"}.get(c[1], c[1]),
                                        found[2])))
        at = found.end()
        if at < len(text):
            assert text[at] == ",", text
            at += 1
            assert at < len(text), f"a comma at the end of {text!r}"
    names = [name for name, _ in labels]
    assert len(set(names)) == len(names), f"a label twice: {text!r}"
    return tuple(sorted(labels))


def check_histogram(family):
    series = {}
    for (name, labels), value in family.samples.items():
        rest = tuple(pair for pair in labels if pair[0] != "le")
        one = series.setdefault(rest, {"buckets": []})
        if name.endswith("_bucket"):
            one["buckets"].append((float(dict(labels)["le"]), value))
        else:
            assert rest == labels, f"{name} has le"
            one[name[len(family.name):]] = value
    for one in series.values():
        bounds = [bound for bound, _ in one["buckets"]]
        counts = [count for _, count in one["buckets"]]
        assert bounds == sorted(set(bounds)) and bounds[-1] == float("inf"), one
        assert counts == sorted(counts) and counts[-1] == one["_count"], one
        assert "_sum" in one, one


def parse(text):
    """Returns {name: Family}, or raises an AssertionError."""
    assert text.endswith("\n")
    families, family = {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, words = re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line).groups()
            assert name not in families, f"{name} has two texts, or its samples are apart"
            family = families[name] = Family(name, words)
        elif line.startswith("# TYPE "):
            name, kind = re.fullmatch(rf"# TYPE ({NAME}) (\w+)", line).groups()
            assert family and name == family.name and not family.type, line
            assert kind in ENDINGS, line
            assert (kind == "counter") == name.endswith("_total"), line
            family.type = kind
        else:
            found = SAMPLE.fullmatch(line)
            assert found, f"what is {line!r}"
            name, labels, value = found.groups()
            assert NUMBER.fullmatch(value), line
            assert family and family.type, line
            assert name in [family.name + ending for ending in ENDINGS[family.type]], line
            key = name, parse_labels(labels)
            assert key not in family.samples, f"{line} is there twice"
            family.samples[key] = float(value)
    for family in families.values():
        assert family.type, family.name
        if family.type == "histogram":
            check_histogram(family)
    return families
