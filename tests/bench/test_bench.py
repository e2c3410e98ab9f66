#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-bench measures all documented figures, and its JSON has the documented form.

    test_bench.py VGPU_BENCH

No figure is judged: measurements on a machine that is busy with other tests are meaningless.
"""

import json
import subprocess
import sys

import figures

SIZES = ["256b", "1kib", "4kib", "16kib", "64kib", "256kib", "1mib", "4mib", "16mib"]
SIZES += ["64mib"]  # --quick leaves 1 GiB out
KINDS = ("small", "transparent", "hugetlb")
LIMITS = [
    "futex_wake_same_core",
    "eventfd_wake_same_core",
    "cached_load",
    "store_fence",
    "empty_syscall",
    "clock_gettime",
]
LIMITS += [f"memcpy_{size}" for size in SIZES] + [f"nt_copy_{size}" for size in SIZES[4:]]
PAGES = [(what, kind) for what in ("touch", "copy") for kind in KINDS]
LIMITS += [f"pages_{what}_{kind}" for what, kind in PAGES]
LOOPS = ("vadd", "reduce", "matmul", "dp4a", "mma_tf32", "mma_s8", "texture")
LIMITS += [f"loop_{name}" for name in LOOPS]
# Rows that need a processor for each side; otherwise they have a reason, or are omitted.
CROSS = ["spin_round_trip", "futex_wake_cross", "eventfd_wake_cross", "ring_enqueue"]
CROSS += ["ring_rate", "eventfd_wake_asleep"]
CALLS = [
    "sync_null_call",
    "call_asleep",
    "async_launch",
    "launch_rate",
    "event_record",
    "event_query_done",
    "stream_query_done",
    "stream_synchronize_done",
    "launch_synchronize",
    "kernels_back_to_back",
    "kernels_with_records",
    "small_h2d_async_4kib",
    "launch_rate_threads_1",
    "launch_rate_threads_2",
    "launch_rate_threads_4",
    "launch_rate_threads_8",
    "mixed_iteration",
    "eager_iteration",
    "graph_iteration",
    "idle_cpu_guest",
]
STEPS = ["init", "context", "launch", "exit"]
DIRECT = CALLS + ["start_image"] + [f"start_{step}" for step in STEPS]
STACK = (
    CALLS
    + [
        "latency_d2h_4kib",
        "pool_alloc_free",
        "idle_cpu_host",
        "nvml_memory_info",
        "nvml_device_count",
        "pin_1gib",
        "pin_1gib_cold",
        "sync_null_call_same_core",
        "async_launch_same_core",
        "launch_rate_same_core",
        "launch_synchronize_same_core",
        "start_image_first",
        "start_image_second",
    ]
    + [f"start_{step}_{state}" for step in STEPS for state in ("warm", "cold")]
    + [
        f"copy_{way}_{kind}_{size}"
        for way in ("h2d", "d2h")
        for kind in ("pageable", "pinned")
        for size in SIZES
    ]
)


def measure(bench, *options):
    command = [bench, "--quick", "--json", *options]
    done = subprocess.run(command, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr.decode()}"
    return json.loads(done.stdout)


def names(file, driver):
    return {name for row_driver, name in file.results if row_driver == driver}


def check_everything(bench):
    """The file has all rows of the null driver, each with its limit."""
    file = figures.Figures(measure(bench, "--driver", "null"), "the null driver's figures")
    machine = file.machine
    assert machine["quick"] is True and machine["load_before"] >= 0, machine
    for key in ("cpu", "kernel", "load_after", "thp", "governor", "nice"):
        assert key in machine, f"{key} is not in {machine}"
    missing = {"machine": set(LIMITS + CROSS), "null-direct": set(DIRECT), "null": set(STACK)}
    missing = {driver: wanted - names(file, driver) for driver, wanted in missing.items()}
    assert not any(missing.values()), f"not measured: {missing}"
    # A row without a figure has a reason: a driver lacks a call, the machine has no huge
    # pages, or two processors are needed.
    cores = 1 if machine["guest_cpu"] == machine["host_cpu"] else 2
    for (_, name), result in file.results.items():
        lacks = name == "graph_iteration" or name.endswith("_hugetlb")
        assert result.n or lacks or (cores == 1 and name in CROSS), name
    judged = file.get("null", "stream_query_done")
    assert judged.limit == ("machine", "cached_load"), judged.limit


def check_software_device(bench):
    """With softgpu kernels run, and the driver is also measured without the stack."""
    only = ["async", "wait_cpu", "copy_h2d_pinned_4k", "soft_kernel"]
    options = [text for name in only for text in ("--only", name)]
    file = figures.Figures(measure(bench, "--driver", "soft", *options), "softgpu's figures")
    alone = {"async_launch", "wait_cpu_guest", "copy_h2d_pinned_4kib"}
    matrices = ("mma", "mma_f16", "mma_tf32", "mma_s8")
    kernels = {"vadd", "reduce", "matmul", "dp4a", *matrices, "texture"}
    kernels = {f"soft_kernel_{name}" for name in kernels}
    assert names(file, "soft-direct") == alone | kernels, file.results
    behind = alone | {"async_launch_same_core", "wait_cpu_host"}
    assert names(file, "soft") == behind, file.results
    copy = file.get("soft", "copy_h2d_pinned_4kib")
    assert copy.limit == ("soft-direct", "copy_h2d_pinned_4kib"), copy.limit


def main():
    bench = sys.argv[1]
    check_everything(bench)
    check_software_device(bench)

    # A failed measurement is not a figure.
    done = subprocess.run(
        [bench, "--quick", "--json", "--driver", "/nonexistent", "--only", "async"],
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1, done
    assert json.loads(done.stdout)["results"] == [], done.stdout


if __name__ == "__main__":
    main()
