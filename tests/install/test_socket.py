#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl starts vgpud by its socket unit: test_socket.py BUILD SERVICE SOCKET

systemd itself need not run: systemd-socket-activate listens in its place.
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import tap  # noqa: E402

BUILD, SERVICE, SOCKET = map(Path, sys.argv[1:4])
ACTIVATE = "systemd-socket-activate"


def settings(unit):
    """Each setting with the last value that it has."""
    return dict(re.findall(r"^(\w+)=(.*)$", unit.read_text(encoding="ascii"), re.M))


def the_unit_is_valid():
    if not shutil.which("systemd-analyze"):
        raise unittest.SkipTest("systemd-analyze is not installed")
    with tempfile.TemporaryDirectory(prefix="vgpu-socket-") as folder:
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", SERVICE.read_text(), flags=re.M)
        (Path(folder) / "vgpud.service").write_text(text)
        unit = Path(folder) / "vgpud.socket"
        unit.write_text(SOCKET.read_text())
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    # It complains of units of this machine as well.
    ours = [line for line in done.stdout.splitlines() if "vgpud." in line]
    assert not ours, ours


def it_is_what_vgpud_serves():
    socket, service = settings(SOCKET), settings(SERVICE)
    assert socket["ListenSequentialPacket"] == f"/run/{service['RuntimeDirectory']}/control"
    assert socket["FileDescriptorName"] == "control" and "Accept" not in socket
    # A stop of vgpud would remove the socket's file.
    assert service["RuntimeDirectoryPreserve"] == "yes"
    for name in ("Requires", "Wants", "BindsTo", "Also", "Sockets"):
        assert name not in service, f"vgpud.service needs the socket: {name}="


class Activated:
    """systemd-socket-activate, which executes vgpud when the first client connects."""

    def __init__(self, folder, *options):
        self.folder = Path(folder)
        self.path, self.log = self.folder / "control", self.folder / "log"
        config = self.folder / "vgpud.conf"
        config.write_text(f"[vgpud]\ndriver = soft\nctl-socket = {self.path}\n"
                          f"[vm one]\ntransport = socket\nsocket = {self.folder}/one\n")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [ACTIVATE, "--seqpacket", f"--listen={self.path}", *options,
                 BUILD / "host-daemon/main/vgpud", "--config", config], stderr=log)
        self.wait(self.path.exists)

    @staticmethod
    def wait(condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, condition
            time.sleep(0.01)

    def program(self):
        return Path(f"/proc/{self.process.pid}/comm").read_text(encoding="ascii").strip()

    def has_logged(self, text):
        return text in self.log.read_text()

    def ask(self):
        done = subprocess.run([BUILD / "host-daemon/ctl/vgpuctl", "--socket", self.path, "list"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0


@contextmanager
def activated(*options):
    if not shutil.which(ACTIVATE):
        raise unittest.SkipTest(f"{ACTIVATE} is not installed")
    with tempfile.TemporaryDirectory(prefix="vgpu-socket-") as folder:
        one = Activated(folder, *options)
        try:
            yield one
        finally:
            one.process.kill()
            one.process.wait()


def a_client_starts_vgpud():
    with activated("--fdname=control") as one:
        assert one.program() != "vgpud"
        file = one.path.stat().st_ino
        one.ask()
        assert one.program() == "vgpud"
        one.ask()
        lock = Path(f"{one.path}.lock")
        assert lock.exists()
        one.stop()
        assert one.path.stat().st_ino == file and not lock.exists()


def a_socket_without_the_name_is_refused():
    with activated("--fdname=other") as one:
        client = subprocess.Popen([BUILD / "host-daemon/ctl/vgpuctl", "--socket", one.path,
                                   "list"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        one.wait(lambda: one.has_logged("vgpud ready"))
        assert one.has_logged('the socket "other", which is not vgpud\'s'), one.log.read_text()
        # Its connection ends with that socket; it may connect to the other one.
        client.wait(60)
        one.ask()
        one.stop()
        # It was vgpud's own.
        assert not one.path.exists()


if __name__ == "__main__":
    sys.exit(tap.run([("the_unit_is_valid", the_unit_is_valid),
                      ("it_is_what_vgpud_serves", it_is_what_vgpud_serves),
                      ("a_client_starts_vgpud", a_client_starts_vgpud),
                      ("a_socket_without_the_name_is_refused",
                       a_socket_without_the_name_is_refused)]))
