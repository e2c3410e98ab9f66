# SPDX-License-Identifier: Apache-2.0
"""Resources in use, according to the kernel and to vgpud's ledger."""

import os
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import proc  # noqa: E402

# struct ledger and struct ledger_channel of host-daemon/vgpud/ledger.h, and the channel
# table of protocol/include/vgpu/ring-layout.h.
CHANNELS_MAX = 31
LEDGER_CHANNELS, LEDGER_CHANNEL_SIZE = 16, 112
LEDGER_OWNERS = LEDGER_CHANNELS + CHANNELS_MAX * LEDGER_CHANNEL_SIZE
TABLE_OFF, ENTRY_SIZE = 4096, 256
# Header, table and the first page that a guest has read.
IDLE_BLOCKS_MAX = 2048


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def comm(pid):
    return read(f"/proc/{pid}/comm").decode(errors="replace").strip()


def stat(pid):
    """Fields of /proc/PID/stat after the name: state, parent, ..."""
    return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def children(parent):
    """Living and dead."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        fields = stat(pid)
        if fields and int(fields[1]) == parent:
            found.append(int(pid))
    return found


def descendants(pid):
    found = children(pid)
    for child in list(found):
        found += descendants(child)
    return found


def count_zombies(parents):
    return sum(stat(pid)[:1] == [b"Z"] for parent in parents for pid in children(parent))


def sees_descriptors():
    """vgpud is not dumpable: /proc shows its descriptors to root only."""
    return os.geteuid() == 0


def count_fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd")) if sees_descriptors() else 0


def resident_kib(pid):
    for line in read(f"/proc/{pid}/status").decode().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def memories(keeper):
    """Descriptors of the keeper by kind: [(shared memory, ledger)]."""
    if not sees_descriptors():
        return []
    found = {"vgpu-shm": [], "vgpu-ledger": []}
    for path, link in proc.descriptors(keeper):
        for name, paths in found.items():
            if link.startswith(f"/memfd:{name} "):
                paths.append(path)
    return list(zip(found["vgpu-shm"], found["vgpu-ledger"]))


def quota_in_use(keeper):
    """Bytes of device memory that are counted in the quota pages of all sections: shared and
    used[QUOTA_SLOTS] of struct quota_page (host-daemon/control/quota.h)."""
    used = 0
    for path, link in proc.descriptors(keeper):
        if link.startswith("/memfd:vgpu-quota "):
            used += sum(n for n, in struct.iter_unpack("<Q", read(path)[16:24 + 8 * 8050]))
    return used


def held_in(shm, ledger):
    """Sentences about resources that the channels of a memory hold."""
    held = []
    with open(shm, "rb") as file:
        n_channels = struct.unpack("<I", os.pread(file.fileno(), 4, 12))[0]
        table = os.pread(file.fileno(), n_channels * ENTRY_SIZE, TABLE_OFF)
        n_blocks = os.fstat(file.fileno()).st_blocks
    for i in range(n_channels):
        state = struct.unpack_from("<I", table, i * ENTRY_SIZE)[0]
        if state:
            held.append(f"channel {i} is in state {state}")
    text = read(ledger)
    for i in range(n_channels):
        phase = struct.unpack_from("<I", text, LEDGER_CHANNELS + i * LEDGER_CHANNEL_SIZE)[0]
        if phase:
            held.append(f"channel {i} is in phase {phase}")
    n_taken = sum(owner != 0 for owner in text[LEDGER_OWNERS:])
    if n_taken:
        held.append(f"{n_taken} extents are taken")
    if n_blocks > IDLE_BLOCKS_MAX:
        held.append(f"{n_blocks // 2} KiB of memory are in use")
    return held


def held_in_guest(keeper):
    """The same for the only memory with many channels, the one of the VM."""
    if not sees_descriptors():
        return []
    try:
        for shm, ledger in memories(keeper):
            with open(shm, "rb") as file:
                if struct.unpack("<I", os.pread(file.fileno(), 4, 12))[0] > 1:
                    return held_in(shm, ledger)
    except (OSError, struct.error) as error:
        return [f"a memory went while it was read: {error}"]
    return ["no memory of a machine"]
