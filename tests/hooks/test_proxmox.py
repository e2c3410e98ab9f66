#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hookscript of Proxmox VE, run as Proxmox runs it, against a vgpud; and QEMU with the
line that it asks for.

    test_proxmox.py BUILD
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

HOOK = BUILD / "qemu/vgpu-proxmox-hook"
CTL = BUILD / "host-daemon/ctl/vgpuctl"
FAILED, USAGE = 1, 125
QEMU = shutil.which("qemu-system-x86_64")


class Proxmox(unittest.TestCase):
    def setUp(self):
        self.host = Host(BUILD, prepare=self.prepare,
                         extra=f"worker = {BUILD}/tests/broker/fake-worker\n")
        self.host.__enter__()
        self.is_up = True
        self.addCleanup(self.stop)

    def prepare(self, folder):
        """Also a vgpuctl in PATH, and Proxmox's folder of machines."""
        self.folder, self.files, self.pve = folder, folder / "vm.d", folder / "pve"
        self.files.mkdir()
        self.pve.mkdir()
        (folder / "bin").mkdir()
        program = folder / "bin/vgpuctl"
        program.write_text(f"#!/bin/sh\nexec {CTL} --socket {folder}/control \"$@\"\n")
        program.chmod(0o755)
        return f"ctl-socket = {folder}/control\n"

    def stop(self):
        if self.is_up:
            self.host.__exit__()
        self.is_up = False

    def run_hook(self, vmid, phase, status=0, path=None):
        """Proxmox runs it with these two arguments, and shows what it prints."""
        done = subprocess.run(
            [HOOK, vmid, phase], text=True, capture_output=True, check=False, timeout=120,
            env=dict(os.environ, PATH=path or f"{self.folder}/bin:{os.environ['PATH']}",
                     VGPU_PVE_FOLDER=str(self.pve), VGPU_SOCKET_FOLDER=str(self.folder)))
        self.assertEqual(done.returncode, status, done)
        self.assertNotIn("Traceback", done.stderr)
        return done.stdout + done.stderr

    def line(self, vmid):
        return f"-chardev socket,id=vgpu,path={self.folder}/{vmid}.sock " \
            "-device ivshmem-doorbell,chardev=vgpu,vectors=32"

    def configure(self, vmid, args, more=""):
        (self.pve / f"{vmid}.conf").write_text(
            f"args: {args}\nboot: order=scsi0\ncores: 2\nmemory: 2048\nname: m\n{more}")

    def test_the_first_start_makes_the_machine_known(self):
        self.configure(101, self.line(101))
        self.assertIn("vgpud serves the machine", self.run_hook("101", "pre-start"))
        text = (self.files / "101.conf").read_text()
        self.assertIn(f"[vm 101]\ntransport = ivshmem\nsocket = {self.folder}/101.sock\n", text)
        self.assertEqual((self.files / "101.conf").stat().st_mode & 0o777, 0o644)
        self.assertTrue((self.folder / "101.sock").is_socket())
        for phase in ("post-start", "pre-stop", "post-stop"):
            self.assertEqual(self.run_hook("101", phase), "")
        # The second finds it, and limits that were set meanwhile.
        with open(self.files / "101.conf", "a", encoding="utf-8") as file:
            file.write("device-memory = 1G\n")
        self.host.reload()
        self.assertEqual(self.run_hook("101", "pre-start"), "")
        self.assertIn("device-memory = 1G\n", (self.files / "101.conf").read_text())
        self.assertEqual([path.name for path in self.files.iterdir()], ["101.conf"])

    def test_a_file_that_vgpud_has_not_read_yet(self):
        self.configure(102, self.line(102))
        (self.files / "102.conf").write_text(
            f"[vm 102]\nsocket = {self.folder}/102.sock\nsize = 2G\nhandles = 77\n")
        self.run_hook("102", "pre-start")
        self.assertIn("handles = 77\n", (self.files / "102.conf").read_text())
        self.assertTrue((self.folder / "102.sock").is_socket())

    def test_args_that_do_not_connect(self):
        for args in ("", "-vga none", "-cpu host", self.line(101), self.line(1033),
                     f"-chardev socket,id=vgpu,path={self.folder}/103.sock",
                     f"-chardev socket,id=vgpu,path={self.folder}/103.sock2 "
                     "-device ivshmem-doorbell,chardev=vgpu,vectors=32"):
            with self.subTest(args):
                self.configure(103, args)
                said = self.run_hook("103", "pre-start", FAILED)
                self.assertIn(f"qm set 103 --args '{self.line(103)}'", said)
        # Those of a snapshot are not those of the machine.
        self.configure(103, "-vga none", f"\n[before]\nargs: {self.line(103)}\n")
        self.run_hook("103", "pre-start", FAILED)
        # What it asks for is what it takes, also with quotation marks.
        self.configure(103, self.line(103))
        self.run_hook("103", "pre-start")
        self.configure(103, self.line(103).replace("path=", "'path=").replace(
            ".sock", ".sock'"))
        self.run_hook("103", "pre-start")

    def test_hosts_that_cannot_serve(self):
        self.assertIn("104.conf: No such file", self.run_hook("104", "pre-start", FAILED))
        self.configure(104, self.line(104))
        bare = self.folder / "bare"
        bare.mkdir()
        (bare / "python3").symlink_to(shutil.which("python3"))
        self.assertIn("vgpuctl: No such file",
                      self.run_hook("104", "pre-start", FAILED, path=str(bare)))
        self.stop()
        self.folder.mkdir()
        self.pve.mkdir()
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "bin").mkdir()
        self.configure(104, self.line(104))
        program = self.folder / "bin/vgpuctl"
        program.write_text(f"#!/bin/sh\nexec {CTL} --socket {self.folder}/control \"$@\"\n")
        program.chmod(0o755)
        self.assertIn("(systemctl start vgpud)", self.run_hook("104", "pre-start", FAILED))
        # A stopped machine can still be looked after.
        self.assertEqual(self.run_hook("104", "post-stop"), "")

    def test_a_configuration_that_vgpud_refuses(self):
        """Its mistake is elsewhere; the machine's file does not stay to surprise anybody."""
        self.configure(105, self.line(105))
        with open(self.folder / "vgpud.conf", "a", encoding="utf-8") as config:
            config.write("nonsense = 1\n")
        program = self.folder / "hook"
        # As the hook is, but less patient.
        program.write_text(HOOK.read_text().replace("RELOAD_SECONDS = 30",
                                                    "RELOAD_SECONDS = 2"))
        program.chmod(0o755)
        done = subprocess.run(
            [program, "105", "pre-start"], text=True, capture_output=True, check=False,
            env=dict(os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}",
                     VGPU_PVE_FOLDER=str(self.pve), VGPU_SOCKET_FOLDER=str(self.folder)))
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("vgpud --check and its log say why", done.stderr)
        self.assertEqual(list(self.files.iterdir()), [])
        self.assertIn('no key "nonsense"', self.host.text())

    def test_a_mistake_in_the_file_of_another_machine(self):
        self.configure(105, self.line(105))
        (self.files / "wrong.conf").write_text("[vm wrong]\nnonsense = 1\n")
        self.run_hook("105", "pre-start")
        self.assertTrue((self.files / "105.conf").exists())
        self.assertIn("wrong.conf:2", self.host.text())

    def test_another_transport(self):
        self.configure(106, self.line(106))
        (self.files / "106.conf").write_text(
            f"[vm 106]\ntransport = socket\nsocket = {self.folder}/106.sock\nsize = 256M\n")
        self.host.reload()
        self.assertIn("not with transport = ivshmem", self.run_hook("106", "pre-start", FAILED))

    def test_arguments(self):
        for vmid in ("", "0", "12", "../101", "101;id", "101\n", "-1", "1" * 40, "a" * 9000):
            said = self.run_hook(vmid, "pre-start", USAGE)
            self.assertIn("is not a VMID", said)
            self.assertLess(len(said), 200)
        self.assertEqual(list(self.files.iterdir()), [])
        # Phases of other releases are none of its business.
        self.assertEqual(self.run_hook("101", "pre-something"), "")
        for words in ([], ["101"], ["101", "pre-start", "more"]):
            done = subprocess.run([HOOK, *words], capture_output=True, check=False)
            self.assertEqual(done.returncode, USAGE)

    @unittest.skipUnless(QEMU, "qemu-system-x86_64 is not installed")
    def test_qemu_takes_the_line(self):
        self.configure(107, self.line(107))
        self.run_hook("107", "pre-start")
        with tempfile.TemporaryFile() as output:
            qemu = subprocess.Popen(
                [QEMU, "-machine", "q35", "-accel", "tcg", "-m", "64", "-nodefaults",
                 "-display", "none", "-S", *shlex.split(self.line(107))],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            try:
                self.host.wait_for("vm=107 id=.*: the VM connected .transport ivshmem")
            finally:
                qemu.kill()
                qemu.wait()


if __name__ == "__main__":
    tap.unittest_main()
