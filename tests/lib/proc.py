# SPDX-License-Identifier: Apache-2.0
"""What /proc shows of other processes, which end and close things meanwhile."""

import os


def descriptors(pid):
    """Yields (path, what it is open for) of each open descriptor of a process."""
    folder = f"/proc/{pid}/fd"
    for number in sorted(os.listdir(folder), key=int):
        try:
            yield f"{folder}/{number}", os.readlink(f"{folder}/{number}")
        except FileNotFoundError:
            pass  # closed meanwhile


def of_threads(pid, name):
    """Yields (thread, text of that file) of each thread of a process."""
    folder = f"/proc/{pid}/task"
    for thread in os.listdir(folder):
        try:
            with open(f"{folder}/{thread}/{name}", encoding="ascii") as file:
                yield thread, file.read()
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def command(pid):
    """The command name of a process, or "" if it has ended."""
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def broker_of(host):
    for pid in children(host.process.pid):
        if command(pid) == "vgpud-broker":
            return pid
    raise AssertionError("there is no broker")
