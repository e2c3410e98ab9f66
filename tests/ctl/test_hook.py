#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl hook, called as libvirt does, against a vgpud with a fake worker.

    test_hook.py BUILD HAS_LIBVIRT

test_libvirt.py has libvirt itself call it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

CTL = BUILD / "host-daemon/ctl/vgpuctl"
SCRIPT = BUILD / "host-daemon/ctl/libvirt-hook"
FAILED, NO_VGPUD, REFUSED = 1, 3, 6
NAMESPACE = "https://vgpu.invalid/domain/1"
FIRST = "83726dfe-fdea-410f-aa68-c87a64650f1a"
SECOND = "83726dfe-fdea-410f-aa68-c87a64650f1b"
DOMAIN = """<domain type='qemu' id='2'>
  <name>one</name>
  <uuid>{uuid}</uuid>
  <metadata>{metadata}</metadata>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    {devices}
  </devices>
  {labels}
</domain>
"""
DEVICE = """<shmem name='vgpu'>
      <model type='{model}'/>
      <server path='{socket}'/>
      <msi vectors='32' ioeventfd='on'/>
    </shmem>
"""


@unittest.skipIf(sys.argv[2] != "yes", "vgpuctl was built without libvirt")
class Hook(unittest.TestCase):
    def setUp(self):
        self.host = Host(BUILD, prepare=self.prepare_folder,
                         extra=f"worker = {BUILD}/tests/broker/fake-worker\n")
        self.host.__enter__()

    def prepare_folder(self, folder):
        self.folder, self.socket, self.files = folder, folder / "control", folder / "vm.d"
        self.files.mkdir()
        return f"ctl-socket = {self.socket}\n"

    def tearDown(self):
        self.host.__exit__()

    def device(self, name="one", model="ivshmem-doorbell", folder=None):
        return DEVICE.format(model=model, socket=f"{folder or self.folder}/{name}.sock")

    def domain(self, devices=None, settings="", uuid=FIRST, labels=""):
        metadata = f"<v:vm xmlns:v='{NAMESPACE}' {settings}/>" if settings else ""
        return DOMAIN.format(uuid=uuid, metadata=metadata, labels=labels,
                             devices=self.device() if devices is None else devices)

    def hook(self, operation, domain, status=0, command=(CTL, "--socket"), socket=None):
        """Returns what it complains about. On standard output libvirt expects XML."""
        words = ([*command, socket or self.socket, "hook"] if len(command) > 1
                 else list(command))
        done = subprocess.run([*words, "one", operation, "begin", "-"], input=domain,
                              text=True, timeout=60, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        return done.stderr

    def vms(self):
        done = subprocess.run([CTL, "--socket", self.socket, "list", "--json"], text=True,
                              timeout=60, capture_output=True, check=True)
        return [vm["name"] for vm in json.loads(done.stdout)["vms"]]

    def there_is(self, *names):
        self.assertEqual(self.vms(), sorted([*names, "raw"]))
        self.assertEqual(sorted(path.name for path in self.files.iterdir()),
                         sorted(f"{name}.conf" for name in names))

    def test_start_and_end(self):
        self.hook("prepare", self.domain())
        self.there_is("one")
        text = (self.files / "one.conf").read_text()
        self.assertTrue(text.startswith(f"# written by libvirt's hook for the domain {FIRST}\n"))
        self.assertIn(f"\nsocket = {self.folder}/one.sock\n", text)
        self.assertIn("\nsize = 4G\n", text)
        self.assertTrue((self.folder / "one.sock").is_socket())
        for operation in ("start", "started", "reconnect", "attach", "stopped", "migrate"):
            self.hook(operation, self.domain())
            self.there_is("one")
        self.hook("release", self.domain())
        self.there_is()
        self.assertFalse((self.folder / "one.sock").exists())
        self.hook("release", self.domain())

    def test_it_is_there_after_a_reload(self):
        self.hook("prepare", self.domain())
        self.host.reload()
        self.there_is("one")

    def test_settings_of_the_domain(self):
        self.hook("prepare", self.domain(
            settings="size='256M' device-memory='1G' max-processes='3'"))
        text = (self.files / "one.conf").read_text()
        self.assertIn("\nsize = 256M\n", text)
        self.assertIn("\ndevice-memory = 1G\n", text)
        self.assertEqual(text.count("max-processes"), 1)
        # Others at the next start, also if the end of the last one was lost.
        self.hook("prepare", self.domain(settings="size='512M'"))
        text = (self.files / "one.conf").read_text()
        self.assertIn("\nsize = 512M\n", text)
        self.assertNotIn("device-memory", text)

    def group(self, *labels):
        """The socket's group, as the file has it, of a domain with these labels."""
        self.hook("prepare", self.domain(labels="".join(
            f"<seclabel type='static' model='{model}'><label>{label}</label></seclabel>"
            for model, label in labels)))
        text = (self.files / "one.conf").read_text()
        self.hook("release", self.domain())
        found = re.findall(r"^socket-group = (\d+)$", text, re.M)
        return int(found[0]) if found else None

    @unittest.skipIf(os.geteuid(), "without root QEMU has the caller's group")
    def test_a_domain_with_a_user_of_its_own(self):
        usual = self.group()
        self.assertEqual(self.group(("dac", "+64201:+64202")), 64202)
        self.assertEqual(self.group(("dac", "root:root")), 0)
        self.assertEqual(self.group(("apparmor", "x:+64201"), ("dac", "nobody:+64203")), 64203)
        # Those that libvirt refuses itself.
        for label in ("", "+64201", "nobody:", "nobody:no-such-group", "a:b:+64201"):
            self.assertEqual(self.group(("dac", label)), usual, label)

    def test_settings_that_are_wrong_prevent_the_start(self):
        for settings, pattern in (
                ("socket='/etc/passwd'", "a domain has no setting 'socket'"),
                ("socket-group='root'", "a domain has no setting 'socket-group'"),
                ("memory='/dev/shm/x'", "a domain has no setting 'memory'"),
                ("handles='1&#10;socket = /tmp/x'", "handles has a value of letters"),
                ("handles='1; x'", "handles has a value of letters"),
                ("handles=''", "handles has a value of letters"),
                ("size='much'", "'much' is not a size"),
                ("size='3M'", r"one\.conf:\d+: size is a power of two"),
                ("device-memory='much'", r"one\.conf:\d+: ")):
            reason = self.hook("prepare", self.domain(settings=settings), status=REFUSED)
            self.assertRegex(reason, pattern)
            self.assertIn("the domain one has a vGPU, and does not start without", reason)
            self.there_is()

    def test_domains_without_a_device_start_without_vgpud(self):
        absent = self.folder / "absent"
        for devices in ("", self.device(model="ivshmem-plain"),
                        self.device(folder="/run/another"), self.device(name="../up"),
                        DEVICE.format(model="ivshmem-doorbell", socket="relative.sock"),
                        DEVICE.format(model="ivshmem-doorbell", socket=self.folder / "odd")):
            for operation in ("prepare", "release"):
                self.assertEqual(
                    self.hook(operation, self.domain(devices), socket=absent), "")

    def test_without_vgpud_a_domain_with_a_device_does_not_start(self):
        reason = self.hook("prepare", self.domain(), socket=self.folder / "absent",
                           status=NO_VGPUD)
        self.assertIn("absent: No such file or directory: vgpud does not run", reason)
        self.assertIn("the domain one has a vGPU, and does not start without", reason)

    def test_a_section_of_the_administrator_stays(self):
        file = self.files / "one.conf"
        text = f"[vm one]\nsocket = {self.folder}/one.sock\nsize = 2G\n"
        file.write_text(text)
        # vgpud has not read it yet.
        self.assertIn("reload vgpud", self.hook("prepare", self.domain(), status=REFUSED))
        self.assertEqual(file.read_text(), text)
        self.host.reload()
        self.hook("prepare", self.domain(settings="size='512M'"))
        self.assertEqual(file.read_text(), text)
        self.hook("release", self.domain())
        self.there_is("one")

    def test_a_section_of_the_administrator_with_another_name(self):
        (self.files / "mine.conf").write_text(
            f"[vm mine]\nsocket = {self.folder}/one.sock\nsize = 2G\n")
        self.host.reload()
        self.hook("prepare", self.domain())
        self.hook("release", self.domain())
        self.there_is("mine")

    def test_a_section_of_the_name_with_another_socket(self):
        (self.files / "one.conf").write_text(
            f"[vm one]\nsocket = {self.folder}/other.sock\nsize = 2G\n")
        self.host.reload()
        reason = self.hook("prepare", self.domain(), status=REFUSED)
        self.assertRegex(reason, rf"one\.conf:1: \[vm one\] has the socket {self.folder}/other")

    def test_the_end_of_another_domain_leaves_it(self):
        """libvirt also announces the end of a domain whose start was refused."""
        self.hook("prepare", self.domain())
        self.hook("release", self.domain(uuid=SECOND))
        self.there_is("one")
        self.hook("release", self.domain())
        self.there_is()

    def test_what_a_host_that_lost_its_power_has_left(self):
        """The domain may have been defined anew since."""
        self.hook("prepare", self.domain())
        self.hook("prepare", self.domain(uuid=SECOND))
        self.assertIn(SECOND, (self.files / "one.conf").read_text())
        self.hook("release", self.domain(uuid=SECOND))
        self.there_is()

    def test_two_devices(self):
        devices = self.device("a") + self.device("b")
        self.hook("prepare", self.domain(devices))
        self.there_is("a", "b")
        self.hook("release", self.domain(devices))
        self.there_is()

    def test_descriptions_that_are_none(self):
        for text in ("", "no XML", "<domain/>", "<domain><uuid>x</uuid></domain>",
                     self.domain().replace(FIRST, "../" * 12),
                     '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">]><domain><uuid>&a;</uuid></domain>',
                     "<domain>" + " " * (4 << 20)):
            for operation in ("prepare", "release"):
                self.hook(operation, text, status=REFUSED)
        self.there_is()

    def test_names_that_vgpud_does_not_take(self):
        reason = self.hook("prepare", self.domain(self.device("a b")), status=REFUSED)
        self.assertIn("the name of a VM has letters", reason)
        self.hook("prepare", self.domain(self.device("x" * 300)))
        self.there_is()

    def test_a_folder_that_cannot_be_written(self):
        self.files.rmdir()
        self.files.write_text("")
        try:
            self.assertIn("Not a directory", self.hook("prepare", self.domain(), status=FAILED))
        finally:
            self.files.unlink()
        self.assertEqual(self.vms(), ["raw"])

    def test_the_file_that_is_installed(self):
        """Without vgpuctl it does nothing: a package that is removed leaves it."""
        text = SCRIPT.read_text()
        program = text.split("exec ")[1].split()[0]
        self.assertTrue(program.endswith("/bin/vgpuctl"), text)
        script = self.folder / "hook"
        script.write_text(text.replace(program, str(self.folder / "bin/vgpuctl")))
        script.chmod(0o755)
        self.hook("prepare", self.domain(), command=[script])
        self.there_is()
        (self.folder / "bin").mkdir()
        shutil.copy(CTL, self.folder / "bin/vgpuctl")
        # Its own socket is not that of the domain.
        self.assertEqual(self.hook("prepare", self.domain(""), command=[script]), "")
        os.remove(self.folder / "bin/vgpuctl")
        (self.folder / "bin/vgpuctl").write_text(
            f"#!/bin/sh\nexec {CTL} --socket {self.socket} \"$@\"\n")
        (self.folder / "bin/vgpuctl").chmod(0o755)
        self.hook("prepare", self.domain(), command=[script])
        self.there_is("one")


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
