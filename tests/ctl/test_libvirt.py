#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl attach and detach, with libvirt's own daemon and TCG domains.

    test_libvirt.py BUILD HAS_LIBVIRT

The daemon runs as an ordinary user (root's tests take nobody) with folders of its own, so
it has no domain but those of the test.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

CTL = BUILD / "host-daemon/ctl/vgpuctl"
PROGRAMS = ("libvirtd", "virsh", "qemu-system-x86_64")
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
NOBODY = 65534
FAILED, USAGE, NO_VM, REFUSED, SILENT = 1, 2, 5, 6, 7
URI = "qemu:///session"
START_SECONDS = 60
BOOT_ID = 128  # in the header of the shared memory

DOMAIN = """<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
<name>{name}</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='{machine}'>hvm</type></os>{features}
<devices><emulator>{qemu}</emulator>{devices}</devices></domain>
"""


def find_lack():
    """Returns why these tests cannot run here, or None."""
    if sys.argv[2] != "yes":
        return "vgpuctl was built without libvirt"
    lacking = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    return f"not installed: {', '.join(lacking)}" if lacking else None


@unittest.skipIf(find_lack(), find_lack())
class Libvirt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.user = NOBODY if os.geteuid() == 0 else None
        cls.holder = tempfile.TemporaryDirectory(prefix="vgpu-libvirt-")
        cls.place = Path(cls.holder.name)
        cls.environment = dict(os.environ, PATH=PATH, HOME=cls.holder.name, **{
            f"XDG_{kind}": cls.holder.name
            for kind in ("RUNTIME_DIR", "CONFIG_HOME", "CACHE_HOME", "DATA_HOME")})
        if cls.user:
            os.chown(cls.place, cls.user, cls.user)
        with open(cls.place / "log", "wb") as log:
            cls.daemon = subprocess.Popen(
                # It ends by itself after a test that was killed.
                ["libvirtd", "--timeout", "60"], env=cls.environment, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, **cls.identity())
        end = time.monotonic() + START_SECONDS
        while cls.try_virsh("version").returncode:
            assert cls.daemon.poll() is None and time.monotonic() < end, \
                (cls.place / "log").read_text(errors="replace")
            time.sleep(0.1)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.terminate()
        cls.daemon.wait(60)
        cls.holder.cleanup()

    @classmethod
    def identity(cls):
        if not cls.user:
            return {}
        return {"user": cls.user, "group": cls.user, "extra_groups": []}

    @classmethod
    def try_virsh(cls, *words):
        return subprocess.run(["virsh", "-q", "-c", URI, *words], env=cls.environment,
                              capture_output=True, text=True, check=False, timeout=120,
                              **cls.identity())

    def setUp(self):
        self.domains = []
        self.host = Host(BUILD, prepare=self.prepare, user=self.user,
                         extra=f"worker = {BUILD}/tests/broker/fake-worker\n")
        self.host.__enter__()

    def prepare(self, folder):
        self.socket, self.files = folder / "control", folder / "vm.d"
        self.files.mkdir()
        if self.user:
            os.chown(self.files, self.user, self.user)
        return f"ctl-socket = {self.socket}\n"

    def tearDown(self):
        for name in self.domains:
            self.try_virsh("destroy", name)
            self.try_virsh("undefine", name)
        self.host.__exit__()

    def virsh(self, *words):
        done = self.try_virsh(*words)
        self.assertEqual(done.returncode, 0, (words, done))
        return done.stdout

    def ctl(self, *words, status=0):
        """Returns what it prints, and what it complains about."""
        done = subprocess.run([CTL, "--socket", self.socket, *words], text=True, timeout=120,
                              capture_output=True, check=False, env=self.environment,
                              **self.identity())
        self.assertEqual(done.returncode, status, (words, done))
        return done.stdout, done.stderr

    def attach(self, *words, wait="0", status=0):
        return json.loads(self.ctl("attach", "--json", "--connect", URI, "--wait", wait, *words,
                                   status=status)[0])

    def detach(self, *words):
        return json.loads(self.ctl("detach", "--json", "--connect", URI, *words)[0])

    def define(self, name, machine="q35", devices="",
               features="<features><acpi/></features>", reserve=None):
        if reserve:
            features += ("<qemu:commandline><qemu:arg value='-global'/><qemu:arg "
                         f"value='pcie-root-port.pref64-reserve={reserve}'/>"
                         "</qemu:commandline>")
        path = self.place / f"{name}.xml"
        path.write_text(DOMAIN.format(
            name=name, machine=machine, devices=devices, features=features,
            qemu=shutil.which(PROGRAMS[2], path=PATH)))
        self.virsh("define", str(path))
        self.domains.append(name)

    def names(self):
        return [vm["name"] for vm in json.loads(self.ctl("list", "--json")[0])["vms"]]

    def show(self, name):
        return json.loads(self.ctl("show", name, "--json")[0])

    def wait_for_connections(self, name, count):
        end = time.monotonic() + START_SECONDS
        while self.show(name)["connections"] != count:
            self.assertLess(time.monotonic(), end, self.host.text())
            time.sleep(0.05)

    def greet(self, size):
        """Writes what a guest's driver writes into the shared memory of that size, which
        vgpud has. There is no operating system in these domains that could."""
        for path in Path(f"/proc/{self.host.process.pid}/fd").iterdir():
            if "memfd:" in os.readlink(path) and path.stat().st_size == size:
                with open(path, "r+b") as memory:
                    memory.seek(BOOT_ID)
                    memory.write(b"boot of a test.\0")
                return
        self.fail("vgpud has no such memory")

    def nothing_is_left(self, name):
        self.assertEqual(self.names(), ["raw"])
        self.assertEqual(list(self.files.iterdir()), [])
        self.assertNotIn("shmem", self.virsh("dumpxml", name, "--inactive"))

    def test_a_domain_that_is_off(self):
        self.define("one")
        done = self.attach("--vram", "1G", "--size", "256M", "one")
        socket = self.socket.parent / "one.sock"
        self.assertEqual(done, {"changed": True, "vm": "one", "socket": str(socket),
                                "config": True, "live": False, "greeted": False})
        shown = self.show("one")
        self.assertEqual(shown["device_memory_limit"], 1 << 30)
        self.assertEqual(shown["settings"]["size"], "256M")
        self.assertEqual(shown["max_processes"], 7)
        self.assertIn(f"socket = {socket}\n", (self.files / "one.conf").read_text())
        self.assertIn(f"path='{socket}'", self.virsh("dumpxml", "one", "--inactive"))

        self.assertFalse(self.attach("one")["changed"])
        self.virsh("start", "one")
        self.wait_for_connections("one", 1)
        again = self.attach("one")
        self.assertEqual((again["changed"], again["live"]), (False, True))
        self.virsh("destroy", "one")
        self.wait_for_connections("one", 0)

        self.assertTrue(self.detach("one")["changed"])
        self.nothing_is_left("one")
        self.assertFalse(self.detach("one")["changed"])

    def test_a_running_domain_without_a_window(self):
        self.define("one")
        self.virsh("start", "one")
        _, reason = self.ctl("attach", "--connect", URI, "--size", "256M", "one",
                             status=REFUSED)
        self.assertIn("pref64-reserve", reason)
        self.nothing_is_left("one")
        done = self.attach("--config", "--size", "256M", "one")
        self.assertEqual((done["config"], done["live"]), (True, False))
        self.assertNotIn("shmem", self.virsh("dumpxml", "one"))
        self.virsh("destroy", "one")
        self.virsh("start", "one")
        self.wait_for_connections("one", 1)

    def test_a_running_domain_without_a_port(self):
        self.define("one", reserve="512M")
        self.virsh("start", "one")
        # libvirt leaves one port free.
        other = self.place / "other.xml"
        other.write_text("<rng model='virtio'><backend model='random'>/dev/urandom"
                         "</backend></rng>")
        self.virsh("attach-device", "one", str(other), "--live")
        for size, lacking in (("512M", "pref64-reserve=1024M"), ("256M", "free port")):
            _, reason = self.ctl("attach", "--connect", URI, "--size", size, "one",
                                 status=REFUSED)
            self.assertIn(lacking, reason)
            self.nothing_is_left("one")

    def test_a_running_domain_with_a_port(self):
        """Which is free, and takes devices while the machine runs."""
        port = "<controller type='pci' index='%d' model='pcie-root-port'>%s</controller>"
        self.define("one", reserve="512M", devices="".join(
            port % (index, "<target hotplug='off'/>" if index < 9 else "")
            for index in range(1, 11)))
        self.virsh("start", "one")
        done = self.attach("--size", "256M", "one")
        self.assertEqual((done["config"], done["live"]), (True, True))
        self.wait_for_connections("one", 1)
        device = self.virsh("dumpxml", "one").split("<shmem")[1].split("</shmem")[0]
        self.assertRegex(device, "bus='0x0[9a]'")
        self.assertFalse(self.attach("one")["changed"])

    def test_a_running_domain(self):
        self.define("two", machine="pc")
        self.virsh("start", "two")
        _, reason = self.ctl("attach", "--connect", URI, "--size", "2G", "two",
                             status=REFUSED)
        self.assertIn("<pcihole64 unit='KiB'>4194304</pcihole64>", reason)
        self.nothing_is_left("two")
        done = self.attach("--size", "256M", "two")
        self.assertEqual((done["config"], done["live"]), (True, True))
        self.wait_for_connections("two", 1)
        self.assertFalse(self.attach("two")["changed"])
        # There is no operating system in it that could let the device go.
        _, reason = self.ctl("detach", "--connect", URI, "two", status=FAILED)
        self.assertIn("has not let the device go yet", reason)
        self.assertEqual(self.show("two")["connections"], 1)
        self.virsh("destroy", "two")
        self.assertTrue(self.detach("two")["changed"])
        self.nothing_is_left("two")

    def test_the_guest_of_a_running_domain_is_waited_for(self):
        self.define("two", machine="pc")
        self.virsh("start", "two")
        words = ("attach", "--connect", URI, "--size", "128M")
        printed, said = self.ctl(*words, "--wait", "1", "two", status=SILENT)
        self.assertRegex(said, "waiting up to 1 s until the guest of two greets.*\n"
                         ".*has the device, but its guest has not greeted within 1 s")
        self.assertEqual(printed, "")
        self.assertIn("guest          has not greeted yet", self.ctl("show", "two")[0])
        # It has the device nevertheless, and asking again changes nothing.
        done = self.attach("two", wait="1", status=SILENT)
        self.assertEqual([done[key] for key in ("changed", "config", "live", "greeted")],
                         [False, True, True, False])
        # Who did not ask for it hears of it, and is not told of a failure.
        _, said = self.ctl("attach", "--connect", URI, "two")
        self.assertIn("has not greeted within 10 s", said)
        self.assertFalse(self.attach("two")["greeted"])
        self.assertFalse(self.show("two")["greeted"])

        with subprocess.Popen([CTL, "--socket", self.socket, "attach", "--json", "--connect",
                               URI, "--wait", "3600", "two"], text=True, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **self.identity()) as waiting:
            self.assertIn("waiting", waiting.stderr.readline())
            self.greet(128 << 20)
            printed, said = waiting.communicate(timeout=START_SECONDS)
        self.assertEqual((waiting.returncode, said), (0, ""))
        self.assertTrue(json.loads(printed)["greeted"])
        self.assertTrue(self.show("two")["greeted"])
        self.assertIn("guest          has greeted\n", self.ctl("show", "two")[0])
        self.assertEqual(self.ctl("attach", "--connect", URI, "--wait", "1", "two"),
                         ("it was so already\n", ""))

        # Another boot of the machine has memory of its own.
        self.virsh("destroy", "two")
        self.wait_for_connections("two", 0)
        self.assertFalse(self.attach("two", wait="1")["greeted"])
        self.virsh("start", "two")
        self.wait_for_connections("two", 1)
        self.assertFalse(self.show("two")["greeted"])

    def test_a_machine_that_is_taken_away_is_no_longer_waited_for(self):
        self.define("two", machine="pc")
        self.virsh("start", "two")
        with subprocess.Popen([CTL, "--socket", self.socket, "attach", "--connect", URI,
                               "--size", "128M", "--wait", "3600", "two"], text=True,
                              env=self.environment, stderr=subprocess.PIPE,
                              **self.identity()) as waiting:
            self.assertIn("waiting", waiting.stderr.readline())
            self.virsh("destroy", "two")
            self.assertTrue(self.detach("two")["changed"])
            _, said = waiting.communicate(timeout=START_SECONDS)
        self.assertEqual(waiting.returncode, NO_VM)
        self.assertIn("vgpud has no machine two any more", said)

    def test_a_running_domain_that_refuses_the_device(self):
        """What was done before is undone. Without ACPI this machine has no hot-plug."""
        self.define("two", machine="pc", features="")
        self.virsh("start", "two")
        _, reason = self.ctl("attach", "--connect", URI, "--size", "256M", "two",
                             status=FAILED)
        self.assertIn("does not support hotplugging", reason)
        self.nothing_is_left("two")

    def test_mistakes_leave_everything_as_it_was(self):
        self.define("one")
        file = self.files / "one.conf"
        for words, status, pattern in (
                (["--size", "3M"], REFUSED, rf"{file}:5: size is a power of two"),
                (["--size", "32M"], REFUSED, rf"{file}:5: size is from 64M"),
                (["--size", "much"], USAGE, "'much' is not a size"),
                (["--vram", "much"], USAGE, "'much' is not a size"),
                (["--wait", "1m"], USAGE, "'1m' is not a number of seconds"),
                (["--vram", "0"], REFUSED, rf"{file}:7: ")):
            _, reason = self.ctl("attach", "--connect", URI, *words, "one", status=status)
            self.assertRegex(reason, pattern)
            self.nothing_is_left("one")
        self.ctl("attach", "--connect", URI, "none", status=NO_VM)
        self.ctl("detach", "--connect", URI, "none", status=NO_VM)
        self.ctl("attach", "--connect", "nonsense:///", "one", status=FAILED)
        self.nothing_is_left("one")

    def test_a_window_that_the_description_limits(self):
        self.define("three", devices="<controller type='pci' index='0' model='pcie-root'>"
                    "<pcihole64 unit='KiB'>131072</pcihole64></controller>")
        _, reason = self.ctl("attach", "--connect", URI, "--size", "256M", "three",
                             status=REFUSED)
        self.assertIn("<pcihole64>", reason)
        self.nothing_is_left("three")

    def test_a_name_that_vgpud_does_not_take(self):
        self.define("a b")
        _, reason = self.ctl("attach", "--connect", URI, "a b", status=REFUSED)
        self.assertIn("the name of a VM has letters", reason)
        self.nothing_is_left("a b")

    def test_a_machine_of_the_administrator(self):
        """Its file stays his."""
        self.define("one")
        file = self.files / "one.conf"
        file.write_text(f"[vm one]\nsocket = {self.socket.parent}/mine\nsize = 2G\n")
        self.host.reload()
        self.assertTrue(self.attach("one")["changed"])
        self.assertIn("mine", self.virsh("dumpxml", "one", "--inactive"))
        self.assertEqual(file.read_text().count("\n"), 3)

    def test_cycles_leave_nothing(self):
        self.define("one")
        for _ in range(10):
            self.attach("--size", "256M", "one")
            self.detach("one")
        self.nothing_is_left("one")
        self.assertEqual(sorted(path.name for path in self.socket.parent.glob("one*")), [])


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
