#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-cdi: its specification, and containers that podman starts with it.

    test_cdi.py BUILD SOURCE

The containers have no image: their files are the loader and the C library of this
machine. Where podman is missing or cannot start any container, they are skipped.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import tap  # noqa: E402
from host import Host  # noqa: E402

LIB_DIRS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")


class Machine:
    """vgpud, the command, and a root folder for containers."""

    def __init__(self, host, build, folder):
        self.host, self.build, self.folder = host, Path(build), Path(folder)
        self.lib = self.build / "guest-shim"
        self.command = self.build / "guest-shim/cdi/vgpu-cdi"

    def run(self, *arguments, **environment):
        return subprocess.run(
            [self.command, *arguments], text=True, errors="surrogateescape",
            capture_output=True, check=False,
            env=dict({k: v for k, v in os.environ.items() if k != "VGPU_SOCKET"},
                     **environment))

    def generate(self, *arguments, **environment):
        done = self.run("generate", "--lib", self.lib, *arguments, **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def root(self):
        """The files of a container: a check, and what it is linked with."""
        root = self.folder / "root"
        if root.exists():
            return root
        for name in ("bin", "dev", "proc", "sys", "tmp", "etc", "usr/lib", "lib64"):
            (root / name).mkdir(parents=True)
        check = self.build / "scripts/libcuda-check"
        shutil.copy(check, root / "bin")
        linked = subprocess.run(["ldd", check, self.lib / "libcuda.so.1"], text=True,
                                capture_output=True, check=True).stdout
        for path in {word for word in linked.split() if word.startswith(("/lib", "/usr"))}:
            (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(path), root / path[1:])
        return root


def edits_of(specification):
    device, = specification["devices"]
    assert device["name"] == "all", device
    return device["containerEdits"]


def test_any_path_is_one_or_is_refused(machine):
    """Paths are given by whoever runs it; a specification with another one would be worse
    than none."""
    chance, n_taken, n_refused = random.Random(14), 0, 0
    alphabet = [b"a", b"b", b".", b"-", b"_", b" ", b"\t", b"\n", b'"', b"\\", b"$", b"`",
                b"%s", b"*", b"'", b"{", b"\xc3\xa9", b"\xff", b"\x1b", b"rw", b"mount "]
    for i in range(150):
        with tempfile.TemporaryDirectory() as folder:
            letters = alphabet[:5] if i % 3 == 0 else alphabet
            name = b"".join(chance.choices(letters, k=chance.randint(1, 5)))
            path = os.path.join(os.fsencode(folder), b"s" + name)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                done = machine.run("generate", "--lib", machine.lib, "--socket", path)
        if done.returncode:
            n_refused += 1
            assert done.returncode == 1 and not done.stdout and done.stderr, (path, done)
            continue
        n_taken += 1
        edits = edits_of(json.loads(done.stdout))
        assert edits["env"] == [f"VGPU_SOCKET={os.fsdecode(path)}"], (path, edits)
        assert [m["hostPath"] for m in edits["mounts"] if "rw" in m["options"]] == [
            os.fsdecode(path)], (path, edits)
    assert n_taken > 40 and n_refused > 40, (n_taken, n_refused)


def test_it_has_the_library_where_loaders_look(machine):
    edits = edits_of(machine.generate("--socket", machine.host.socket))
    mounts = {m["containerPath"]: m for m in edits["mounts"]}
    for directory in LIB_DIRS:
        mount = mounts[f"{directory}/libcuda.so.1"]
        assert os.path.samefile(mount["hostPath"], machine.lib / "libcuda.so.1"), mount
        assert "ro" in mount["options"], mount
    assert "rw" in mounts[str(machine.host.socket)]["options"]
    assert edits["env"] == [f"VGPU_SOCKET={machine.host.socket}"]
    assert edits["deviceNodes"] == []


def test_the_socket_may_come_from_the_environment(machine):
    assert (machine.generate(VGPU_SOCKET=str(machine.host.socket)) ==
            machine.generate("--socket", machine.host.socket))


def test_the_kind_is_what_the_engines_are_given(machine):
    specification = machine.generate("--socket", machine.host.socket)
    assert specification["kind"] == "vgpu.dev/gpu" and specification["cdiVersion"]


def test_a_file_is_written_whole_or_not_at_all(machine):
    path = machine.folder / "vgpu.json"
    done = machine.run("generate", "--lib", machine.lib, "--output", path, "--socket",
                       machine.folder / "nothing")
    assert done.returncode == 1 and "not a socket" in done.stderr and not path.exists()
    done = machine.run("generate", "--lib", machine.lib, "--output", path, "--socket",
                       machine.host.socket)
    assert done.returncode == 0 and not done.stdout, done
    assert edits_of(json.loads(path.read_text()))
    assert os.listdir(machine.folder).count("vgpu.json.tmp") == 0


def test_what_is_missing_is_named(machine):
    empty = machine.folder / "empty"
    empty.mkdir()
    (empty / "libcuda.so.1").write_bytes(b"\x7fELF of somebody else")
    done = machine.run("generate", "--lib", empty, "--socket", machine.host.socket)
    assert done.returncode == 1 and "no libcuda.so.1 of ours" in done.stderr, done
    if not any(Path("/dev").glob("vgpu*")):
        done = machine.run("generate", "--lib", machine.lib)
        assert done.returncode == 1 and "no vGPU" in done.stderr, done
    for wrong in (["generate", "list"], [], ["--lib"], ["--what"]):
        assert machine.run(*wrong).returncode == 125, wrong


def test_a_path_that_would_break_the_format_is_refused(machine):
    strange = machine.folder / 'a"b'
    strange.mkdir()
    shutil.copy(machine.lib / "libcuda.so.1", strange)
    done = machine.run("generate", "--lib", strange, "--socket", machine.host.socket)
    assert done.returncode == 1 and "quote" in done.stderr and not done.stdout, done


# $0 is a folder with dev and sys, $1 the command, $2 the folder of the libraries. A device
# file is /dev/null by another name.
IN_GUEST = """
for name in null $3; do
    touch "$0/dev/$name" && mount --bind /dev/null "$0/dev/$name" || exit 77
done
mount --rbind "$0/dev" /dev && mount --bind "$0/sys" /sys || exit 77
exec "$1" list --lib "$2"
"""


def list_in_guest(machine, drivers, *nodes):
    """What vgpu-cdi lists, without the libraries, where there is an ivshmem device for
    each of drivers, which has that one or none."""
    guest = Path(tempfile.mkdtemp(dir=machine.folder))
    (guest / "dev").mkdir()
    for slot, driver in enumerate(drivers):
        device = guest / f"sys/bus/pci/devices/0000:00:0{slot}.0"
        device.mkdir(parents=True)
        for name, text in (("vendor", "0x1af4\n"), ("device", "0x1110\n"),
                           ("resource0", ""), ("resource2", "")):
            (device / name).write_text(text)
        if driver:
            (device / "driver").mkdir()
    done = subprocess.run(
        ["unshare", "-m" if os.getuid() == 0 else "-rm", "sh", "-c", IN_GUEST, guest,
         machine.command, machine.lib, " ".join(nodes)],
        text=True, capture_output=True, check=False,
        env={k: v for k, v in os.environ.items() if k != "VGPU_SOCKET"})
    if done.returncode == 77 or "unshare" in done.stderr:
        raise unittest.SkipTest(f"no mount namespace: {done.stderr.strip()}")
    return done, [line for line in done.stdout.splitlines()
                  if line.startswith("node ") or "resource" in line]


def files_of(slot):
    path = f"/sys/bus/pci/devices/0000:00:0{slot}.0/resource"
    return [f"mount {path}{bar} {path}{bar} rw" for bar in (0, 2)]


def test_devices_without_a_driver_are_given_by_sysfs(machine):
    done, listed = list_in_guest(machine, [None, None])
    assert done.returncode == 0 and listed == files_of(0) + files_of(1), done


def test_a_device_of_the_driver_is_given_by_its_node_alone(machine):
    """Also beside a device that has no driver: programs would not look at it, and could
    map the memory of all others."""
    done, listed = list_in_guest(machine, ["vgpu"], "vgpu0")
    assert done.returncode == 0 and listed == ["node /dev/vgpu0"], done
    done, listed = list_in_guest(machine, ["vgpu", "vgpu", None], "vgpu0", "vgpu1")
    assert done.returncode == 0 and listed == ["node /dev/vgpu0", "node /dev/vgpu1"], done


def test_a_device_of_the_driver_without_its_node_is_not_given_by_sysfs(machine):
    done, listed = list_in_guest(machine, ["vgpu"])
    assert done.returncode == 1 and not listed and "without a driver" in done.stderr, done
    done, listed = list_in_guest(machine, ["vgpu", None])
    assert done.returncode == 0 and listed == files_of(1), done


def podman(machine, runtime, *arguments):
    """Runs a container; crun's in a mount namespace with one hierarchy of cgroups, as it
    knows no other."""
    if not shutil.which("podman") or not shutil.which(runtime) or os.getuid():
        raise unittest.SkipTest(f"needs root, podman and {runtime}")
    cdi = machine.folder / "cdi"
    cdi.mkdir(exist_ok=True)
    machine.run("generate", "--lib", machine.lib, "--output", cdi / "vgpu.json",
                "--socket", machine.host.socket)
    script, cgroups = 'mount -t tmpfs none /run && cp -r "$0" /run && ', []
    if runtime == "crun":
        script += "umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && "
        cgroups = ["--cgroups=disabled"]
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script + 'exec "$@"', cdi, "podman", "--root",
         machine.folder / "storage", "--runroot", machine.folder / "run", "--cgroup-manager",
         "cgroupfs", "run", "--rm", "--network=none", "--ulimit=nofile=1024:1024",
         "--ulimit=nproc=1000:1000", "--runtime", runtime, *cgroups, *arguments],
        text=True, capture_output=True, check=False, timeout=120)


def check_container(machine, runtime):
    command = ["--rootfs", machine.root(), "/bin/libcuda-check"]
    without = podman(machine, runtime, *command)
    if "libcuda" not in without.stdout + without.stderr:
        raise unittest.SkipTest(f"podman starts no container here: {without.stderr[-200:]}")
    assert without.returncode != 0, without
    done = podman(machine, runtime, "--device", "vgpu.dev/gpu=all", *command)
    assert done.returncode == 0, done
    machine.host.wait_for("session opened")


def test_a_container_of_crun_has_a_session(machine):
    check_container(machine, "crun")


def test_a_container_of_runc_has_a_session(machine):
    check_container(machine, "runc")


def main():
    build, _ = sys.argv[1:]
    with Host(build) as host, tempfile.TemporaryDirectory(prefix="vgpu-cdi-") as folder:
        return tap.run(tap.functions(globals(), Machine(host, build, folder)),
                       lambda: print(host.text()[-3000:], file=sys.stderr))


if __name__ == "__main__":
    sys.exit(main())
