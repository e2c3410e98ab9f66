#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A host for one guest that only opens and closes channels, to try the guest's driver with.

usage: module-host.py SOCKET [--set FIELD=VALUE]... [--lie LIE] [--slow] [--hold]

Each process gets 4 extents, and one more for each ring of its doorbell, 8 at most. Ends
when QEMU does. Prints a line for each step of a channel: milliseconds, step, channel; and one for
each ring.

  --set FIELD=VALUE   a number of the header, instead of the right one
  --lie area          names another channel's area in each answer
  --lie twice         grants each channel the same extents
  --lie beyond        names extents beyond the memory
  --lie unlisted      names extents that the table of owners does not have
  --lie generation    starts afresh, in another generation, at the first ring
  --lie noise         writes random bytes over header and table all the time
  --slow              answers a driver that is being removed after 3 s, with an interrupt
  --hold              answers rings of channels only from a SIGUSR1 on
"""
import argparse
import mmap
import os
import random
import select
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from importlib import import_module  # noqa: E402

SERVER = import_module("ivshmem-server")

# vgpu/ring-layout.h
MAGIC, VERSION = 0x314D485355504756, 3
MIB, EXTENT, AREA = 1 << 20, 2 << 20, 4 << 20
SIZE, VECTORS, N_CHANNELS, GRANT, GRANTS_MAX = 256 * MIB, 32, 8, 4, 8
SERVED, REQUESTS, LEAVING = 88, 144, 148
TABLE, ENTRY, OWNERS, STATUS, SLOTS = 4096, 256, 1 << 20, 64 << 10, 1 << 20
FREE, CLAIMED, OPENING, OPEN, REFUSED, DEAD, CLOSING = range(7)
FIELDS = {"protocol_version": ("<I", 8), "n_channels": ("<I", 12), "shm_size": ("<Q", 16),
          "area_off": ("<Q", 24), "extents_off": ("<Q", 32), "n_extents": ("<I", 40),
          "status_off": ("<Q", 56), "generation": ("<Q", 72), "owners_off": ("<Q", 80)}
EXTENTS_OFF = EXTENT + N_CHANNELS * AREA
RIGHT = {"protocol_version": VERSION, "n_channels": N_CHANNELS, "shm_size": SIZE,
         "area_off": EXTENT, "extents_off": EXTENTS_OFF,
         "n_extents": (SIZE - EXTENTS_OFF) // EXTENT, "status_off": STATUS,
         "generation": 1, "owners_off": OWNERS}


class Host:
    """The shared memory, and what has been granted of it."""

    def __init__(self, fields, options):
        self.fd = os.memfd_create("vgpu-test")
        os.ftruncate(self.fd, SIZE)
        self.memory = mmap.mmap(self.fd, 2 * MIB)
        self.start = time.monotonic()
        self.lie, self.slow = options.lie, options.slow
        self.grants, self.has_lied = {}, False
        self.held = [] if options.hold else None
        for name, value in fields.items():
            self.put(name, value)
        self.memory[0:8] = struct.pack("<Q", MAGIC)
        self.memory[STATUS:STATUS + 4] = struct.pack("<I", 2)

    def put(self, name, value):
        form, offset = FIELDS[name]
        struct.pack_into(form, self.memory, offset, value)

    def say(self, *words):
        print(f"{(time.monotonic() - self.start) * 1000:.1f}", *words, flush=True)

    def state(self, channel):
        return self.word(TABLE + channel * ENTRY)

    def set_state(self, channel, state):
        struct.pack_into("<I", self.memory, TABLE + channel * ENTRY, state)

    def own(self, channel, first, n, owner):
        if self.lie != "unlisted":
            self.memory[OWNERS + first:OWNERS + first + n] = bytes([owner]) * n
        self.grants.setdefault(channel, []).append((first, n))

    def n_owned(self, channel):
        return sum(n for _, n in self.grants[channel])

    def find_free(self, channel, n):
        """Behind what the channel has already, if there is room."""
        used = {extent for runs in self.grants.values() for first, n_used in runs
                for extent in range(first, first + n_used)}
        begin = max((first + n_used for first, n_used in self.grants.get(channel, [])),
                    default=0)
        return next(first for first in [*range(begin, RIGHT["n_extents"]), *range(begin)]
                    if not used & set(range(first, first + n)))

    def grant(self, channel, n):
        first = 0 if self.lie == "twice" else self.find_free(channel, n)
        self.own(channel, first, n, 1 + channel)
        return first

    def open(self, channel):
        entry = TABLE + channel * ENTRY
        pid, uid = struct.unpack_from("<II", self.memory, entry + 80)
        name = self.memory[entry + 128:entry + 144].split(b"\0")[0].decode(errors="replace")
        first = self.grant(channel, GRANT)
        area = EXTENT + channel * AREA
        if self.lie == "area":
            area += AREA
        if self.lie == "beyond":
            first = RIGHT["n_extents"] - 1
        struct.pack_into("<IIQIIQII", self.memory, entry + 192, VERSION, 13000, 0, 0, 77,
                         area, first, GRANT)
        # The guest may have given up meanwhile. It exchanges states atomically, which
        # Python cannot: the time between is as short as can be.
        if self.state(channel) != OPENING:
            return
        self.set_state(channel, OPEN)
        self.say("open", channel, "pid", pid, "uid", uid, name)

    def close(self, channel):
        for first, n in self.grants.pop(channel, []):
            self.memory[OWNERS + first:OWNERS + first + n] = bytes(n)
        entry = TABLE + channel * ENTRY
        self.memory[entry + 4:entry + ENTRY] = bytes(ENTRY - 4)
        self.set_state(channel, FREE)
        self.say("closed", channel)

    def word(self, place):
        return struct.unpack_from("<I", self.memory, place)[0]

    def look(self, interrupt):
        """Answers doorbell 0."""
        n_requests = self.memory[REQUESTS:REQUESTS + 4]
        is_leaving = self.word(LEAVING)
        if is_leaving and self.slow:
            time.sleep(3)
        changed = self.scan()
        if changed and not is_leaving or is_leaving and self.slow:
            os.eventfd_write(interrupt, 1)
        self.memory[SERVED:SERVED + 4] = n_requests
        if is_leaving:
            self.say("left")

    def scan(self):
        """Returns the channels that have changed."""
        changed = []
        for channel in range(N_CHANNELS):
            step = {OPENING: self.open, CLOSING: self.close}.get(self.state(channel))
            if step:
                step(channel)
                changed.append(channel)
        return changed

    def ring(self, vector):
        self.say("ring", vector - 1)
        if self.lie == "generation" and not self.has_lied:
            self.has_lied = True
            self.memory[TABLE:TABLE + N_CHANNELS * ENTRY] = bytes(N_CHANNELS * ENTRY)
            self.memory[OWNERS:OWNERS + RIGHT["n_extents"]] = bytes(RIGHT["n_extents"])
            self.grants = {}
            self.put("generation", 2)
            self.say("afresh")
        elif vector - 1 in self.grants:
            if self.n_owned(vector - 1) < GRANTS_MAX:
                self.grant(vector - 1, 1)
            self.add_one(vector - 1)

    def add_one(self, channel):
        """Changes the sequence of the first reply slot."""
        place = EXTENT + channel * AREA + SLOTS
        word, = struct.unpack("<I", os.pread(self.fd, 4, place))
        os.pwrite(self.fd, struct.pack("<I", (word + 1) % (1 << 32)), place)

    def make_noise(self, noise):
        """All but what the driver has read already, and the generation."""
        for _ in range(64):
            place = noise.choice((noise.randrange(80, 192), noise.randrange(
                TABLE, TABLE + N_CHANNELS * ENTRY), noise.randrange(OWNERS, OWNERS + 256)))
            self.memory[place] = noise.choice((0, 1, 2, 3, 5, 6, 255, noise.randrange(256)))


def answer(host, interrupts, vectors):
    for vector in vectors:
        host.ring(vector)
        os.eventfd_write(interrupts[vector], 1)


def serve(host, connection, doorbells, interrupts):
    poll, noise = select.poll(), random.Random(1)

    def release(_signo, _frame):
        held, host.held = host.held, None
        answer(host, interrupts, held or ())

    signal.signal(signal.SIGUSR1, release)
    poll.register(connection, select.POLLIN)
    for fd in doorbells:
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll(1 if host.lie == "noise" else None):
            if fd == connection.fileno():
                # What the machine did just before its end.
                host.scan()
                return
            os.eventfd_read(fd)
            vector = doorbells.index(fd)
            if vector and host.held is not None:
                host.held.append(vector)
            elif vector:
                answer(host, interrupts, [vector])
            else:
                host.look(interrupts[0])
        if host.lie == "noise" and host.grants:
            host.make_noise(noise)
            os.eventfd_write(interrupts[noise.randrange(9)], 1)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("socket")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--lie")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--hold", action="store_true")
    options = parser.parse_args()
    fields = dict(RIGHT)
    for word in options.set:
        name, _, value = word.partition("=")
        fields[name] = int(value, 0)
    host = Host(fields, options)
    doorbells, interrupts = ([os.eventfd(0) for _ in range(VECTORS)] for _ in range(2))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(options.socket)
        listener.listen(1)
        connection, _ = listener.accept()
    with connection:
        SERVER.greet(connection, host.fd, doorbells, interrupts)
        serve(host, connection, doorbells, interrupts)


if __name__ == "__main__":
    main()
