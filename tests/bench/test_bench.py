#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-bench measures everything it promises, and its JSON has the documented form.

    test_bench.py VGPU_BENCH

No figure is judged: what a machine that is busy with other tests measures says nothing.
"""

import json
import subprocess
import sys

SIZES = ["4kib", "64kib", "1mib", "64mib", "1gib"]
MACHINE = ["spin_round_trip"] + [f"memcpy_{size}" for size in SIZES]
STACK = [
    "sync_null_call",
    "async_launch",
    "launch_rate",
    "event_query_done",
    "mixed_iteration",
    "pin_1gib",
    "pin_1gib_cold",
] + [
    f"copy_{way}_{kind}_{size}"
    for way in ("h2d", "d2h")
    for kind in ("pageable", "pinned")
    for size in SIZES
]


def measure(bench, *options):
    command = [bench, "--quick", "--json", *options]
    done = subprocess.run(command, capture_output=True, timeout=100, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr.decode()}"
    return json.loads(done.stdout)


def check_result(result):
    assert set(result) == {"name", "unit", "median", "p10", "p90", "n", "driver"}, result
    assert result["unit"] in ("ns", "1/s", "B/s"), result
    assert 0 < result["p10"] <= result["median"] <= result["p90"], result
    assert result["n"] > 0, result


def main():
    bench = sys.argv[1]
    answer = measure(bench, "--driver", "null")
    assert answer["machine"]["quick"] is True
    for result in answer["results"]:
        check_result(result)
    found = {(result["driver"], result["name"]) for result in answer["results"]}
    missing = {("null", name) for name in STACK} - found
    wanted = set(MACHINE)
    if answer["machine"]["guest_cpu"] == answer["machine"]["host_cpu"]:
        wanted.remove("spin_round_trip")
    missing |= {("machine", name) for name in wanted} - found
    assert not missing, f"not measured: {sorted(missing)}"

    # The software device really computes: it cannot measure what only the null driver can.
    answer = measure(bench, "--driver", "soft", "--only", "async")
    found = [(result["driver"], result["name"]) for result in answer["results"]]
    assert found == [("soft", "async_launch")], found

    # A failed measurement is not a figure.
    done = subprocess.run(
        [bench, "--quick", "--json", "--driver", "/nonexistent", "--only", "async"],
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1, done
    assert json.loads(done.stdout)["results"] == [], done.stdout


if __name__ == "__main__":
    main()
