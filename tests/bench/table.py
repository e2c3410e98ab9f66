#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of vgpu-bench as tables in Markdown.

    table.py FIGURES.json               the limits, and one column a driver
    table.py --targets FIGURES.json...  the targets, and whether they are met

With --targets, several files may complement each other; a figure is taken from the first
file that has it, with its limit of the same file.

Exit status: 0, 1 a file is refused, with the reason, 2 wrong command line.
"""

import argparse
import sys

import figures

GPU = "no GPU was available: tests/gpu/bench measures it"


def cell(result):
    if not result:
        return ""
    if not result.n:
        return result.note
    median, p10, p90 = (
        figures.readable(value, result.unit)
        for value in (result.median, result.p10, result.p90)
    )
    return f"{median} ({p10} … {p90})"


def print_columns(file, drivers):
    names = dict.fromkeys(name for driver, name in file.results if driver in drivers)
    print("| name | " + " | ".join(f"`{driver}`" for driver in drivers) + " |")
    print("|---" * (len(drivers) + 1) + "|")
    for name in names:
        cells = [cell(file.results.get((driver, name))) for driver in drivers]
        print(f"| `{name}` | " + " | ".join(cells) + " |")


def print_figures(file):
    drivers = list(dict.fromkeys(driver for driver, _ in file.results))
    limits = [driver for driver in drivers if driver == "machine"]
    others = [driver for driver in drivers if driver != "machine"]
    if limits:
        print_columns(file, limits)
    if limits and others:
        print()
    if others:
        print_columns(file, others)


class Row:
    """A target: a figure, the row that it is compared with, and the criterion.

    @judge:	called with the median and its ratio to the limit (None: not measured);
            returns whether the target is met
    @between:	the text for a target that is not met or cannot be judged
    """

    def __init__(self, what, target, figure, limit, judge, between=""):
        self.what, self.target, self.figure, self.limit = what, target, figure, limit
        self.judge, self.between = judge, between

    def find(self, files):
        for file in files:
            if self.figure and file.get(*self.figure):
                limit = self.limit and file.get(*self.limit)
                return file.get(*self.figure), limit
        return None, None

    def cells(self, files):
        result, limit = self.find(files)
        if not result:
            return [self.what, self.target, "", "", "", self.between or "not measured"]
        ratio = figures.ratio(result.median, result.unit, limit) if limit else None
        met = self.judge(result.median, ratio)
        return [
            f"{self.what} (`{'/'.join(self.figure)}`)",
            self.target,
            cell(result),
            f"{figures.readable(limit.median, limit.unit)} (`{limit.name}`)" if limit else "",
            f"{ratio:.3g}" if ratio is not None else "",
            "not judged" if met is None else "met" if met else "not met",
        ]


def copies(kind, driver, limit_driver, limit, target, least):
    for way in ("h2d", "d2h"):
        name = f"copy_{way}_{kind}_64mib"
        yield Row(
            f"{kind} copy, {way}, 64 MiB",
            target,
            (driver, name),
            (limit_driver, limit or name),
            lambda value, ratio: None if ratio is None else ratio >= least,
        )


def on_gpu(what, target, name, judge):
    yield Row(what, target, ("nvidia", name), ("nvidia-direct", name), judge, GPU)


def starts(driver, state):
    for what, name in (("cuInit", "start_init"), ("first context", "start_context")):
        yield Row(
            f"{what}, {state} pool",
            "≤ native",
            (driver, f"{name}_{state}"),
            (f"{driver}-direct", name),
            lambda value, ratio: None if ratio is None else ratio <= 1,
            GPU if driver == "nvidia" else "",
        )


def at_least(times):
    """The minimum ratio of native to remoted time of a workload."""
    return lambda value, ratio: None if ratio is None else 1 / ratio >= times


def rows():
    spin, eventfd = ("machine", "spin_round_trip"), ("machine", "eventfd_wake_cross")
    yield Row(
        "synchronous null call",
        "≤ 0.6 µs",
        ("null", "sync_null_call"),
        spin,
        lambda value, ratio: value <= 600,
    )
    yield Row(
        "the same relative to its limit",
        "≤ 2 × the spin round trip",
        ("null", "sync_null_call"),
        spin,
        lambda value, ratio: None if ratio is None else ratio <= 2,
    )
    yield Row(
        "call of NVML",
        "≤ 1 µs",
        ("null", "nvml_memory_info"),
        ("machine", "empty_syscall"),
        lambda value, ratio: value <= 1000,
    )
    yield Row(
        "asynchronous launch",
        "≤ 0.15 µs",
        ("null", "async_launch"),
        ("machine", "ring_enqueue"),
        lambda value, ratio: value <= 150,
    )
    yield Row(
        "sustained launches",
        "≥ 5 M/s",
        ("null", "launch_rate"),
        ("machine", "ring_rate"),
        lambda value, ratio: value >= 5e6,
    )
    yield Row(
        "mixed iteration",
        "≤ 150 µs",
        ("null", "mixed_iteration"),
        ("null-direct", "mixed_iteration"),
        lambda value, ratio: value <= 150e3,
    )
    for what in ("event", "stream"):
        yield Row(
            f"cu{what.capitalize()}Query of finished work",
            "≤ 50 ns, no message",
            ("null", f"{what}_query_done"),
            ("machine", "cached_load"),
            lambda value, ratio: value <= 50,
        )
    yield Row(
        "call that finds the host asleep",
        "≤ 15 µs on bare metal",
        ("null", "call_asleep"),
        eventfd,
        lambda value, ratio: True if value <= 15e3 else None,
    )
    yield from copies("pinned", "soft", "soft-direct", None, "≥ 98 % of native", 0.98)
    yield from copies("pinned", "nvidia", "nvidia-direct", None, "≥ 98 % of native", 0.98)
    yield from copies("pageable", "soft", "soft-direct", None, "≥ 100 % of native", 1)
    yield from copies(
        "pageable", "soft", "machine", "memcpy_64mib", "≥ 95 % of one-thread memcpy", 0.95
    )
    yield from copies("pageable", "nvidia", "nvidia-direct", None, "≥ 100 % of native", 1)
    for state in ("pin_1gib", "pin_1gib_cold"):
        yield Row(
            "pinned allocation of 1 GiB" + (", cold" if "cold" in state else ""),
            "reported" if "cold" in state else "≤ 1 ms",
            ("soft", state),
            ("soft-direct", "pin_1gib"),
            lambda value, ratio: value <= 1e6,
        )
    for what, name, least in (
        ("ResNet, inference", "torch_resnet_inference", 0.98),
        ("ResNet, inference, graph", "torch_resnet_inference_graph", 0.98),
        ("ResNet, training", "torch_resnet_training", 0.98),
        ("ResNet, training, graph", "torch_resnet_training_graph", 0.98),
        ("transformer, inference", "torch_transformer_inference", 0.98),
        ("transformer, inference, graph", "torch_transformer_inference_graph", 0.98),
        ("transformer, training", "torch_transformer_training", 0.98),
        ("transformer, training, graph", "torch_transformer_training_graph", 0.98),
        ("eager small-batch decode", "torch_decode", 0.95),
        ("decode, graph", "torch_decode_graph", 0.97),
    ):
        yield from on_gpu(what, f"≥ {least} of native", name, at_least(least))
    yield from on_gpu(
        "model load", "≤ 1.2 × native", "torch_model_load",
        lambda value, ratio: None if ratio is None else ratio <= 1.2,
    )
    yield Row(
        "four equal VMs",
        "spread ≤ 2 %",
        None,
        None,
        None,
        "vgpu-bench has one VM: it is not measured here",
    )
    yield Row(
        "idle attached VM, host side",
        "≤ 1 % of a core",
        ("soft", "idle_cpu_host"),
        None,
        lambda value, ratio: value <= 0.01,
    )
    for driver in ("soft", "nvidia"):
        for state in ("warm", "cold"):
            yield from starts(driver, state)


def print_targets(files):
    print("| what | target | measured | limit | ratio | |")
    print("|---|---|---|---|---|---|")
    for row in rows():
        print("| " + " | ".join(row.cells(files)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("figures", nargs="+")
    options = parser.parse_args()
    if len(options.figures) > 1 and not options.targets:
        parser.error("one file, unless --targets")
    try:
        files = [figures.read(path) for path in options.figures]
    except figures.Refused as refused:
        print(f"table.py: {refused}", file=sys.stderr)
        return 1
    if options.targets:
        print_targets(files)
    else:
        print_figures(files[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
