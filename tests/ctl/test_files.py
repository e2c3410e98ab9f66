#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl, and files that cannot be written or that a process could not complete.

    test_files.py BUILD HAS_LIBVIRT

Domains are those of libvirt's test driver, which lives in vgpuctl itself and remembers
nothing: one that has the device already, and one that does not.
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position
from mounts import (  # noqa: E402  pylint: disable=wrong-import-position
    MS_BIND, MS_RDONLY, MS_REMOUNT, call, find_lack, mount)

CTL = BUILD / "host-daemon/ctl/vgpuctl"
KILL_AT = BUILD / "tests/ctl/kill-at"
HAS_LIBVIRT = sys.argv[2] == "yes"
FAILED, REFUSED = 1, 6
KILLED, ENDED, UNTRACED = 0, 1, 77
NO_ROOM, READ_ONLY = "No space left on device", "Read-only file system"

DOMAIN = """<node><domain type='test'><name>one</name><memory unit='MiB'>64</memory>
<vcpu>1</vcpu><os><type arch='i686'>hvm</type></os><devices>{}</devices></domain></node>
"""
DEVICE = """<shmem name='vgpu-one'><model type='ivshmem-doorbell'/><server path='{}'/>
<msi vectors='32' ioeventfd='on'/></shmem>"""
FILE = "[vm two]\ntransport = socket\nsocket = {}\nhandles = 99\n"


LACK = find_lack()
NO_LIBVIRT = None if HAS_LIBVIRT else "vgpuctl was built without libvirt"


class Case(unittest.TestCase):
    def setUp(self):
        self.mounts = []
        self.host = Host(BUILD, prepare=self.prepare,
                         extra=f"worker = {BUILD}/tests/broker/fake-worker\n")
        self.host.__enter__()

    def prepare(self, folder):
        self.folder, self.files, self.run_folder = folder, folder / "vm.d", folder / "run"
        self.two, self.one = self.files / "two.conf", self.files / "one.conf"
        self.files.mkdir()
        self.run_folder.mkdir()
        self.mount_before()
        self.two.write_text(FILE.format(folder / "two"))
        for name, device in (("with", DEVICE.format(self.run_folder / "one.sock")),
                             ("without", "")):
            (folder / f"{name}.xml").write_text(DOMAIN.format(device))
        return f"ctl-socket = {self.run_folder}/control\n"

    def mount_before(self):
        pass

    def mount(self, source, target, kind, flags, data=None):
        mount(source, target, kind, flags, data)
        self.mounts.append(target)

    def unmount(self):
        while self.mounts:
            call("umount2", str(self.mounts.pop()).encode(), 2)

    def tearDown(self):
        try:
            self.host.process.terminate()
            self.host.process.wait(60)
        finally:
            self.unmount()
            self.host.__exit__()

    def words(self, *words):
        return [str(CTL), "--socket", str(self.run_folder / "control"), *words]

    def ctl(self, *words, status=0):
        """Returns what it prints, and what it complains about."""
        done = subprocess.run(self.words(*words), text=True, timeout=60, capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, status, (words, done))
        return done.stdout, done.stderr

    def domain(self, verb):
        """The words for it: the domain has the device for attach, and not for detach. Nobody
        greets there, and is not waited for."""
        name = "with" if verb == "attach" else "without"
        options = ["--size", "256M", "--wait", "0"] if verb == "attach" else []
        return [verb, "--connect", f"test://{self.folder}/{name}.xml", *options, "one"]

    def state(self):
        """What vgpud has, and the files."""
        names = [vm["name"] for vm in json.loads(self.ctl("list", "--json")[0])["vms"]]
        return ({name: json.loads(self.ctl("show", name, "--json")[0])["settings"]
                 for name in names},
                {path.name: path.read_bytes() for path in sorted(self.files.iterdir())},
                sorted(path.name for path in self.run_folder.iterdir()))

    def fails(self, reason, *words, status=FAILED):
        """Neither vgpud nor a file changes."""
        before = self.state()
        complaint = self.ctl(*words, status=status)[1]
        self.assertIn(reason, complaint)
        self.assertEqual(self.state(), before)
        return complaint

    def handles(self):
        return self.state()[0]["two"]["handles"]


@unittest.skipIf(LACK, LACK)
class FullDisk(Case):
    """The folder has room for two.conf, and for one file more if `ballast` goes."""

    def mount_before(self):
        self.mount("none", self.files, "tmpfs", 0, "size=8k")

    def setUp(self):
        super().setUp()
        self.ballast = self.files / "ballast"
        self.ballast.write_bytes(bytes(4096))

    def test_set_says_so_and_changes_nothing(self):
        for path in (self.two, self.files):
            self.assertIn(str(path), self.fails(NO_ROOM, "set", "--persistent", "two",
                                                "handles=77"))
        self.ctl("set", "two", "handles=88")
        self.assertEqual(self.handles(), "88")
        self.ballast.unlink()
        self.ctl("set", "--persistent", "two", "handles=77")
        self.assertIn("handles = 77\n", self.two.read_text())

    @unittest.skipIf(NO_LIBVIRT, NO_LIBVIRT)
    def test_attach_says_so_and_detach_needs_no_room(self):
        self.fails(f"{self.one} cannot be written: {NO_ROOM}", *self.domain("attach"))
        self.ballast.unlink()
        self.ctl(*self.domain("attach"))
        self.assertTrue(self.one.exists())
        self.ctl(*self.domain("detach"))
        self.assertEqual(list(self.state()[1]), ["two.conf"])

    @unittest.skipIf(NO_LIBVIRT, NO_LIBVIRT)
    def test_detach_from_a_full_disk(self):
        self.ballast.unlink()
        self.ctl(*self.domain("attach"))
        with self.assertRaises(OSError):
            self.ballast.write_bytes(bytes(4096))
        self.ctl(*self.domain("detach"))
        self.assertNotIn("one", self.state()[0])
        self.assertFalse(self.one.exists())


@unittest.skipIf(LACK, LACK)
class FullFolderOfSockets(Case):
    """It has inodes for itself, the ctl socket and its lock, and none for another."""

    def mount_before(self):
        self.mount("none", self.run_folder, "tmpfs", 0, "nr_inodes=3")

    @unittest.skipIf(NO_LIBVIRT, NO_LIBVIRT)
    def test_attach_says_so_and_leaves_no_file(self):
        self.fails("the log of vgpud has the reason", *self.domain("attach"))
        self.host.wait_for(NO_ROOM)


@unittest.skipIf(LACK, LACK)
class ReadOnly(Case):
    def make_read_only(self):
        self.mount(self.files, self.files, None, MS_BIND)
        mount(None, self.files, None, MS_REMOUNT | MS_BIND | MS_RDONLY)

    def test_set_says_so_and_changes_nothing(self):
        self.make_read_only()
        self.fails(f"{self.two} cannot be written: {READ_ONLY}", "set", "--persistent", "two",
                   "handles=77")
        self.ctl("set", "two", "handles=88")
        self.assertEqual(self.handles(), "88")

    @unittest.skipIf(NO_LIBVIRT, NO_LIBVIRT)
    def test_attach_and_detach_say_so_and_change_nothing(self):
        self.make_read_only()
        self.fails(f"{self.one} cannot be written: {READ_ONLY}", *self.domain("attach"))
        # There is nothing to remove.
        self.assertEqual(self.ctl(*self.domain("detach"))[0], "it was so already\n")
        self.unmount()
        self.ctl(*self.domain("attach"))
        self.make_read_only()
        self.assertEqual(self.ctl(*self.domain("attach"))[0], "it was so already\n")
        self.fails(f"{self.one} cannot be removed: {READ_ONLY}", *self.domain("detach"))
        self.unmount()
        self.ctl(*self.domain("detach"))


class Death(Case):
    """vgpuctl dies before each system call that others can notice."""

    def die_everywhere(self, words, prepare, check, check_after):
        """Returns the number of those calls."""
        number = 0
        # LeakSanitizer does not work in a process that is traced.
        environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
        while True:
            number += 1
            prepare()
            done = subprocess.run([KILL_AT, str(number), *self.words(*words)], timeout=60,
                                  env=environment, capture_output=True, text=True, check=False)
            if done.returncode == UNTRACED:
                raise unittest.SkipTest("no process can be traced here")
            self.assertIn(done.returncode, (KILLED, ENDED), done)
            check(number)
            # Whatever it left, the next one completes it.
            self.ctl(*words)
            check_after()
            self.assertEqual([path.name for path in self.files.iterdir()
                              if path.name.startswith(".")], [], number)
            if done.returncode == ENDED:
                return number - 1

    def test_set(self):
        old = self.two.read_text()
        new = old.replace("99", "77")

        def prepare():
            self.ctl("set", "--persistent", "two", "handles=99")
            self.assertEqual(self.two.read_text(), old)

        def check(number):
            self.assertIn(self.two.read_text(), (old, new), number)
            self.assertIn(self.handles(), ("99", "77"), number)

        def check_after():
            self.assertEqual((self.two.read_text(), self.handles()), (new, "77"))

        points = self.die_everywhere(["set", "--persistent", "two", "handles=77"], prepare,
                                     check, check_after)
        self.assertGreater(points, 15)

    @unittest.skipIf(NO_LIBVIRT, NO_LIBVIRT)
    def test_attach(self):
        def check(number):
            if self.one.exists():
                self.assertIn("one", self.state()[0], number)

        def check_after():
            vms, files, _ = self.state()
            self.assertIn("one", vms)
            self.assertIn(b"\nsize = 256M\n", files["one.conf"])

        points = self.die_everywhere(
            self.domain("attach"), lambda: self.ctl(*self.domain("detach")), check, check_after)
        self.assertGreater(points, 15)

    @unittest.skipIf(NO_LIBVIRT, NO_LIBVIRT)
    def test_detach(self):
        def check(number):
            if "one" in self.state()[0]:
                self.assertTrue(self.one.exists(), number)

        def check_after():
            vms, files, _ = self.state()
            self.assertEqual((list(vms), list(files)), (["raw", "two"], ["two.conf"]))

        points = self.die_everywhere(
            self.domain("detach"), lambda: self.ctl(*self.domain("attach")), check, check_after)
        self.assertGreater(points, 10)


class Strange(Case):
    @unittest.skipIf(NO_LIBVIRT, NO_LIBVIRT)
    def test_a_file_that_vgpud_has_not_read_is_not_replaced(self):
        self.one.write_text("[vm one]\nsocket = /mine\n")
        self.fails(f"{self.one}:1: vgpud has not read this file", *self.domain("attach"),
                   status=REFUSED)

    @unittest.skipIf(NO_LIBVIRT, NO_LIBVIRT)
    def test_a_file_that_was_lost_is_written_again(self):
        self.ctl(*self.domain("attach"))
        self.ctl("set", "one", "handles=77")
        self.one.unlink()
        before = self.state()[0]
        self.ctl(*self.domain("attach"))
        self.assertEqual(self.ctl(*self.domain("attach"))[0], "it was so already\n")
        self.host.reload()
        self.assertEqual(self.state()[0], before)

    @unittest.skipIf(NO_LIBVIRT, NO_LIBVIRT)
    def test_a_socket_of_another_machine_is_not_taken(self):
        """Of the main file, of another file, and of one that vgpud has been told."""
        taken = f"socket = {self.run_folder}/one.sock"
        self.two.write_text(self.two.read_text().replace(f"socket = {self.folder}/two", taken))
        self.host.reload()
        complaint = self.fails(f"{taken.replace(' = ', ' ')} is the one of",
                               *self.domain("attach"), status=REFUSED)
        self.assertRegex(complaint, r"/(one|two)\.conf:\d+: ")


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
