# SPDX-License-Identifier: Apache-2.0
"""Calls of the driver of tests/foreign that fail, and how much memory its device has."""

import ctypes
import struct

CALLS = ("create", "map", "access", "unmap", "release", "copy_out", "copy_in", "array")
CALL = struct.Struct("4I")
MEMORY = struct.Struct("2Q")
MEMORY_AT = CALL.size * len(CALLS)


IPC_PRIVATE, IPC_RMID = 0, 0
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p


class Failing:
    """The segment that a driver attaches whose environment has its number in
    VGPU_FOREIGN_FAILING, see tests/foreign/failing.c."""

    def __init__(self):
        size = MEMORY_AT + MEMORY.size
        self.number = libc.shmget(IPC_PRIVATE, size, 0o666)
        assert self.number >= 0, ctypes.get_errno()
        self.address = ctypes.c_void_p(libc.shmat(self.number, None, 0))
        self.map = (ctypes.c_char * size).from_address(self.address.value)

    def close(self):
        """It is gone with the last process that has it."""
        del self.map
        libc.shmdt(self.address)
        libc.shmctl(self.number, IPC_RMID, None)

    def _at(self, call):
        return CALL.size * CALLS.index(call)

    def fail(self, call, n=1, good=0, result=999):
        """After so many good calls, n of them fail."""
        _, _, _, n_so_far = CALL.unpack_from(self.map, self._at(call))
        CALL.pack_into(self.map, self._at(call), good, 0, result, n_so_far)
        struct.pack_into("I", self.map, self._at(call) + 4, n)

    def end(self):
        """None fails any more."""
        for call in CALLS:
            self.fail(call, 0)

    def left(self, call):
        """How many have still to fail."""
        return CALL.unpack_from(self.map, self._at(call))[1]

    def n_calls(self, call):
        return CALL.unpack_from(self.map, self._at(call))[3]

    def set_memory(self, size):
        struct.pack_into("Q", self.map, MEMORY_AT, size)

    def used(self):
        return MEMORY.unpack_from(self.map, MEMORY_AT)[1]
