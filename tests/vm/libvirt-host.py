#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Domains of the system's libvirt with guests that compute, and the hook.

    libvirt-host.py BUILD CHECKED [Domains.TEST...]

It runs as root in a mount namespace of its own, which test-libvirt.sh makes: libvirt's
daemon, Debian's own, is the privileged one, runs QEMU as libvirt-qemu, and has folders of
its own in the places of the real ones. CHECKED is the program that computes in the guest.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
BUILD, CHECKED = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()
sys.path[:0] = [str(TOP / part) for part in ("tests/lib", "tests/docs", "qemu", "scripts/lib")]

import tap  # noqa: E402
from payload import Payload  # noqa: E402

CTL = BUILD / "host-daemon/ctl/vgpuctl"
VGPUD = BUILD / "host-daemon/main/vgpud"
LIBRARY = BUILD / "guest-shim/libcuda.so.1"
GUEST = Path(os.environ.get("VGPU_GUEST_DIR") or BUILD / "guest")
HOOK = Path("/etc/libvirt/hooks/qemu.d/vgpu")
CONFIG = Path("/etc/vgpu/vgpud.conf")
PLACE = Path("/run/guests")  # where libvirt's QEMU may read, and make sockets
SECONDS = 170

# Process 1 of the guest: a shell on the console.
INIT = """#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo
while true; do
	setsid sh -c 'exec sh </dev/ttyS0 >/dev/ttyS0 2>&1'
done
"""
FIND = """for d in /sys/bus/pci/devices/*; do
[ "$(cat $d/vendor)$(cat $d/device)" = 0x1af40x1110 ] && echo 1 >$d/enable && echo found; done"""


def run(*words, status=0, **options):
    done = subprocess.run(words, text=True, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=SECONDS, **options)
    assert status is None or done.returncode == status, (words, done)
    return done


def virsh(*words, status=0):
    done = run("virsh", "-q", "-c", "qemu:///system", *words, status=status)
    return done.stdout + done.stderr


def ctl(*words, status=0):
    return run(CTL, "--json", *words, status=status)


def wait_for(what, true):
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.1)


class Console:
    """The shell of a guest."""

    def __init__(self, name):
        self.path, self.socket, self.text, self.n = str(PLACE / name), None, "", 0

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect(self.path)
        self.wait_for_shell()

    def wait_for_shell(self):
        """Also after a reboot. What is sent before may be lost, or part of it: so nothing in
        it, such as a parenthesis, leaves the shell waiting for more than a line."""
        end = time.monotonic() + SECONDS
        while True:
            assert time.monotonic() < end, self.text
            self.n += 1
            self.socket.sendall(f"\necho u_p{self.n} | tr -d _\n".encode())
            if self.read_until(rf"\bup{self.n}\b", 2):
                return

    def read_until(self, pattern, seconds):
        """Returns the match, or None. What is behind it remains."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.text)
            if found:
                self.text = self.text[found.end():]
                return found
            if time.monotonic() > end:
                return None
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                self.text += self.socket.recv(65536).decode(errors="replace").replace("\r", "")
            except TimeoutError:
                pass

    def run(self, command, pattern, seconds=SECONDS):
        """Runs it and returns its output, which has to match."""
        self.n += 1
        self.text = ""
        self.socket.sendall(f"{command}; echo end$(({self.n}+0))\n".encode())
        found = self.read_until(rf"(?s)^(.*?)\bend{self.n}\b", seconds)
        assert found and re.search(pattern, found[1]), (command, self.text, found and found[1])
        return found[1]

    def compute(self):
        self.run(FIND, "found")
        self.run(f"{CHECKED} 10 2 128", "10 rounds right")

    def close(self):
        if self.socket:
            self.socket.close()


def block(language, number, section="The device in a machine"):
    """One of those in a section of qemu/README.md, counted from 1."""
    text = (TOP / "qemu/README.md").read_text()
    text = text[text.index(f"\n## {section}\n"):]
    text = text[:text.index("\n## ", 1)]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)[number - 1]


def domain(name, **more):
    """qemu/libvirt-domain.xml, with what its comment says to fill in, for TCG and a guest
    without a disk."""
    text = (TOP / "qemu/libvirt-domain.xml").read_text()

    def replace(old, new):
        nonlocal text
        assert re.search(old, text, re.S), old
        text = re.sub(old, lambda _: new, text, flags=re.S)

    replace("<!--.*?-->", "")
    replace("NAME", name)
    replace("type='kvm'", "type='qemu'")
    replace("<memory unit='GiB'>4", "<memory unit='MiB'>400")
    replace("host-passthrough", "maximum")
    replace("</os>", f"<kernel>{PLACE}/kernel</kernel><initrd>{PLACE}/initrd</initrd>"
            "<cmdline>console=ttyS0 quiet rdinit=/payload/shell no_timer_check</cmdline></os>")
    replace("<disk .*</disk>", "")
    replace("<console type='pty'/>",
            f"<serial type='unix'><source mode='bind' path='{PLACE}/{name}'/></serial>")
    for old, new in more.get("changes", ()):
        replace(old, new)
    return text


class Domains(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        PLACE.mkdir()
        PLACE.chmod(0o777)
        shutil.copy(GUEST / "kernel", PLACE)
        applets = set((GUEST / "applets").read_text().splitlines())
        payload = Payload(PLACE / "payload", applets)
        payload.add_library(LIBRARY)
        payload.add(str(CHECKED))
        (payload.folder / "payload").mkdir()
        (payload.folder / "payload/shell").write_text(INIT)
        (payload.folder / "payload/shell").chmod(0o755)
        payload.write_initrd(GUEST / "base.cpio", PLACE / "initrd")
        shutil.rmtree(PLACE / "payload")
        # As installed, with the program of the build.
        HOOK.parent.mkdir(parents=True)
        text = (BUILD / "host-daemon/ctl/libvirt-hook").read_text()
        HOOK.write_text(re.sub(r"/\S*/vgpuctl", str(CTL), text))
        HOOK.chmod(0o755)
        (CONFIG.parent / "vm.d").mkdir()
        CONFIG.write_text(f"[vgpud]\ndriver = soft\nallow-unprivileged = yes\n"
                          f"ctl-socket = /run/vgpud/control\nlog-file = {PLACE}/vgpud.log\n")
        cls.start_vgpud()
        cls.start_libvirtd()

    @classmethod
    def start_vgpud(cls):
        cls.vgpud = subprocess.Popen([VGPUD, "--config", CONFIG])
        wait_for("vgpud", lambda: ctl("list", status=None).returncode == 0)

    @classmethod
    def start_libvirtd(cls):
        with open(PLACE / "libvirtd.log", "ab") as log:
            cls.libvirtd = subprocess.Popen(["libvirtd"], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        wait_for("libvirtd", lambda: not run("virsh", "-c", "qemu:///system", "list",
                                             status=None).returncode)

    @classmethod
    def stop(cls, process):
        process.terminate()
        process.wait(SECONDS)

    @classmethod
    def tearDownClass(cls):
        cls.stop(cls.libvirtd)
        cls.stop(cls.vgpud)

    def setUp(self):
        self.consoles = []

    def tearDown(self):
        for console in self.consoles:
            console.close()
        for name in virsh("list", "--all", "--name").split():
            virsh("destroy", name, status=None)
            virsh("undefine", name, "--nvram")
            ctl("detach", name, status=None)
        for path in (CONFIG.parent / "vm.d").iterdir():
            path.unlink()
        self.vgpud.send_signal(signal.SIGHUP)
        wait_for("no machine", lambda: not self.sections())

    def define(self, name, text=None):
        file = PLACE / f"{name}.xml"
        file.write_text(text or domain(name))
        virsh("define", "--validate", str(file))

    def start(self, name):
        virsh("start", name)
        return self.console(name)

    def console(self, name):
        console = Console(name)
        console.connect()
        self.consoles.append(console)
        return console

    def sections(self):
        """The machines of vgpud, which have a file each."""
        names = [vm["name"] for vm in json.loads(ctl("list").stdout)["vms"]]
        self.assertEqual(sorted(path.stem for path in (CONFIG.parent / "vm.d").iterdir()),
                         names)
        return names

    def test_a_domain_from_its_start_to_its_end(self):
        self.define("one")
        self.assertEqual(self.sections(), [])
        one = self.start("one")
        self.assertEqual(self.sections(), ["one"])
        one.compute()

        # It cannot be saved: the device's memory is also the host's. It goes on.
        for words in (("save", "one", f"{PLACE}/saved"), ("managedsave", "one")):
            self.assertIn("shmem", virsh(*words, status=1))
        self.assertEqual(virsh("domstate", "one").strip(), "running")
        one.compute()

        # libvirt's daemon is no part of it.
        self.stop(self.libvirtd)
        one.compute()
        self.assertEqual(ctl("attach", "one", status=None).returncode, 1)
        self.assertEqual(ctl("detach", "one", status=None).returncode, 1)
        self.assertEqual(self.sections(), ["one"])
        self.start_libvirtd()
        self.assertEqual(virsh("domstate", "one").strip(), "running")
        self.assertEqual(self.sections(), ["one"])

        # The guest lets the device go, and takes another.
        self.assertTrue(json.loads(ctl("detach", "one").stdout)["changed"])
        self.assertEqual(self.sections(), [])
        one.run(FIND, "^(?!.*found)")
        done = json.loads(ctl("attach", "--wait", "0", "one").stdout)
        self.assertEqual((done["live"], done["config"]), (True, True))
        # This guest has no driver of ours: it greets when a program uses the device.
        done = json.loads(ctl("attach", "--wait", "1", "one", status=7).stdout)
        self.assertEqual((done["live"], done["greeted"]), (True, False))
        self.assertEqual(json.loads(ctl("show", "one").stdout)["settings"]["size"], "4G")
        wait_for("the device in the guest", lambda: "found" in one.run(FIND, ""))
        one.compute()
        done = json.loads(ctl("attach", "--wait", "60", "one").stdout)
        self.assertEqual((done["changed"], done["greeted"]), (False, True))

        one.socket.sendall(b"reboot -f\n")
        one.wait_for_shell()
        one.compute()
        virsh("reset", "one")
        one.wait_for_shell()
        one.compute()
        virsh("destroy", "one")
        self.assertEqual(self.sections(), ["one"])  # of vgpuctl attach

    def add_section(self, text):
        (CONFIG.parent / "vm.d/one.conf").write_text(text)
        self.vgpud.send_signal(signal.SIGHUP)
        transport = "plain" if "plain" in text else "ivshmem"
        wait_for("the section", lambda: [(vm["name"], vm["transport"]) for vm in json.loads(
            ctl("list").stdout)["vms"]] == [("one", transport)])

    def attach_block(self, number):
        """A device of the README, for an existing domain; what is in it computes."""
        self.define("one", domain("one", changes=[("<shmem.*</shmem>", "")]))
        file = PLACE / "device.xml"
        file.write_text(block("xml", number))
        virsh("attach-device", "one", str(file), "--config")
        file.write_text(virsh("dumpxml", "one"))
        virsh("define", "--validate", str(file))
        one = self.start("one")
        one.compute()
        self.assertEqual(self.sections(), ["one"])

    def test_the_readme_gives_a_domain_the_socket(self):
        self.add_section(block("ini", 1))
        self.attach_block(1)

    def test_the_readme_gives_a_domain_the_file(self):
        self.add_section(block("ini", 2))
        self.attach_block(2)

    def uefi(self, name, firmware_is):
        """A domain with UEFI and without the device: libvirt finds the firmware by itself,
        by the lines of the README, or two elements name it."""
        kernel = GUEST / "kernel.image"
        if not Path("/usr/share/OVMF/OVMF_CODE_4M.fd").exists():
            self.skipTest("no UEFI (package ovmf)")
        if not kernel.exists():
            self.skipTest(f"no {kernel}, which starts as a program of UEFI")
        shutil.copy(kernel, PLACE)
        lines = (
            "<os><type arch='x86_64' machine='q35'>hvm</type>"
            "<loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>"
            "<nvram template='/usr/share/OVMF/OVMF_VARS_4M.fd'/>")
        if firmware_is == "found":
            lines = block("xml", 1, "UEFI").replace("</os>", "")
        return domain(name, changes=[
            ("<shmem.*</shmem>", ""), ("<os>.*?</type>", lines),
            (f"<kernel>{PLACE}/kernel</kernel>", f"<kernel>{PLACE}/kernel.image</kernel>")])

    def is_uefi(self, console):
        console.run("[ -d /sys/firmware/efi ] && echo is_u_efi | tr -d _", "isuefi")

    def test_a_domain_with_uefi(self):
        """Its device, of 4 GiB, is in the definition first, and then comes and goes."""
        self.define("one", self.uefi("one", "found"))
        self.assertIn("firmware='efi'", virsh("dumpxml", "one", "--inactive"))
        done = json.loads(ctl("attach", "one").stdout)
        self.assertEqual((done["config"], done["live"]), (True, False))
        one = self.start("one")
        self.is_uefi(one)
        one.compute()
        self.assertTrue(json.loads(ctl("detach", "one").stdout)["changed"])
        self.assertEqual(self.sections(), [])
        done = json.loads(ctl("attach", "--wait", "0", "one").stdout)
        self.assertEqual((done["config"], done["live"]), (True, True))
        wait_for("the device in the guest", lambda: "found" in one.run(FIND, ""))
        one.compute()
        self.assertEqual(json.loads(ctl("show", "one").stdout)["settings"]["size"], "4G")

    def test_a_domain_with_uefi_by_its_files(self):
        self.define("one", self.uefi("one", "named"))
        self.assertTrue(json.loads(ctl("attach", "one").stdout)["config"])
        one = self.start("one")
        self.is_uefi(one)
        one.compute()

    def test_the_readme_makes_a_domain_by_virt_install(self):
        if not shutil.which("virt-install"):
            self.skipTest("virt-install is missing (package virtinst)")
        line = block("sh", 1)
        disk = Path(re.search(r"--disk (\S+)", line)[1])
        disk.parent.mkdir(parents=True, exist_ok=True)
        with open(disk, "wb") as file:
            file.truncate(1 << 20)  # its guest is not booted here
        run("bash", "-euc", line)
        self.assertEqual(virsh("domstate", "one").strip(), "running")
        self.assertIn("<msi vectors='32'", virsh("dumpxml", "one"))
        self.assertEqual(self.sections(), ["one"])
        wait_for("the machine", lambda: json.loads(ctl("show", "one").stdout)["connections"])

    def test_the_readme_gives_qemu_the_device(self):
        Path("/dev/shm/vgpud").mkdir(mode=0o700)
        for number, section in ((2, block("ini", 1)), (3, block("ini", 2).replace(
                "/dev/shm/vgpu-one", "/dev/shm/vgpud/one"))):
            self.add_section(section)
            done = run(TOP / "qemu/run-guest", "--timeout", str(SECONDS - 10),
                       "--accel", "tcg", "--guest-dir", GUEST,
                       "--qemu", block("sh", number).replace("\\\n", ""),
                       "--lib", LIBRARY, "--", CHECKED, "10", "2", "128")
            self.assertIn("10 rounds right", done.stdout)

    def test_two_domains_at_once(self):
        names = ["three", "two"]
        for name in names:
            self.define(name)
            virsh("start", name)
        consoles = [self.console(name) for name in names]
        self.assertEqual(self.sections(), names)
        for console in consoles:
            console.run(FIND, "found")
            console.run(f"{CHECKED} 0 2 128 & program=$!", "")
        wait_for("a process of each domain", lambda: all(
            vm["sessions"] for vm in json.loads(ctl("list").stdout)["vms"]))
        for console in consoles:
            console.run("kill $program; wait $program; echo ended$?", r"\bended0\b")
            console.compute()
        virsh("destroy", "three")
        self.assertEqual(self.sections(), ["two"])
        consoles[1].compute()
        virsh("destroy", "two")
        self.assertEqual(self.sections(), [])

    def test_two_domains_with_one_socket(self):
        self.define("one")
        virsh("start", "one")
        self.define("thief", domain("thief", changes=[("thief.sock", "one.sock")]))
        said = virsh("start", "thief", status=1)
        self.assertIn("one", said)
        self.assertEqual(virsh("domstate", "thief").strip(), "shut off")
        self.assertEqual(self.sections(), ["one"])
        self.assertEqual(json.loads(ctl("show", "one").stdout)["connections"], 1)

    def test_without_vgpud_only_other_domains_start(self):
        self.define("one")
        self.define("other", domain("other", changes=[("<shmem.*</shmem>", "")]))
        self.stop(self.vgpud)
        try:
            said = virsh("start", "one", status=1)
            self.assertIn("vgpud does not run", said)
            self.assertEqual(virsh("domstate", "one").strip(), "shut off")
            virsh("start", "other")
        finally:
            self.start_vgpud()
        virsh("start", "one")
        # The domain ends while vgpud does not run: nothing is left either.
        self.stop(self.vgpud)
        try:
            virsh("destroy", "one")
            self.assertEqual(list((CONFIG.parent / "vm.d").iterdir()), [])
        finally:
            self.start_vgpud()

    def test_a_domain_that_was_renamed(self):
        """It has a machine of its old name, which detach finds."""
        self.define("old")
        virsh("domrename", "old", "new")
        virsh("start", "new")
        self.assertEqual(self.sections(), ["old"])
        virsh("destroy", "new")
        self.assertEqual(self.sections(), [])
        done = json.loads(ctl("attach", "new").stdout)
        self.assertEqual((done["vm"], done["config"]), ("old", True))
        self.assertEqual(self.sections(), ["old"])
        done = json.loads(ctl("detach", "new").stdout)
        self.assertEqual((done["vm"], done["changed"]), ("old", True))
        self.assertEqual(self.sections(), [])
        self.assertNotIn("shmem", virsh("dumpxml", "new"))

    def define_with_user(self, name, user):
        """A domain whose QEMU has that user and group, by the lines of the README."""
        label = re.search("<seclabel [^>]*'dac'.*?</seclabel>",
                          (TOP / "qemu/README.md").read_text(), re.S)[0]
        for file in ("kernel", "initrd"):  # libvirt gives them to the user
            shutil.copy(PLACE / file, PLACE / f"{name}.{file}")
        self.define(name, domain(name, changes=[
            (f"{PLACE}/kernel<", f"{PLACE}/{name}.kernel<"),
            (f"{PLACE}/initrd<", f"{PLACE}/{name}.initrd<"),
            ("</domain>", label.replace("64101", str(user)) + "</domain>")]))

    @staticmethod
    def connect(name, path):
        """Lets the domain's QEMU connect, as a guest would that has taken it over; returns
        its complaint."""
        return virsh("qemu-monitor-command", name, "--hmp",
                     f"chardev-add socket,id=probe,path={path}").strip()

    def test_a_user_for_each_domain_keeps_it_from_the_sockets_of_others(self):
        users = {"one": 64101, "two": 64102}
        for name, user in users.items():
            self.define_with_user(name, user)
        self.define("usual")
        consoles = [self.start(name) for name in users]
        virsh("start", "usual")
        for name, user in users.items():
            self.assertEqual(Path(f"/run/vgpud/{name}.sock").stat().st_gid, user)
        for name, other in (("one", "two"), ("two", "one"), ("one", "usual"), ("usual", "one")):
            self.assertIn("Permission denied", self.connect(name, f"/run/vgpud/{other}.sock"))
        # It would connect if it might.
        place = str(PLACE / "open")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(place)
            server.listen()
            os.chmod(place, 0o666)
            self.assertEqual(self.connect("one", place), "")
            server.settimeout(SECONDS)
            server.accept()[0].close()
        for console in consoles:
            console.compute()
        # By vgpuctl it is the same group.
        ctl("detach", "one")
        ctl("attach", "--wait", "0", "one")
        self.assertEqual(Path("/run/vgpud/one.sock").stat().st_gid, 64101)
        wait_for("the device in the guest", lambda: "found" in consoles[0].run(FIND, ""))
        consoles[0].compute()

    def test_settings_in_the_metadata(self):
        self.define("one")
        for settings, size in (("size='1G' device-memory='2G'", "1G"), ("size='2G'", "2G")):
            virsh("metadata", "one", "--uri", "https://vgpu.invalid/domain/1", "--key", "vgpu",
                  "--set", f"<vm {settings}/>", "--config")
            virsh("start", "one")
            shown = json.loads(ctl("show", "one").stdout)
            self.assertEqual(shown["settings"]["size"], size)
            self.assertEqual(shown["connections"], 1)
            self.assertEqual(shown["device_memory_limit"], 2 << 30 if size == "1G" else None)
            # The group of QEMU, which the hook finds without asking libvirt.
            self.assertEqual(Path("/run/vgpud/one.sock").group(), "libvirt-qemu")
            virsh("destroy", "one")
        virsh("metadata", "one", "--uri", "https://vgpu.invalid/domain/1", "--key", "vgpu",
              "--set", "<vm socket='/etc/x'/>", "--config")
        self.assertIn("a domain has no setting 'socket'", virsh("start", "one", status=1))
        self.assertEqual(self.sections(), [])


def reap_orphans():
    """Returns in a child process. libvirtd starts its QEMUs as daemons, and waits until
    they are gone: a first process of a container may let it wait for a minute each time."""
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)
    child = os.fork()
    if not child:
        return
    pid = status = None
    while pid != child:
        pid, status = os.wait()
    sys.exit(os.waitstatus_to_exitcode(status) and 1)


if __name__ == "__main__":
    reap_orphans()
    sys.exit(tap.unittest_main(sys.argv[3:]))
