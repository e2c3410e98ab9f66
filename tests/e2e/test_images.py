#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code is sent once: the host counts the bytes that each process sends.

    test_images.py BUILD PROGRAM LIBRARY PTX
"""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import proc  # noqa: E402
from host import Host  # noqa: E402
from through import sessions  # noqa: E402

PTX, ELF = 1, 2
NAMES = "images_sent", "images_found", "image_bytes"


def padded(size):
    """The bytes that the host adds to each container (worker/code/image.h)."""
    return (size + 64 + 63) // 64 * 64


def entry(kind, architecture, payload):
    """An entry of a fat binary that is not compressed."""
    payload += b"\0" * (-len(payload) % 8)
    head = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(payload), 0, 0,
                       0, 7, architecture, 0, 0, 0x11, 0, 0)
    assert len(head) == 64
    return head + payload


def container(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


# Files that changed recently are not cached (guest-shim/src/memory/backing.c). The clock of
# most programs here is ahead, so their files are old; the clock of the others is behind the
# files, which are not cached either, however long the programs take.
LATER, NOW = "10", "-1000"


class Runs:
    """Programs on one host, with the cache of digests in one folder."""

    def __init__(self, build, program, host, cache):
        self.build, self.program, self.host = build, program, host
        self.environment = dict(os.environ, VGPU_SOCKET=str(host.socket))
        self.environment["LD_LIBRARY_PATH"] = os.path.join(build, "guest-shim")
        self.environment["XDG_RUNTIME_DIR"] = str(cache)
        self.environment["AHEAD_S"] = LATER
        self.environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        self.n = 0

    def start(self, *arguments, **variables):
        return subprocess.Popen([self.program, *map(str, arguments)],
                                env=dict(self.environment, **variables),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def counts(self):
        """The counts of the host for the process that ended last."""
        self.n += 1
        self.host.wait_for(r"session ended", self.n)
        book = sessions(self.host.text())[self.n - 1]
        return tuple(int(book[name]) for name in NAMES)

    def run(self, *arguments, **variables):
        child = self.start(*arguments, **variables)
        child.communicate("")
        assert child.returncode == 0, (arguments, child.returncode, self.host.text())
        return self.counts()

    def expect(self, expected, *arguments, **variables):
        counts = self.run(*arguments, **variables)
        assert counts == expected, f"{arguments}: {dict(zip(NAMES, counts))}, not {expected}"


FOUND = 0, 1, 0


def check_sources(runs, files, ptx):
    """A second process sends nothing if its code is in a file, however it is loaded."""
    text = padded(len(ptx) + 1)
    runs.expect((1, 0, text), "self")
    runs.expect(FOUND, "self")
    for where in "file", "library-file":
        runs.expect((1, 0, text), where, files[where])
        runs.expect(FOUND, where, files[where])
    runs.expect((1, 0, text), "library", files["library"])
    runs.expect(FOUND, "library", files["library"])
    # The same bytes from another place are sent, and the host keeps them once.
    runs.expect((1, 0, text), "map", files["ptx"])
    runs.expect(FOUND, "map", files["ptx"])
    for _ in range(2):
        runs.expect((1, 0, text), "copy", files["ptx"])


def check_fatbin(runs, files, ptx):
    """Only what the device, of 8.6, can use is sent."""
    usable = 16 + len(entry(PTX, 70, ptx + b"\0")) + len(entry(ELF, 80, bytes(1000)))
    assert os.stat(files["fatbin"]).st_size > 3 << 20
    runs.expect((1, 0, padded(usable)), "map", files["fatbin"])
    runs.expect(FOUND, "map", files["fatbin"])
    runs.expect((1, 0, padded(usable)), "copy", files["fatbin"])


CHANGED = ("map", "changed"), ("file", "changed-file")


def check_changes(runs, files, text):
    """A file that is changed in place is another one."""
    for where, name in CHANGED:
        runs.expect((1, 0, text), where, files[name])
        runs.expect(FOUND, where, files[name])
        bytes_before = files[name].read_bytes()
        with open(files[name], "r+b") as f:
            f.seek(max(bytes_before.find(b"//"), 0))
            f.write(b"/")
        assert os.stat(files[name]).st_size == len(bytes_before)
        # It has changed recently, so it is not cached.
        for _ in range(2):
            runs.expect((1, 0, text), where, files[name], AHEAD_S=NOW)
        # Some time later it is cached.
        runs.expect((1, 0, text), where, files[name])
        runs.expect(FOUND, where, files[name])


def check_memory(runs, cache, text):
    """With an invalid file of digests programs run and send their code."""
    path = cache / "vgpu/images"
    whole = path.read_bytes()
    path.write_bytes(os.urandom(len(whole)))
    runs.expect((1, 0, text), "self")
    runs.expect(FOUND, "self")
    path.write_bytes(b"")
    runs.expect((1, 0, text), "self")
    runs.expect(FOUND, "self", VGPU_LOG="debug")
    for value in "0", "no":
        runs.expect((1, 0, text), "self", VGPU_IMAGE_CACHE=value)
    path.chmod(0o666)
    runs.expect((1, 0, text), "self")
    path.unlink()
    path.symlink_to("/dev/null")
    for _ in range(2):
        runs.expect((1, 0, text), "self")
    shutil.rmtree(cache / "vgpu")
    (cache / "vgpu").write_text("no folder")
    for _ in range(2):
        runs.expect((1, 0, text), "self")
    (cache / "vgpu").unlink()
    runs.expect((1, 0, text), "self", VGPU_IMAGE_CACHE="no")
    assert not (cache / "vgpu").exists()
    runs.expect((1, 0, text), "self")
    runs.expect(FOUND, "self")


def images_of(pid):
    """Descriptors and mappings of images that a process has."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as f:
        texts = [*dict(proc.descriptors(pid)).values(), *f.read().splitlines()]
    return sum("vgpu-image" in text for text in texts)


def wait_for_images(pids, expected):
    """vgpud logs the end of a session before it has released its resources."""
    if os.geteuid():
        print("skipped: only root can see what vgpud holds")
        return
    end = time.monotonic() + 60
    while (found := [images_of(pid) for pid in pids]) != expected:
        assert time.monotonic() < end, f"{found} images in vgpud, not {expected}"
        time.sleep(0.01)


N_SOAKERS, N_LOADS = 10, 200
# Text, and the part of the fat binary: all other images are equal to one of them.
N_IMAGES = 2


def check_soak(runs, files):
    """Processes that load the same code repeatedly send it once, without leaks in their
    workers or in vgpud."""
    keepers = runs.host.process.pid, proc.broker_of(runs.host)
    runs.expect((1, 0, padded(os.stat(files["soaked"]).st_size)), "map", files["soaked"])
    # Each image that was sent until now has a descriptor in both.
    wait_for_images(keepers, [N_IMAGES] * 2)
    children = [runs.start(where, files["soaked"], N_LOADS)
                for where in ("map", "library-map") * (N_SOAKERS // 2)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    opened = re.findall(r"session opened .* worker=(\d+)", runs.host.text())[-N_SOAKERS:]
    n_left = [images_of(worker) for worker in opened]
    for child in children:
        child.communicate("\n")
        assert child.returncode == 0
    for _ in children:
        counts = runs.counts()
        assert counts == (0, N_LOADS, 0), counts
    # The first load of each stays for its lifetime; the one of a library is mapped.
    assert max(n_left) <= 1, f"{n_left} images are left in the workers"
    wait_for_images(keepers, [N_IMAGES] * 2)


def check_broker(runs):
    """Stored images outlive the broker, and are in vgpud once."""
    runs.expect(FOUND, "self")
    os.kill(proc.broker_of(runs.host), signal.SIGKILL)
    runs.host.wait_for("the broker was ended by signal 9")
    runs.expect(FOUND, "self")
    wait_for_images([runs.host.process.pid], [N_IMAGES])


def make_files(folder, library, ptx):
    texts = ("ptx", "changed", "changed-file", "soaked", "file", "library-file")
    files = {name: folder / name for name in (*texts, "fatbin", "library")}
    for name in texts:
        files[name].write_bytes(ptx + b"\0")
    files["fatbin"].write_bytes(container(
        entry(ELF, 75, bytes(1 << 20)), entry(ELF, 80, bytes(1000)),
        entry(ELF, 89, bytes(1 << 20)), entry(PTX, 70, ptx + b"\0"),
        entry(ELF, 120, bytes(1 << 20)), entry(PTX, 120, b"not looked at\0")))
    shutil.copy(library, files["library"])
    return files


def main():
    build, program, library, ptx_path = sys.argv[1:]
    ptx = Path(ptx_path).read_bytes()
    text = padded(len(ptx) + 1)
    with Host(build, extra="softgpu-cc = 8.6") as host:
        folder = Path(host.folder.name)
        cache = folder / "cache"
        cache.mkdir()
        files = make_files(folder, library, ptx)
        runs = Runs(build, program, host, cache)
        check_sources(runs, files, ptx)
        check_fatbin(runs, files, ptx)
        check_changes(runs, files, text)
        check_soak(runs, files)
        check_memory(runs, cache, text)
        check_broker(runs)
        assert not (folder / "vgpu").exists()
        remembered = (cache / "vgpu/images").read_bytes()
    # Another host does not have the image: it replies so, and gets the code. To vgpuctl
    # that reply is no error of the program.
    with Host(build, prepare=lambda folder: f"ctl-socket = {folder}/control\n") as host:
        cache = Path(host.folder.name) / "cache"
        (cache / "vgpu").mkdir(parents=True)
        (cache / "vgpu").chmod(0o700)
        (cache / "vgpu/images").write_bytes(remembered)
        (cache / "vgpu/images").chmod(0o600)
        runs = Runs(build, program, host, cache)
        child = runs.start("self", "-", 1)
        assert child.stdout.readline() == "ready\n"
        shown = subprocess.run(
            [Path(build) / "host-daemon/ctl/vgpuctl", "--socket",
             Path(host.folder.name) / "control", "show", "raw", "--json"],
            check=True, timeout=60, stdout=subprocess.PIPE).stdout
        error = json.loads(shown)["processes"][0]["last_error"]
        assert error is None, error
        child.communicate("\n")
        assert runs.counts() == (1, 0, text)
        runs.expect(FOUND, "self")
    return 0


if __name__ == "__main__":
    sys.exit(main())
