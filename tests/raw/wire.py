# SPDX-License-Identifier: Apache-2.0
"""The wire protocol spoken from Python, written from docs/protocol.md.

Nothing of the C code is used: a disagreement between this file, that page and the
C side is a bug in one of them. Call ids and field numbers are read from the API
description, as a client in another language would do.
"""

import array
import ctypes
import ctypes.util
import mmap
import os
import socket
import struct
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

MAGIC = 0x314D485355504756
PROTOCOL_VERSION = 3
PROTOCOL_MINOR = 1
FEATURE_UNKNOWN_CALLS = 1
PAGE = 4096
TABLE_OFF, ENTRY_SIZE = 4096, 256
RING_OFF, RING_SIZE = 256 << 10, 256 << 10
WORDS_OFF, WORD_SIZE = 512 << 10, 64
SLOTS_OFF, SLOT_SIZE = 1 << 20, 2048
EXTENT_SIZE = 2 << 20
WINDOWS = ((0x1000_0000_0000, 0x4000_0000_0000), (0x5500_0000_0000, 0x50_0000_0000))
FREE, CLAIMED, OPENING, OPEN, REFUSED, DEAD, CLOSING = range(7)
REASON_VERSION, REASON_WINDOW, REASON_PROTOCOL, REASON_WORKER_DIED = 1, 2, 6, 7
FRAME_REPLY = 1
PRIMARY_CONTEXT_INDEX, FIRST_GENERATION = 0, 1


class Api:
    """Ids, field numbers, and handles and inputs of the API description."""

    def __init__(self, folder):
        self.ids, self.fields, self.fixed, self.inputs = {}, {}, {}, {}
        # All but nvml-*.xml.
        paths = sorted(Path(folder).glob("[!n]*.xml"))
        roots = [ElementTree.parse(path).getroot() for path in paths]
        # Types that travel in eight bytes: handles, addresses, and their other names.
        types = {t.get("name") for r in roots for t in r.iter("handle")}
        types |= {t.get("name") for r in roots for t in r.iter("scalar") if t.get("wire")}
        types |= {t.get("name") for r in roots for t in r.iter("alias")
                  if t.get("type") in types}
        for root in roots:
            for call in root.iter("call"):
                self._add(call, types)

    def _add(self, call, fixed_types):
        symbol = call.get("symbol", call.get("name"))
        self.ids[symbol] = int(call.get("id"))
        fields, position, extra = {}, 0, 100
        for child in call:
            if child.tag in ("in", "out", "inout"):
                fields[child.get("name")] = position + 2
                position += 1
            elif child.tag.startswith("extra"):
                fields[child.get("name")] = extra
                extra += 1
        self.fields[symbol] = fields
        if call.get("reply") in ("sync", "async"):
            self.inputs[symbol] = [
                child.get("name") for child in call
                if child.tag in ("in", "inout", "extra") and child.get("wire") != "no"
            ]
        self.fixed[symbol] = {
            child.get("name") for child in call
            if child.get("type") in fixed_types
            or child.get("wire") in ("fixed64", "address")
        }


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value, fixed=False):
    """One protobuf field: bytes as length-delimited, an int as varint or eight bytes."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if fixed:
        return varint(number << 3 | 1) + struct.pack("<Q", value & (1 << 64) - 1)
    return varint(number << 3) + varint(value)


def parse(message):
    """Returns {field number: value} of a packed message (the last value wins)."""
    fields, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            fields[key >> 3] = number()
        elif key & 7 == 2:
            size = number()
            fields[key >> 3] = bytes(message[at : at + size])
            at += size
        elif key & 7 == 1:
            fields[key >> 3] = struct.unpack_from("<Q", message, at)[0]
            at += 8
        elif key & 7 == 5:
            fields[key >> 3] = struct.unpack_from("<I", message, at)[0]
            at += 4
        else:
            raise ValueError(f"wire type {key & 7}")
    return fields


class Dead(Exception):
    """The channel is no longer open; carries the reason."""


class Channel:
    """One channel over the socket transport."""

    index, entry, windows = 0, TABLE_OFF, WINDOWS

    def __init__(self, api, path, version=PROTOCOL_VERSION, features=0, minor=0):
        self.api = api
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(path))
        greeting, fds = self._receive_greeting()
        magic, self.host_version, n_fds = struct.unpack("<QII", greeting)
        assert magic == MAGIC and n_fds == len(fds) == 3
        self.fds = fds
        size = os.fstat(fds[0]).st_size
        self.memory = mmap.mmap(fds[0], size)
        self.view = memoryview(self.memory)
        self.tail, self.sequences, self.shm_size = 0, {}, size
        self._open(version, features, minor)

    def _receive_greeting(self):
        fds = array.array("i")
        data, ancillary, _, _ = self.socket.recvmsg(16, socket.CMSG_SPACE(3 * 4))
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload)
        return data, list(fds)

    def u32(self, offset):
        return ctypes.c_uint32.from_buffer(self.memory, offset).value

    def u64(self, offset):
        return ctypes.c_uint64.from_buffer(self.memory, offset).value

    def put(self, layout, offset, *values):
        struct.pack_into("<" + layout, self.memory, offset, *values)

    @property
    def state(self):
        return self.u32(self.entry)

    @state.setter
    def state(self, value):
        # One store: struct clears the number first, and the host would see FREE.
        ctypes.c_uint32.from_buffer(self.memory, self.entry).value = value

    @property
    def reason(self):
        return self.u32(self.entry + 192 + 16)

    def _open(self, version, features, minor=0):
        entry = self.entry
        assert self.state == FREE
        self.state = CLAIMED
        self.put("IIQIIQ", entry + 64, version, 13000, features, os.getpid(), os.getuid(), 1)
        self.put("16s", entry + 128, b"raw test")
        self.put("I", entry + 152, minor)
        for n_requests, window in enumerate(self.windows, 1):
            self.window_base, self.window_size = window
            self.put("QQ", entry + 64 + 48, *window)
            self.state = OPENING
            self.put("I", 128 + 16, n_requests)
            self.ring_doorbell(0)
            self.wait(lambda: self.state in (OPEN, REFUSED), "the host to answer")
            if self.state == OPEN or self.reason != REASON_WINDOW:
                break
        self.area = self.u64(entry + 192 + 24)
        self.first_extent, self.n_extents = struct.unpack_from("<II", self.memory, entry + 224)
        self.extents_off = self.u64(32)

    def wait(self, done, what, seconds=60):
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, f"waited {seconds} s for {what}"
            time.sleep(0.0005)

    def ring_doorbell(self, vector):
        os.write(self.fds[1 + vector], struct.pack("<Q", 1))

    def arena(self, offset=0):
        """The address of a byte of the channel's own arena."""
        return self.window_base + self.extents_off + self.first_extent * EXTENT_SIZE + offset

    def arena_bytes(self, offset, size):
        start = self.arena(offset) - self.window_base
        return self.view[start : start + size]

    def message(self, symbol, **values):
        fields, fixed = self.api.fields[symbol], self.api.fixed[symbol]
        return b"".join(field(fields[name], value, name in fixed)
                        for name, value in values.items())

    def write_ring(self, data):
        """Puts bytes at the tail, over the end of the ring if need be, and publishes."""
        ring = self.area + RING_OFF
        for i, byte in enumerate(data):
            self.view[ring + (self.tail + i) % RING_SIZE] = byte
        self.tail += len(data)
        self.publish(self.tail)

    def publish(self, tail):
        # One store: struct writes byte by byte, and the host would see half a number.
        ctypes.c_uint64.from_buffer(self.memory, self.area).value = tail
        self.ring_doorbell(1 + self.index)

    def frame(self, call, body=b"", flags=FRAME_REPLY, lane=0, sequence=0, size=None):
        size = 16 + len(body) if size is None else size
        data = struct.pack("<IHHII", size, call, flags, lane, sequence) + body
        return data + bytes(-len(data) % 16)

    def submit(self, call, body=b"", lane=0, reply=True):
        """Submits a well-formed frame. Returns its sequence."""
        sequence = self.sequences[lane] = self.sequences.get(lane, 0) + 1
        data = self.frame(call, body, FRAME_REPLY if reply else 0, lane, sequence)
        rest = RING_SIZE - self.tail % RING_SIZE
        if len(data) > rest:
            self.write_ring(struct.pack("<IHHII", rest, 0, 0, 0, 0) + bytes(rest - 16))
        self.write_ring(data)
        return sequence

    def reply(self, lane=0, sequence=None):
        """Waits for a reply. Returns its fields; raises Dead when the channel dies."""
        slot = self.area + SLOTS_OFF + lane * SLOT_SIZE
        sequence = self.sequences[lane] if sequence is None else sequence
        self.wait(lambda: self.u32(slot) == sequence or self.state != OPEN, "a reply")
        if self.u32(slot) != sequence:
            raise Dead(self.reason)
        size = self.u32(slot + 4)
        return parse(self.memory[slot + 16 : slot + 16 + size])

    def call(self, symbol, lane=0, **values):
        """One call with a reply. Returns (result, {parameter: value})."""
        self.submit(self.api.ids[symbol], self.message(symbol, **values), lane)
        fields = self.reply(lane)
        names = {number: name for name, number in self.api.fields[symbol].items()}
        result = fields.pop(1, 0)
        return result, {names.get(number, number): value for number, value in fields.items()}

    def close(self):
        self.view.release()
        self.memory.close()
        self.socket.close()
        for fd in self.fds:
            os.close(fd)
