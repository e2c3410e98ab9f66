# SPDX-License-Identifier: Apache-2.0
"""run-guest's virtual machine: QEMU's command line, and the data between the two.

Four serial ports, each with one purpose (see guest-init): the kernel's console, the
command's standard output, its standard error, and the control port to guest-init. The
last one is the only one in both directions, and carries standard input: a number, a
newline, so many bytes; then guest-init replies MORE, and 0 is the end of the input. Only
one piece is in flight at a time, because the buffer of a port has no room for two.
"""

import errno
import os
import re
import select
import signal
import socket
import subprocess
from pathlib import Path

import tool

# The number of MSI-X vectors, agreed with vgpud: it sends this many descriptors.
VECTORS = 32
# Each port's number and interrupt line. By default ports share lines, and a shared edge
# is lost.
CONSOLE, OUT, ERR, CONTROL = range(4)
INTERRUPTS = {CONSOLE: 4, OUT: 3, ERR: 5, CONTROL: 7}
PIECE = 4000  # less than the guest's terminal driver has room for
STOP_SECONDS = 5


class TimeLimit(Exception):
    """The time limit of the guest has expired."""


def raise_time_limit(_signo, _frame):
    raise TimeLimit


def write_all(fd, data):
    """Blocks while the reader is slow: the guest waits, too."""
    while data:
        data = data[os.write(fd, data):]


class Machine:
    """One QEMU, from its command line to its end."""

    def __init__(self, folder, qemu, accel, cpus, append=()):
        self.folder = Path(folder)
        self.control, theirs = socket.socketpair()
        self.control_fd = theirs.detach()
        self.process, self.said, self.streams = None, b"", {}
        self.started, self.free, self.input_ended = False, False, False
        # no_timer_check: on a busy host the emulated timer seems broken while the guest
        # boots. If a guest can have only one processor, QEMU's TCG omits its memory
        # barriers, although the host runs concurrently: so maxcpus is 2.
        smp = f"{cpus},maxcpus=2" if accel == "tcg" and cpus == 1 else str(cpus)
        self.line = [
            qemu, "-machine", "q35", "-accel", accel,
            "-cpu", "host" if accel == "kvm" else "max", "-smp", smp,
            "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none",
            "-append", " ".join(["console=ttyS0 quiet panic=-1 no_timer_check", *append]),
        ]
        for port, interrupt in INTERRUPTS.items():
            backend = f"file,id=port{port},path={self.folder}/port{port}"
            if port == CONTROL:
                backend = f"socket,id=port{port},fd={self.control_fd}"
            self.line += ["-chardev", backend, "-device",
                          f"isa-serial,index={port},irq={interrupt},chardev=port{port}"]

    def boot(self, kernel, initrd, mib):
        self.line += ["-kernel", str(kernel), "-initrd", str(initrd), "-m", f"{mib}M"]

    def attach_socket(self, path):
        self.line += ["-chardev", f"socket,id=vgpu,path={path}", "-device",
                      f"ivshmem-doorbell,chardev=vgpu,vectors={VECTORS}"]

    def attach_plain(self, path, size):
        self.line += [
            "-object", f"memory-backend-file,id=vgpu,share=on,size={size},mem-path={path}",
            "-device", "ivshmem-plain,memdev=vgpu"]

    # Data between the two

    def start(self):
        for port, fd in ((OUT, 1), (ERR, 2)):
            path = self.folder / f"port{port}"
            os.mkfifo(path)
            self.streams[os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)] = fd
        with open(self.folder / "qemu.log", "wb") as log:
            try:
                self.process = subprocess.Popen(
                    self.line, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    pass_fds=[self.control_fd],
                    preexec_fn=tool.die_with_parent(signal.SIGKILL))
            except OSError as error:
                raise tool.Failure(f"{self.line[0]}: {error.strerror}") from None
        os.close(self.control_fd)
        self.control.setblocking(False)

    def run(self, seconds):
        """Returns QEMU's exit status; raises TimeLimit."""
        signal.signal(signal.SIGALRM, raise_time_limit)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            self.start()
            self.pass_all()
            return self.process.wait()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            tool.shield_signals()
            self.stop()

    def pass_all(self):
        """Until QEMU has ended and all that it wrote has been passed on."""
        ended = os.pidfd_open(self.process.pid)
        watched = {**dict.fromkeys(self.streams, self.pass_output),
                   self.control.fileno(): self.hear}
        while watched or self.process.poll() is None:
            poll = select.poll()
            for fd in [*watched, ended]:
                poll.register(fd, select.POLLIN)
            if self.free and not self.input_ended:
                poll.register(0, select.POLLIN)
            ready = dict(poll.poll())
            for fd in watched.keys() & ready:
                if not watched[fd](fd):
                    del watched[fd]
            if 0 in ready:
                self.send_input()
            if ended in ready and not watched.keys() & ready:
                # A stream that QEMU never opened has no end.
                break
        os.close(ended)

    def pass_output(self, fd):
        """Returns whether there may be more."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        try:
            write_all(self.streams[fd], data)
        except BrokenPipeError:
            raise
        except OSError as error:
            name = "output" if self.streams[fd] == 1 else "error"
            raise tool.Failure(
                f"standard {name} cannot be written: {error.strerror}") from None
        return bool(data)

    def hear(self, _fd):
        """Reads messages of guest-init. Returns whether there may be more."""
        try:
            data = self.control.recv(4096)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        *lines, rest = (self.unfinished() + data).split(b"\n")
        self.said += data
        for line in lines:
            # A guest that reboots continues at the same position of the input.
            if line in (b"STARTED", b"MORE"):
                self.free = True
                if line == b"STARTED" and self.input_ended:
                    self.send_piece(b"")
        return bool(data)

    def unfinished(self):
        return self.said.rpartition(b"\n")[2]

    def send_input(self):
        try:
            data = os.read(0, PIECE)
        except OSError as error:
            # Closed, or a terminal of which this is a background process.
            data = b""
            if error.errno not in (errno.EBADF, errno.EIO, errno.EISDIR):
                raise
        self.input_ended = not data
        self.send_piece(data)

    def send_piece(self, data):
        self.free = False
        try:
            self.control.sendall(b"%d\n%b" % (len(data), data))
        except ConnectionError:
            pass  # run() notices the end of QEMU

    def stop(self):
        if self.process and self.process.poll() is None:
            tool.end_process(self.process, STOP_SECONDS)

    # Results

    def command_status(self):
        """The command's exit status, None if the guest did not report it."""
        found = re.findall(rb"^RC=(\d+)\r?$", self.said, re.M)
        return int(found[-1]) if found else None

    def last_words(self):
        """QEMU's own messages and the end of the kernel's, as lines."""
        words = (self.folder / "qemu.log").read_text(errors="replace").splitlines()
        console = self.folder / f"port{CONSOLE}"
        if console.exists():
            text = console.read_bytes()[-4096:].decode(errors="replace")
            words += [f"guest: {line}" for line in
                      text.replace("\r", "").splitlines()[-15:]]
        return words
