#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ivshmem server for one guest, to try the device without vgpud.

usage: ivshmem-server.py SOCKET SIZE_MIB VECTORS

Greets QEMU as specified in docs/specs/ivshmem-spec.txt of QEMU, with the host as peer 0,
and then works with tests/vm/device.c in the guest: each doorbell on
vector N makes the server look at word N of the shared memory (8 bytes, from 64 on)
and write its complement into the next word. Ends when QEMU does. Prints one line
per doorbell.
"""
import os
import select
import socket
import struct
import sys

HOST_ID, GUEST_ID = 0, 1
WORDS = 64


def send_number(connection, number, fd=None):
    """One message of the protocol: a number, and a descriptor or none."""
    socket.send_fds(connection, [struct.pack("<q", number)],
                    [] if fd is None else [fd])


def greet(connection, memory, to_host, to_guest):
    """Sends it at once: QEMU reads with its big lock held."""
    send_number(connection, 0)
    send_number(connection, GUEST_ID)
    send_number(connection, -1, memory)
    for fd in to_host:
        send_number(connection, HOST_ID, fd)
    for fd in to_guest:
        send_number(connection, GUEST_ID, fd)


def answer(memory, vector):
    """Handles the doorbell of a vector."""
    offset = WORDS + 16 * vector
    word, = struct.unpack("<Q", os.pread(memory, 8, offset))
    os.pwrite(memory, struct.pack("<Q", word ^ (1 << 64) - 1), offset + 8)
    print(f"doorbell {vector} word {word:#x}", flush=True)


def serve(connection, memory, to_host):
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    for fd in to_host:
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == connection.fileno():
                return
            os.eventfd_read(fd)
            answer(memory, to_host.index(fd))


def main():
    path, size, vectors = sys.argv[1], int(sys.argv[2]) << 20, int(sys.argv[3])
    memory = os.memfd_create("ivshmem-test")
    os.ftruncate(memory, size)
    os.pwrite(memory, b"written by the host", 0)
    to_host = [os.eventfd(0) for _ in range(vectors)]
    to_guest = [os.eventfd(0) for _ in range(vectors)]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)
        connection, _ = listener.accept()
    with connection:
        greet(connection, memory, to_host, to_guest)
        serve(connection, memory, to_host)
    print(f"last word {os.pread(memory, 19, size - 32).decode()}")


if __name__ == "__main__":
    main()
