#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest process that corrupts the memory shared with its worker affects only itself.

    test_corrupt.py BUILD SOURCE CORRUPT CHECKED
"""

import os
import random
import signal
import subprocess
import sys
import time

BUILD, SOURCE, CORRUPT, CHECKED = sys.argv[1:]
sys.path.insert(0, os.path.join(SOURCE, "tests/lib"))
sys.path.insert(0, os.path.join(SOURCE, "tests/soak"))

import books  # noqa: E402
from host import Host  # noqa: E402

PLACES = ("control", "indices", "ring", "words", "slots", "records", "area", "table")
SEEDS = (1, 2)
# Possible reasons of ends: the corruption was detected, or the guest exited.
REASONS = ("protocol", "closed")
# The activity of a guest when it is stopped.
STOPPED = ("nothing", "wait", "flood", "graphs")
REST_SECONDS = 2
# The share of that time that idle processes may use.
TICKS_MAX = 0.05 * REST_SECONDS * os.sysconf("SC_CLK_TCK")
# The time limit of waits, on a busy machine.
PATIENCE_SECONDS = 60


def environment(host):
    variables = dict(os.environ, VGPU_SOCKET=str(host.socket))
    variables["LD_LIBRARY_PATH"] = os.path.join(BUILD, "guest-shim")
    # The guest itself is broken; its messages do not count.
    variables["ASAN_OPTIONS"] = "detect_leaks=0"
    variables["VGPU_LOG"] = "error"
    return variables


def ticks(pids):
    return sum(int(fields[11]) + int(fields[12]) for fields in map(books.stat, pids) if fields)


def rest(pids, what):
    """Waits until the processes are idle: work in flight completes first."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        before = ticks(pids)
        time.sleep(REST_SECONDS)
        used = ticks(pids) - before
        if used <= TICKS_MAX:
            return
        assert time.monotonic() < end, f"{what}: {used} ticks in {REST_SECONDS} s"


def holdings(host):
    """Descriptors of keeper and broker; while they have other children, their number."""
    pids = [host.process.pid, *books.children(host.process.pid)]
    broker = next((pid for pid in pids if books.comm(pid) == "vgpud-broker"), None)
    if len(pids) != 2 or not broker:
        return {"other processes": len(pids) - 2}
    return {
        "broker": broker,
        "descriptors of the keeper": books.count_fds(host.process.pid),
        "descriptors of the broker": books.count_fds(broker),
        "shared memories": len(books.memories(host.process.pid)),
    }


def settle(host):
    """Waits until no more resources are released."""
    last, n_alike = {}, 0
    end = time.monotonic() + PATIENCE_SECONDS
    while n_alike < 5:
        time.sleep(0.1)
        now = holdings(host)
        n_alike = n_alike + 1 if now == last and "broker" in now else 0
        last = now
        assert time.monotonic() < end, f"{now} are left"
    return last


def start(host, program, *arguments):
    """Starts it, and waits for its first line."""
    child = subprocess.Popen(
        [program, *map(str, arguments)],
        env=environment(host),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if program == CORRUPT else None,
        text=True,
    )
    assert child.stdout.readline(), f"{program} {arguments} did not begin"
    return child


def corrupt(host, place, seed):
    child = start(host, CORRUPT, place, seed)
    try:
        child.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        # A guest that waits for ever for a word that it corrupted affects only itself.
        child.kill()
        child.wait()
    child.stdout.close()
    found = host.wait_for(rf"session ended .* pid={child.pid} .*reason=(\S+)")
    reason = found.group(1)
    assert reason in REASONS, f"{place}, seed {seed}: the session ended: {reason}"
    return reason


def stop(host, mode):
    """Stops two processes at a random point. The host becomes idle; then one of them
    continues, and the other is killed."""
    pair = [start(host, CORRUPT, mode, seed) for seed in (1, 2)]
    opened = r"session opened .* pid={} .*worker=(\d+)"
    workers = [int(host.wait_for(opened.format(child.pid)).group(1)) for child in pair]
    time.sleep(random.Random(mode).uniform(0.01, 0.3))
    for child in pair:
        os.kill(child.pid, signal.SIGSTOP)
    rest(workers, f"{mode}: guests that are stopped")
    goes_on, killed = pair
    killed.kill()
    killed.wait()
    host.wait_for(rf"session ended .* pid={killed.pid} ")
    os.kill(goes_on.pid, signal.SIGCONT)
    time.sleep(0.1)
    assert goes_on.poll() is None, f"{mode}: a guest that was stopped cannot go on"
    assert host.alive(workers[0]), f"{mode}: the worker of a guest that was stopped is gone"
    goes_on.kill()
    goes_on.wait()
    host.wait_for(rf"session ended .* pid={goes_on.pid} ")
    for child in pair:
        child.stdout.close()


def main():
    # No warm worker: one that starts late would be counted as a leak.
    with Host(BUILD, extra="warm-workers = 0") as host:
        # The first session creates resources that are kept.
        assert start(host, CHECKED, 1, 1, 256).wait(PATIENCE_SECONDS) == 0
        before = settle(host)

        honest = start(host, CHECKED, 0, 7, 256)
        reasons = {}
        for place in PLACES:
            for seed in SEEDS:
                reasons[place, seed] = corrupt(host, place, seed)
        print(", ".join(f"{place} {reason}" for (place, _), reason in reasons.items()))
        # Else nothing was checked.
        assert "protocol" in reasons.values(), reasons
        for mode in STOPPED:
            stop(host, mode)
        honest.send_signal(signal.SIGTERM)
        assert honest.wait(PATIENCE_SECONDS) == 0, "another process met with an error"

        after = settle(host)
        assert after == before, f"{before} before, {after} after"
        rest([host.process.pid, *books.children(host.process.pid)], "the host")
        text = host.text()
        for word in ("Sanitizer", "runtime error"):
            assert word not in text, text


if __name__ == "__main__":
    main()
