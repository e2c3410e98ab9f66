# SPDX-License-Identifier: Apache-2.0
"""Mounts that only this process and its children see, for tests of full disks."""

import ctypes
import os

CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
LIBC = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(LIBC, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount(source, target, kind, flags, data=None):
    call("mount", *(ctypes.c_char_p(str(text).encode() if text else None)
                    for text in (source, target, kind)), ctypes.c_ulong(flags),
         ctypes.c_char_p(data.encode() if data else None))


def find_lack():
    """Returns why nothing can be mounted here, or None. The mounts are this process's."""
    try:
        call("unshare", CLONE_NEWNS)
        mount(None, "/", None, MS_REC | MS_PRIVATE)
    except OSError as error:
        return f"mounts need root: {error}"
    return None
