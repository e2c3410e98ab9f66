# SPDX-License-Identifier: Apache-2.0
"""A private vgpud for tests in Python, and what its processes use."""

import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path


def cpu_ticks(pid):
    """What a process has used of the processors so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def ticks_at_rest(pid, seconds, most):
    """What it uses in so many seconds without work, when it has come to rest: to at most
    so many ticks, or never."""
    used = 0
    for _ in range(10):
        before = cpu_ticks(pid)
        time.sleep(seconds)
        used = cpu_ticks(pid) - before
        if used <= most:
            break
    return used


class Host:
    """Starts vgpud on a socket of its own; `with Host(build, driver) as host:`."""

    def __init__(
        self, build, driver="soft", extra="", environment=None, vgpud=None, vm="", user=None,
        n_files=None, prepare=None
    ):
        self.build, self.driver, self.extra, self.vm = Path(build), driver, extra, vm
        self.vgpud = vgpud or self.build / "host-daemon/main/vgpud"
        self.environment = dict(os.environ, **(environment or {}))
        # Root's tests can have it run as another user, which owns its folder then.
        self.user, self.n_files = user, n_files
        # Puts more into the folder, and returns lines for [vgpud].
        self.prepare = prepare

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="vgpu-raw-")
        folder = Path(self.folder.name)
        # What is run against it remembers nothing outside of the test.
        os.environ["XDG_RUNTIME_DIR"] = self.folder.name
        self.socket, self.log = folder / "socket", folder / "log"
        config = folder / "vgpud.conf"
        if self.prepare:
            self.extra += self.prepare(folder)
        # What tests do with NVIDIA's driver without root is their own affair.
        if "allow-unprivileged" not in self.extra:
            self.extra += "\nallow-unprivileged = yes"
        config.write_text(
            f"[vgpud]\ndriver = {self.driver}\nlog-file = {self.log}\n"
            f"{self.extra}\n[vm raw]\ntransport = socket\nsocket = {self.socket}\nsize = 256M\n"
            f"{self.vm}\n"
        )
        if self.user:
            os.chown(folder, self.user, self.user)

        def limit_files():
            if self.n_files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (self.n_files, self.n_files))

        self.process = subprocess.Popen(
            [self.vgpud, "--config", config], env=self.environment,
            user=self.user, group=self.user, extra_groups=[] if self.user else None,
            preexec_fn=limit_files)
        self.wait_for(r"vgpud ready")
        return self

    def text(self):
        return self.log.read_text() if self.log.exists() else ""

    def wait_for(self, pattern, count=1, seconds=60):
        """Waits until the log has that many matches. Returns the last one."""
        end = time.monotonic() + seconds
        while True:
            found = list(re.finditer(pattern, self.text()))
            if len(found) >= count:
                return found[-1]
            assert self.process.poll() is None, f"vgpud ended:\n{self.text()}"
            assert time.monotonic() < end, f"no {pattern!r} in the log:\n{self.text()}"
            time.sleep(0.01)

    def reload(self, *changes):
        """Replaces each (line, by another line) in the configuration, and has it read."""
        config = Path(self.folder.name) / "vgpud.conf"
        text = config.read_text()
        for old, new in changes:
            assert f"\n{old}\n" in text, text
            text = text.replace(f"\n{old}\n", f"\n{new}\n")
        n_before = len(re.findall("is in force", self.text()))
        config.write_text(text)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for("is in force", n_before + 1)

    def kill_broker(self):
        """Another one is started."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as f:
            children = [int(pid) for pid in f.read().split()]
        for pid in children:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if b"vgpu-worker" not in f.read():
                    os.kill(pid, signal.SIGKILL)

    def replace(self):
        """Has the process execute vgpud's program again."""
        n_before = len(re.findall("vgpud is replaced by", self.text()))
        self.process.send_signal(signal.SIGUSR2)
        self.wait_for("vgpud is replaced by", n_before + 1)

    def alive(self, pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                return f.read().rsplit(")", 1)[1].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        left = os.path.exists(self.socket)
        text = self.text()
        self.folder.cleanup()
        assert code == 0, f"vgpud exited with {code}:\n{text}"
        assert not left, "vgpud left its socket behind"
