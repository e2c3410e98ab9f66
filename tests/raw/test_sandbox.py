#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rights of a compromised worker, tried from inside.

    test_sandbox.py BUILD SOURCE

The worker loads a driver that tries to escape (sandbox-probe.c), under both profiles; as
root with the user ids of workers, and again as user nobody, whose workers have no separate
user ids. The same attempts with `sandbox = no` show that the sandbox refuses them.
"""

import ctypes
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import proc  # noqa: E402
import tap  # noqa: E402
import wire  # noqa: E402
from host import Host  # noqa: E402
from test_raw import prepare  # noqa: E402
from wire import OPEN, Channel  # noqa: E402

N_ATTEMPTS = 44
NOBODY = 65534
REFUSALS = {"EPERM", "EACCES", "EFBIG"}
# Attempts that the driver profile has to permit.
DRIVER_MAY = {"map-code", "protect-code", "shared-memory"}
# Attempts that succeed if the kernel has no Landlock; and without root.
WITHOUT_LANDLOCK = {"open", "command-of-keeper"}
WITHOUT_BOTH = {"memory-of-neighbour", "descriptor-of-neighbour"}
# Their outcomes without a sandbox for every user, as a control.
WITHOUT = {
    "connect": "ENOTSOCK",
    "socket": "done",
    "unix-socket": "done",
    "execve": "ENOENT",
    "fork": "done",
    "map-code": "done",
    "protect-code": "done",
    "open": "done",
    "trace": "ESRCH",
    "kill": "done",
    "command-of-keeper": "done",
    "limit-of-keeper": "done",
    "set-limit-of-keeper": "done",
    "affinity-of-keeper": "done",
    "signal-owner": "done",
    "signal-number": "done",
    "signal-async": "done",
    "signal-async-ioctl": "done",
    "signal-wide-ioctl": "done",
    "notify": "done",
    "create-shm": "done",
    "create-tmp": "done",
    "memory-file": "done",
    "shared-memory": "done",
    "clone-untraced": "done",
}
# The other attempts, which without it only root may.
WITHOUT_AS_ROOT = {
    "lease": "EINVAL",
    "memory-of-keeper": "done",
    "descriptor-of-keeper": "done",
    "memory-of-neighbour": "done",
    "descriptor-of-neighbour": "done",
    "list-of-keeper": "done",
    "clone-uts": "done",
}


def has_landlock():
    """By landlock_create_ruleset(LANDLOCK_CREATE_RULESET_VERSION)."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


def users():
    """The users that vgpud runs as: root also runs it as another one."""
    return [None] if os.geteuid() else [None, NOBODY]


def read_status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def worker_of(channel):
    return channel.u32(wire.TABLE_OFF + 192 + 20)


def attempts(build, api, driver, extra="", user=None):
    """Makes a worker try everything. Returns {attempt: outcome}, the log, its status."""
    with tempfile.TemporaryDirectory(prefix="vgpu-probe-") as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "neighbour")
        # Workers may read folders of libraries.
        environment = {"PROBE_NEIGHBOUR": path, "LD_LIBRARY_PATH": folder}
        with Host(build, driver, extra, environment, user=user) as host:
            neighbour, channel = Channel(api, host.socket), Channel(api, host.socket)
            assert neighbour.state == OPEN and channel.state == OPEN, host.text()
            with open(path, "w", encoding="ascii") as f:
                f.write(str(worker_of(neighbour)))
            prepare(channel)
            pid = worker_of(channel)
            result, _ = channel.call("cuCtxSynchronize")
            assert result == 0, result
            host.wait_for("probe all: over")
            status = read_status(pid)
            try:
                network = os.readlink(f"/proc/{pid}/ns/net")
            except PermissionError:
                network = None
            channel.close()
            neighbour.close()
            text = host.text()
    found = dict(re.findall(r"probe ([a-z-]+): (\w+)", text))
    del found["all"]
    return found, text, status, network


def check_refused(outcomes, allowed):
    wrong = {}
    for name, outcome in outcomes.items():
        if name not in allowed and outcome not in REFUSALS:
            wrong[name] = outcome
    assert not wrong, wrong
    assert len(outcomes) == N_ATTEMPTS, (len(outcomes), outcomes)


def check_identity(status, network, user):
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
    if user or os.geteuid():
        return
    uids = {int(uid) for uid in status["Uid"].split()}
    assert len(uids) == 1 and 70000 <= uids.pop() <= 74095, status["Uid"]
    assert status["Gid"].split()[0] == status["Uid"].split()[0], status["Gid"]
    assert not status["Groups"].strip(), status["Groups"]
    assert int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0, status
    assert network != os.readlink("/proc/self/ns/net"), network


def test_strict(build, api):
    for user in users():
        outcomes, text, status, network = attempts(
            build, api, build + "/tests/raw/libvgpu-probe-strict.so", user=user
        )
        check_refused(outcomes, ())
        check_identity(status, network, user)
        for name in ("connect", "execve", "mmap", "openat", "clone", "prlimit64", "fcntl"):
            assert re.search(rf"refuses system call \d+ \({name}\)", text), name


def test_driver(build, api):
    may = DRIVER_MAY
    if not has_landlock():
        print("skipped in part: this kernel has no Landlock")
        may = may | WITHOUT_LANDLOCK
    for user in users():
        unprivileged = user or os.geteuid()
        outcomes, _, status, network = attempts(
            build, api, build + "/tests/raw/libvgpu-probe-driver.so",
            "allow-unprivileged = yes", user
        )
        check_refused(
            outcomes, may | (WITHOUT_BOTH if unprivileged and not has_landlock() else set())
        )
        check_identity(status, network, user)
        for name in DRIVER_MAY:
            assert outcomes[name] == "done", outcomes


def test_off(build, api):
    outcomes, text, status, _ = attempts(
        build, api, build + "/tests/raw/libvgpu-probe-strict.so", "sandbox = no"
    )
    expected = WITHOUT if os.geteuid() else WITHOUT | WITHOUT_AS_ROOT
    found = {name: outcomes[name] for name in expected}
    assert found == expected, {n: found[n] for n in expected if found[n] != expected[n]}
    assert status["Seccomp"] == "0", status
    assert "sandbox = no: WORKERS RUN WITH ALL THE RIGHTS OF VGPUD" in text


def test_driver_needs_root_or_leave(build, api):
    """A foreign driver serves nobody if workers have no separate user ids."""
    for user in users():
        with Host(build, build + "/tests/raw/libvgpu-probe-driver.so",
                  "allow-unprivileged = no", user=user) as host:
            channel = Channel(api, host.socket)
            if user or os.geteuid():
                assert channel.state != OPEN, channel.state
                host.wait_for("NVIDIA's driver is not used where vgpud is not root")
            else:
                assert channel.state == OPEN, host.text()
            channel.close()


def opened_by(user, pids):
    """The files of others in /proc that a process of that user can open."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        for pid in pids:
            for name in ("fd", "mem", "environ", "maps"):
                try:
                    os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
                    os.write(write, f"{name} of {pid}\n".encode())
                except PermissionError:
                    pass
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with open(read, encoding="ascii") as f:
        return f.read().splitlines()


def test_vgpud_is_closed_to_its_own_user(build, _):
    """Another process of the same user can open no file of keeper or broker."""
    user = None if os.geteuid() else NOBODY
    with Host(build, user=user) as host:
        pid = host.process.pid
        broker = proc.children(pid)[0]
        opened = opened_by(user, (pid, broker))
        # Control: all files of a process that it may inspect.
        with subprocess.Popen(["sleep", "60"], user=user, group=user,
                              extra_groups=[] if user else None) as other:
            others = opened_by(user, (other.pid,))
            other.kill()
    assert not opened, opened
    assert len(others) == 4, others


def test_low_limits_are_kept(build, api):
    """If vgpud may have few descriptors, a worker does not ask for more."""
    for profile, n_files in (("strict", 48), ("driver", 1024)):
        driver = f"{build}/tests/raw/libvgpu-probe-{profile}.so"
        for user in users():
            with Host(build, driver, user=user, n_files=n_files) as host:
                channel = Channel(api, host.socket)
                assert channel.state == OPEN, host.text()
                with open(f"/proc/{worker_of(channel)}/limits", encoding="ascii") as f:
                    limits = re.search(r"Max open files +(\d+) +(\d+)", f.read()).groups()
                assert limits == (str(n_files), str(n_files)), limits
                channel.close()


def test_configuration_is_sealed(build, _):
    """The sealed memory that brokers get from the keeper cannot be changed by any holder."""
    if os.geteuid():
        raise unittest.SkipTest("only root can see what vgpud holds")
    with Host(build) as host:
        texts = [path for path, link in proc.descriptors(host.process.pid)
                 if link.startswith("/memfd:vgpud-config")]
        assert len(texts) == 1, texts
        fd = os.open(texts[0], os.O_RDWR)
        try:
            os.write(fd, b"x")
            raise AssertionError("the configuration can be written to")
        except PermissionError:
            pass
        finally:
            os.close(fd)


def ask(build, api, what, profile, user, pattern):
    """Makes a worker exceed its limit. Returns the line of the log."""
    driver = f"{build}/tests/raw/libvgpu-probe-{profile}.so"
    with Host(build, driver, environment={"PROBE": what}, user=user) as host:
        channel = Channel(api, host.socket)
        assert channel.state == OPEN, host.text()
        prepare(channel)
        channel.submit(api.ids["cuCtxSynchronize"])
        found = host.wait_for(pattern)
        channel.close()
    return found.group()


def test_no_memory_in_files(build, api):
    """Memory files of a worker stay empty, under either profile and for every user."""
    for profile in ("strict", "driver"):
        for user in users():
            line = ask(build, api, "hoard", profile, user, r"probe hoard: \d+")
            assert line == "probe hoard: 0", (profile, user, line)


def test_threads_are_bounded(build, api):
    """By the kernel if workers have separate user ids, or else by the broker."""
    for user in users():
        if user or os.geteuid():
            ask(build, api, "threads", "strict", user, "has more than 1536 threads and is ended")
        else:
            line = ask(build, api, "threads", "strict", user, r"probe threads: \d+")
            assert 1000 < int(line.split()[-1]) <= 1536, line


def test_users_differ(build, api):
    """If vgpud is root, no worker can reach another one."""
    if os.geteuid():
        return
    with Host(build) as host:
        channels = [Channel(api, host.socket) for _ in range(3)]
        uids = {read_status(worker_of(channel))["Uid"] for channel in channels}
        for channel in channels:
            channel.close()
    assert len(uids) == 3, uids


def main():
    build, source = sys.argv[1:]
    api = wire.Api(os.path.join(source, "protocol/api"))
    return tap.run(tap.functions(globals(), build, api))


if __name__ == "__main__":
    sys.exit(main())
