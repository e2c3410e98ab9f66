#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The broker dies at chosen instructions, and nothing is lost.

    death.py [--random N] [--seed S] [--jobs J] [--only POINT]... BUILD SOURCE

For each point (see dying.c) a vgpud is started whose broker is killed there, once.
Meanwhile three programs compute over the socket transport, and a VM with several channels
opens, grows and closes them, is refused a window, violates the protocol, loses a worker,
and is reset. The outcome has to be the same as without the death: right results, the right
reason for the end of each session, and at the end no leaked worker, descriptor, channel or
extent. At random points two brokers may die.
Each point is a case, in TAP on standard output; logs are on standard error.
"""

import argparse
import array
import concurrent.futures
import mmap
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parent / "lib"), str(FOLDER.parent / "raw"), str(FOLDER)]

import books  # noqa: E402
import proc  # noqa: E402
import tap  # noqa: E402
import wire  # noqa: E402
from host import Host  # noqa: E402

REASON_WORKER_DIED = 7
# Overlaps the window that each worker reserves.
TAKEN = (0xFFF_0000_0000, 0x40_0000_0000)
SECTIONS = """
[vm machine]
socket = {}
size = 256M
max-processes = 7
"""
VECTORS = 32
STEPS_MAX = 20000
# More than SETTLED_S of guest-shim/src/memory/backing.c, in whole seconds of a clock.
SETTLED_SECONDS = 4


def read_enum(path, name):
    """Numbers of an enum whose first name has the value 0."""
    text = re.sub(r"/\*.*?\*/", "", Path(path).read_text(encoding="utf-8"), flags=re.S)
    names = re.search(rf"enum {name} {{(.*?)}}", text, re.S)[1].replace(",", " ").split()
    return {name: number for number, name in enumerate(names)}


def named_points(source):
    """One point for each action of a broker that another process can observe."""
    control = read_enum(f"{source}/host-daemon/control/control.h", "control_type")
    link = read_enum(f"{source}/host-daemon/vgpud/link.h", "link_type")
    for kind in ("READY", "OPENED", "WANT", "ENDED", "FIND", "FILE", "KEEP"):
        for when in ("peeked", "before", "after"):
            yield f"control-in:{control['CONTROL_' + kind]}:{when}"
    # Also in the second session, which begins with a used ledger.
    for kind in ("OPENED", "WANT", "FIND", "FILE", "KEEP"):
        yield f"control-in:{control['CONTROL_' + kind]}:before:2"
    for kind in ("ASSIGN", "WINDOW", "GRANT", "IMAGE", "STOP"):
        for when in ("before", "after"):
            yield f"control-out:{control['CONTROL_' + kind]}:{when}"
    for kind in ("QUOTA", "VM", "VM_GONE", "WORKER", "EXITED", "SYNC"):
        yield f"link-in:{link['LINK_' + kind]}:after"
    for kind in ("IMAGE", "SPAWN", "KILL", "VM_DONE", "WORKER_DONE"):
        for when in ("before", "after"):
            yield f"link-out:{link['LINK_' + kind]}:{when}"
    # A vgpud whose first broker never gets ready does not start.
    yield f"link-out:{link['LINK_READY']}:after"
    for kind in ("punch", "futex"):
        for i in range(1, 5):
            yield from (f"{kind}:{i}:{when}" for when in ("before", "after"))


class Machine:
    """Acts as QEMU towards vgpud, with a guest whose processes are channels."""

    def __init__(self, api, path):
        self.api = api
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        assert self.number() == (0, None)
        self.number()
        _, shm = self.number()
        self.doorbells = [self.number()[1] for _ in range(VECTORS)]
        for _ in range(VECTORS):
            os.close(self.number()[1])
        self.fds = [shm, *self.doorbells]
        self.memory = mmap.mmap(shm, os.fstat(shm).st_size)
        self.view = memoryview(self.memory)

    def number(self):
        fds = array.array("i")
        data, ancillary, _, _ = self.socket.recvmsg(8, socket.CMSG_SPACE(4))
        for _, _, payload in ancillary:
            fds.frombytes(payload)
        return struct.unpack("<q", data)[0], fds[0] if fds else None

    def boot(self, name):
        self.memory[128:144] = name.ljust(16, b"\0")

    def close(self):
        self.view.release()
        self.memory.close()
        self.socket.close()
        for fd in self.fds:
            os.close(fd)


class Process(wire.Channel):
    """One channel of a machine."""

    def __init__(self, machine, index, windows=wire.WINDOWS):
        self.machine, self.api, self.index, self.windows = machine, machine.api, index, windows
        self.entry = wire.TABLE_OFF + index * wire.ENTRY_SIZE
        self.memory, self.view, self.fds = machine.memory, machine.view, machine.fds
        self.tail, self.sequences, self.shm_size = 0, {}, len(machine.memory)
        self.memory[self.entry + 96:self.entry + 112] = self.memory[128:144]
        self._open(wire.PROTOCOL_VERSION, 0)
        assert self.state == wire.OPEN, f"state {self.state}, reason {self.reason}"

    @property
    def worker(self):
        return self.u32(self.entry + 192 + 20)

    def grow(self, n_extents):
        result, out = self.call("vgpuArenaGrow", n_extents=n_extents)
        assert result == 0, result
        assert out["n_granted"] == n_extents, out
        return out.get("first_extent", 0)

    def wait_free(self):
        self.wait(lambda: self.state == wire.FREE, "a free entry")
        at = self.area + wire.SLOTS_OFF
        assert not any(self.memory[at:at + wire.SLOT_SIZE]), "a reply is left"

    def close(self):
        self.state = wire.CLOSING
        self.ring_doorbell(0)
        self.wait_free()

    def die(self, reason):
        self.wait(lambda: self.state == wire.DEAD, "the session's end")
        assert self.reason == reason, f"reason {self.reason}, not {reason}"
        self.close()


def run_machine(api, path):
    machine = Machine(api, path)
    machine.boot(b"first")
    first, second = Process(machine, 0), Process(machine, 1, (TAKEN, *wire.WINDOWS))
    assert first.grow(8) != second.grow(8)
    first.close()
    third = Process(machine, 2)
    # A tail that is no multiple of a frame's alignment.
    third.publish(8)
    third.die(wire.REASON_PROTOCOL)
    os.kill(second.worker, signal.SIGKILL)
    second.die(REASON_WORKER_DIED)
    left = [Process(machine, 0), Process(machine, 1)]
    machine.boot(b"second")
    left[0].ring_doorbell(0)
    for process in left:
        process.wait_free()
    last = Process(machine, 1)
    last.grow(16)
    last.close()
    return machine


def kinds_of_fds(pid):
    """The number of descriptors of each kind that a process has."""
    kinds = {}
    for _, link in proc.descriptors(pid):
        kind = re.sub(r"\d+|/.*/|\[|\]| \(deleted\)", "", link)
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


class Run:
    """One vgpud, whose broker dies at these points."""

    def __init__(self, options, api, points, undisturbed=None):
        self.options, self.api, self.points = options, api, points
        self.undisturbed = undisturbed
        self.build = Path(options.build).absolute()
        self.folder = tempfile.TemporaryDirectory(prefix="vgpu-death-")
        self.arms = [Path(self.folder.name) / str(i) for i in range(len(points))]
        self.path = f"{self.folder.name}/machine"
        self.log = ""

    def broker(self):
        for pid in books.children(self.host.process.pid):
            if books.comm(pid) == "vgpud-broker":
                return pid
        return None

    def settle(self):
        """Waits until only the broker and one warm worker are left."""
        end = time.monotonic() + 60
        keeper = self.host.process.pid
        while True:
            broker = self.broker()
            if broker and sum(books.comm(p) == "vgpu-worker" for p in books.children(keeper)) == 1 \
                    and len(books.children(keeper)) == 2 \
                    and len(re.findall("is warm", self.host.text())):
                return broker
            assert time.monotonic() < end, [books.comm(p) for p in books.children(keeper)]
            time.sleep(0.01)

    def start_program(self, image):
        environment = dict(
            os.environ, VGPU_SOCKET=str(self.host.socket), VGPU_LOG="error",
            LD_LIBRARY_PATH=str(self.build / "guest-shim"), XDG_RUNTIME_DIR=self.folder.name)
        environment.pop("LD_PRELOAD", None)
        return subprocess.Popen([self.build / "tests/soak/growing", str(image)],
                                env=environment, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def run_programs(self):
        for image in (1, 1, 2):
            with self.start_program(image) as program:
                try:
                    _, text = program.communicate(timeout=90)
                except subprocess.TimeoutExpired:
                    program.kill()
                    raise AssertionError("a program hangs") from None
                assert program.returncode == 0, f"a program ended with {program.returncode}: {text}"

    def work(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            machine = pool.submit(run_machine, self.api, self.path)
            self.run_programs()
            return machine.result()

    def check_log(self):
        text = self.host.text()
        wrong = [line for line in text.splitlines()
                 if (" error: " in line and "the broker was ended by signal 9" not in line)
                 or "Sanitizer" in line or "runtime error:" in line]
        assert not wrong, wrong
        opened = set(re.findall(r"session opened .*worker=(\d+)", text))
        ends = dict(re.findall(r"session ended .*worker=(\d+) reason=(\S+)", text))
        assert opened <= set(ends), f"{opened - set(ends)} did not end"
        # Three programs, and six processes of the machine.
        assert len(opened) >= 9, opened
        # The second program uses the image that the first one sent.
        sent = re.findall(r"session ended vm=raw .*images_sent=(\d+) images_found=(\d+)", text)
        # A session whose opening was interrupted is opened again.
        sent = [pair for pair in sent if pair != ("0", "0")]
        assert sorted(sent) == [("0", "1"), ("1", "0"), ("1", "0")], sent

    def wait_descriptors(self):
        """Waits until the keeper has closed descriptors of brokers and workers that died early."""
        keeper = self.host.process.pid
        end = time.monotonic() + 60
        while (kinds := kinds_of_fds(keeper)) != self.undisturbed:
            assert time.monotonic() < end, f"{kinds}, undisturbed {self.undisturbed}"
            time.sleep(0.01)

    def check_left(self, keeper_before):
        keeper = self.host.process.pid
        held = ["not looked at"]
        end = time.monotonic() + 30
        while held and time.monotonic() < end:
            time.sleep(0.01)
            held = books.held_in_guest(keeper)
        assert not held, held
        self.machine.close()
        wrong = "not looked at"
        while wrong:
            assert time.monotonic() < end, wrong
            time.sleep(0.01)
            wrong = self.compare(keeper, keeper_before)

    def compare(self, keeper, keeper_before):
        """Returns leaked and missing descriptors of keeper and broker."""
        try:
            theirs = kinds_of_fds(self.settle())
        except FileNotFoundError:
            return "the broker died just now"
        after = kinds_of_fds(keeper)
        n_images = [sum(n for kind, n in fds.items() if "image" in kind)
                    for fds in (after, theirs)]
        if n_images != [2, 2]:
            return f"images: {n_images}"
        if books.quota_in_use(keeper):
            return f"{books.quota_in_use(keeper)} bytes of device memory are counted"
        after = {kind: n for kind, n in after.items() if "image" not in kind}
        return after != keeper_before and f"{keeper_before} before, {after} after"

    def wait_settled(self):
        """Until the guest library remembers images of the program: it was just built."""
        changed = os.stat(self.build / "tests/soak/growing").st_ctime
        time.sleep(max(0, changed + SETTLED_SECONDS - time.time()))

    def count_calls(self):
        """The number of calls of a broker that does not die."""
        self(is_early=False)
        return int((Path(self.folder.name) / "calls").read_text())

    def __call__(self, is_early):
        """Returns the number of dead brokers; early ones may die while vgpud starts."""
        folder = Path(self.folder.name)
        for arm in self.arms:
            arm.touch()
        if is_early:
            (folder / "armed").touch()
        environment = {
            "LD_PRELOAD": str(self.build / "tests/broker/dying.so"),
            "VGPU_DIE": ",".join(self.points), "VGPU_DIE_FOLDER": self.folder.name,
            # In a build with sanitizers it is loaded before their library.
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
        }
        with Host(self.build, extra="log-level = debug", environment=environment,
                  vm=SECTIONS.format(self.path)) as self.host:
            try:
                self.settle()
                (folder / "armed").touch()
                if self.undisturbed:
                    self.wait_descriptors()
                else:
                    self.undisturbed = kinds_of_fds(self.host.process.pid)
                self.machine = self.work()
                self.check_left(self.undisturbed)
                self.check_log()
            finally:
                self.log = self.host.text()
        return sum(not arm.exists() for arm in self.arms)


def attempt(options, api, undisturbed, points, must_die):
    """Returns the number of dead brokers, and the reason of a failure or None."""
    run = Run(options, api, points, undisturbed)
    try:
        n_died = run(is_early=must_die)
        if must_die and n_died != len(points):
            return n_died, "no broker came by"
        return n_died, None
    except Exception as error:  # pylint: disable=broad-except
        lines = [line for line in run.log.splitlines() if " debug: " not in line]
        return 0, f"{type(error).__name__}: {error}\n" + "\n".join(lines[-40:])


def random_points(generator, n_calls):
    """One death, or two."""
    points = []
    for _ in range(generator.choice((1, 1, 2))):
        call = int(n_calls ** generator.uniform(0.2, 0.97))
        points.append(f"call:{call}:{int(STEPS_MAX ** generator.uniform(0, 1)) - 1}")
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--no-named", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append")
    parser.add_argument("build")
    parser.add_argument("source")
    options = parser.parse_args()
    api = wire.Api(os.path.join(options.source, "protocol/api"))
    seed = int(time.time()) if options.seed is None else options.seed
    generator = random.Random(seed)
    work = [([point], True) for point in named_points(options.source) if not options.no_named]
    if options.only:
        work = [(points.split(","), "call:" not in points) for points in options.only]
    # Before the first run: it changes descriptors, which runs are compared by.
    writer = tap.Writer(len(work) + options.random + bool(options.random))
    reference = Run(options, api, ["none:0:0"])
    reference.wait_settled()
    n_calls = reference.count_calls()
    if options.random:
        print(f"seed {seed}: a broker makes about {n_calls} calls", file=sys.stderr)
        work += [(random_points(generator, n_calls), False) for _ in range(options.random)]
    n_random = n_died = 0
    failures = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        done = {pool.submit(attempt, options, api, reference.undisturbed, *item): item
                for item in work}
        for future in concurrent.futures.as_completed(done):
            points, is_named = done[future]
            n, wrong = future.result()
            if not is_named:
                n_random += len(points)
                n_died += n
            name = ",".join(points)
            writer.case(name, not wrong)
            if wrong:
                print(f"{name}: {wrong}", file=sys.stderr)
                failures.append(f"{name}: {wrong.splitlines()[0]}")
    if options.random:
        # The number of calls varies slightly between runs.
        writer.case(f"{n_died} brokers died of {n_random} that might",
                    n_died >= n_random * 3 // 4)
    # Logs are long: repeat the failures at the end.
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return writer.status()


if __name__ == "__main__":
    sys.exit(main())
