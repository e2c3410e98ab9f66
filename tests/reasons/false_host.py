# SPDX-License-Identifier: Apache-2.0
"""Faulty hosts: sockets without a proper vgpud, and folders that imitate
/sys/bus/pci/devices."""

import array
import fcntl
import mmap
import os
import socket
import struct
import sys
import threading
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../raw"))

from wire import MAGIC, PROTOCOL_VERSION  # noqa: E402

SHM_SIZE = 64 << 20
AREA_OFF, EXTENTS_OFF, EXTENT_SIZE = 2 << 20, 6 << 20, 2 << 20
TABLE_OFF, ENTRY_SIZE = 4096, 256
OPENING, REFUSED, OTHER = 2, 4, 3
F_ADD_SEALS, SEAL_WRITE, SEAL_GROW, SEAL_SHRINK = 1033, 8, 4, 2
IVSHMEM = "0000:00:05.0"


def header(n_channels=1, version=PROTOCOL_VERSION):
    """struct vgpu_shm_header, as far as a guest reads it."""
    return struct.pack("<QIIQQQI", MAGIC, version, n_channels, SHM_SIZE, AREA_OFF,
                       EXTENTS_OFF, (SHM_SIZE - EXTENTS_OFF) // EXTENT_SIZE)


class FalseHost:
    """A socket with a host that behaves in one way.

    `behave(connection)` also sends the greeting.
    """

    def __init__(self, path, behave):
        self.path, self.behave, self.connections = str(path), behave, []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(4)
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        self.connections.append(connection)
        self.behave(connection)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        # accept() does not notice that its descriptor is closed.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(30)
        self.listener.close()
        for connection in self.connections:
            connection.close()
        os.unlink(self.path)


def greet(connection, version=PROTOCOL_VERSION, fds=()):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    connection.sendmsg([struct.pack("<QII", MAGIC, version, len(fds))], rights)


def memory(n_channels=1, state=0):
    """A host's memory, the table filled with channels in that state. Returns a memfd."""
    shm = os.memfd_create("false-host")
    os.truncate(shm, SHM_SIZE)
    os.pwrite(shm, header(n_channels), 0)
    for number in range(n_channels):
        os.pwrite(shm, struct.pack("<II", state, state), TABLE_OFF + number * ENTRY_SIZE)
    return shm


def greet_with(connection, shm):
    """Sends the memory, with doorbells that nobody reads."""
    bells = [os.eventfd(0) for _ in range(2)]
    greet(connection, fds=[shm, *bells])
    for bell in bells:
        os.close(bell)


def silent(n_channels=1, state=0):
    """A host that greets and has no heartbeat."""
    def behave(connection):
        shm = memory(n_channels, state)
        greet_with(connection, shm)
        os.close(shm)
    return behave


def refusing(reason, detail=0):
    """A host that refuses each process for that reason."""
    def behave(connection):
        shm = memory()
        greet_with(connection, shm)
        view = mmap.mmap(shm, SHM_SIZE)
        os.close(shm)
        beats = 0
        while struct.unpack_from("<I", view, TABLE_OFF)[0] != OPENING and beats < 1 << 24:
            beats += 1
            struct.pack_into("<Q", view, 64, beats)
        struct.pack_into("<I", view, TABLE_OFF + 208, reason)
        struct.pack_into("<Q", view, TABLE_OFF + 232, detail)
        struct.pack_into("<I", view, TABLE_OFF, REFUSED)
    return behave


def sealed_memory():
    """Memory that can be opened for writing but not mapped: EPERM, as under lockdown."""
    fd = os.memfd_create("locked", os.MFD_ALLOW_SEALING)
    os.truncate(fd, SHM_SIZE)
    fcntl.fcntl(fd, F_ADD_SEALS, SEAL_WRITE | SEAL_GROW | SEAL_SHRINK)
    return fd


def device(folder, name=IVSHMEM, vendor="0x1af4", number="0x1110"):
    """A device in a folder like /sys/bus/pci/devices. Returns its folder."""
    place = Path(folder) / name
    place.mkdir(parents=True)
    (place / "vendor").write_text(vendor + "\n", encoding="ascii")
    (place / "device").write_text(number + "\n", encoding="ascii")
    (place / "enable").write_text("1\n", encoding="ascii")
    with open(place / "resource2", "wb") as file:
        file.truncate(SHM_SIZE)
    return place
