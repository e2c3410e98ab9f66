# SPDX-License-Identifier: Apache-2.0
"""A private vgpud in a private folder, for the duration of a command."""

import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

import tool

READY_SECONDS = 60
STOP_SECONDS = 30


def product(name):
    """A built file; programs and libraries are in the folders of their sources."""
    for folder in ("guest-shim", "host-daemon", "scripts"):
        for path in sorted((tool.BUILD / folder).rglob(name)):
            if not path.is_dir():
                return path.absolute()
    raise tool.Failure(f"{name} is not built in {tool.BUILD} (meson setup build && "
                       "meson compile -C build)")


def make_shim_folder(folder):
    """Makes a folder with only the libraries that a program shall find."""
    folder.mkdir()
    (folder / "libcuda.so.1").symlink_to(product("libcuda.so.1"))
    (folder / "libcuda.so").symlink_to("libcuda.so.1")
    for nvml in (tool.BUILD / "guest-shim").rglob("libnvidia-ml.so.1"):
        (folder / "libnvidia-ml.so.1").symlink_to(nvml.absolute())
        (folder / "libnvidia-ml.so").symlink_to("libnvidia-ml.so.1")
        break


class Vgpud:
    """Starts it and returns when it serves; `with Vgpud(folder, driver, transport):`.

    With transport plain the VM's memory is the file vgpud.mem, which QEMU makes. vgpud has
    a separate session, so that Ctrl-C on a terminal ends the command first, then vgpud.
    Unless is_last, signals are handled again afterwards. Settings are lines for section
    [vgpud] of its configuration.
    """

    def __init__(self, folder, driver, transport, is_last=True, settings=""):
        self.is_last = is_last
        self.folder = Path(folder)
        self.socket, self.log = self.folder / "vgpud.sock", self.folder / "vgpud.log"
        place = f"socket = {self.socket}"
        if transport == "plain":
            place = f"memory = {self.folder}/vgpud.mem"
        self.config = self.folder / "vgpud.conf"
        # One user, whose own programs these guests are: NVIDIA's driver may run without
        # root, see docs/security.md.
        self.config.write_text(
            f"[vgpud]\ndriver = {driver}\nallow-unprivileged = yes\n"
            f"log-level = info\nlog-file = {self.log}\n{settings}\n"
            f"[vm private]\ntransport = {transport}\n{place}\n", encoding="utf-8")
        self.process = None

    def __enter__(self):
        program = product("vgpud")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices, \
                open(self.log, "ab") as log:
            notices.bind(str(self.folder / "notify"))
            environment = dict(os.environ, NOTIFY_SOCKET=str(self.folder / "notify"))
            self.process = subprocess.Popen(
                [program, "--config", self.config], env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=tool.die_with_parent(signal.SIGTERM))
            try:
                ready = self.wait_until_ready(notices)
            except BaseException:
                self.stop()
                raise
        if not ready:
            self.stop()
            raise tool.Failure("vgpud did not become ready", *self.text().splitlines())
        return self

    def wait_until_ready(self, notices):
        """Whether it reports READY=1, in the protocol of sd_notify(3), before it ends."""
        end = time.monotonic() + READY_SECONDS
        ended = os.pidfd_open(self.process.pid)
        try:
            while time.monotonic() < end:
                readable, _, _ = select.select(
                    [notices, ended], [], [], max(0, end - time.monotonic()))
                if notices in readable:
                    if b"READY=1" in notices.recv(4096).splitlines():
                        return True
                elif ended in readable:
                    return False
        finally:
            os.close(ended)
        return False

    def text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self):
        """Ends vgpud, which drains, so that its last lines are in the log afterwards."""
        if not self.process:
            return
        if self.is_last:
            tool.shield_signals()
        tool.end_process(self.process, STOP_SECONDS)
        self.process = None

    def __exit__(self, *_):
        self.stop()
