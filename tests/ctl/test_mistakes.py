#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in every key of the configuration and in every verb of vgpuctl: each is refused
with its reason, and vgpud goes on as before. test_mistakes.py BUILD HAS_LIBVIRT"""

import json
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests/lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

CTL = BUILD / "host-daemon/ctl/vgpuctl"
HAS_LIBVIRT = sys.argv[2] == "yes"
FAILED, USAGE, NO_VGPUD, NO_VM, REFUSED = 1, 2, 3, 5, 6
# Keys that have no default are there, so that they are shown.
FILE = ("[vm two]\ntransport = socket\nsocket = {}\ndevice-memory = 1G\nhost-memory = 8G\n"
        "socket-group = 0\n")

PATHS = ("", "relative/path")
NUMBERS = ("", "-1", "1e3", "0x10", " ", "1 2", "99999999999999999999", "many")
SIZES = ("", "0", "-1", "4GB", "1.5G", "G", "99999999999999999999", "17179869184G")
GROUPS = ("", "no such group", "-1", "99999999999")
TRUTHS = ("", "1", "Yes", "true")

VGPUD_KEYS = {
    "driver": ("", "cuda", "relative/path"),
    "worker": PATHS, "softgpu": PATHS, "null-driver": PATHS, "sensors": PATHS,
    "nvml": ("", "yes", "relative/path"),
    "log-file": PATHS,
    "log-level": ("", "loud", "4"),
    "ctl-socket": ("", "yes", "/" + 108 * "s"),
    "ctl-admins": GROUPS, "ctl-monitors": GROUPS,
    "warm-workers": NUMBERS + ("4097",),
    "max-workers": NUMBERS + ("0", "4097"),
    "sandbox": TRUTHS, "allow-unprivileged": TRUTHS,
    "worker-uids": ("", "70000", "1-2", "999-5000", "74095-70000", "70000-74095x"),
    "softgpu-name": ("",),
    "softgpu-cc": ("", "12", "12.", ".1", "12.1x"),
    "softgpu-memory": SIZES,
    "softgpu-threads": NUMBERS + ("0", "4097"),
    "softgpu-kernel-timeout": NUMBERS + ("86401",),
    "softgpu-devices": NUMBERS + ("0", "9"),
    "softgpu-schedule": ("", "fare"),
    "softgpu-check": ("", "1", "memory,", "memory, races"),
}
VM_KEYS = {
    "transport": ("", "tcp"),
    "socket": PATHS + ("/" + 108 * "s",),
    "memory": PATHS + ("/dev/shm/it-is-for-plain",),
    "memory-owner": ("", "no such user", "-1", "0"),
    "size": SIZES + ("32M", "48M", "512G"),
    "hugepages": ("", "yes", "hugetlb"),
    "device-memory": SIZES, "image-memory": SIZES, "image-store": SIZES, "host-memory": SIZES,
    "handles": NUMBERS + ("15", "262145"),
    "max-processes": NUMBERS + ("0", "4097"),
    "process-rate": NUMBERS + ("0", "1001"),
    "log-lines": NUMBERS + ("0", "100001"),
    "softgpu-launch-timeout": NUMBERS + ("86401",),
    "socket-mode": ("", "888", "01000", "rw", "-1"),
    "socket-group": GROUPS,
}
# What mistakes of one key alone are reported with: the line of the key, or its section's.
OF_SECTION = {("memory", "/dev/shm/it-is-for-plain"), ("memory-owner", "0"),
              ("hugepages", "hugetlb")}

OPTIONS = {"--persistent": [], "--connect": ["test:///default"], "--config": [],
           "--size": ["256M"], "--vram": ["1G"], "--wait": ["1"], "--once": [],
           "--interval": ["1"], "--sort": ["name"]}
VERBS = {"list": [], "show": ["two"], "set": ["two", "handles=77"], "attach": ["two"],
         "detach": ["two"], "doctor": [], "logs": ["two"], "log-level": ["debug"],
         "version": []}
NAMES = ("three", "x" * 5000, "../two", "two\n", "[vm two]", "\033[2J", "two ", "TWO", "%s%n",
         b"\xff\xfe")


def keys_of(kind):
    text = (SOURCE / "host-daemon/vgpud/config.c").read_text()
    return set(re.findall(rf'^\t{kind}_KEY\("([^"]+)"', text, re.M))


class Mistakes(unittest.TestCase):
    def setUp(self):
        self.host = Host(BUILD, prepare=self.prepare,
                         extra=f"worker = {BUILD}/tests/broker/fake-worker\n")
        self.host.__enter__()
        self.before = self.state()

    def prepare(self, folder):
        self.config, self.socket = folder / "vgpud.conf", folder / "control"
        self.two = folder / "vm.d/two.conf"
        self.two.parent.mkdir()
        self.two.write_text(FILE.format(folder / "two"))
        return f"ctl-socket = {self.socket}\n"

    def tearDown(self):
        try:
            self.assertEqual(self.state(), self.before)
        finally:
            self.host.__exit__()

    def ctl(self, *words):
        return subprocess.run([CTL, "--socket", self.socket, *words], timeout=60,
                              capture_output=True, check=False)

    def json(self, *words):
        done = self.ctl(*words, "--json")
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stdout)

    def state(self):
        """What vgpud has, and the files of its VMs."""
        return ([(vm["name"], self.json("show", vm["name"])["settings"])
                 for vm in self.json("list")["vms"]],
                {path.name: path.read_bytes() for path in self.two.parent.iterdir()})

    def fails(self, words, status, reason=""):
        done = self.ctl(*words)
        self.assertIn(done.returncode, status if isinstance(status, tuple) else (status,),
                      (words, done))
        self.assertEqual(done.stdout, b"", words)
        complaint = done.stderr.decode(errors="replace")
        self.assertTrue(complaint.startswith("vgpuctl: "), (words, done))
        self.assertIn(reason, complaint)

    def reload(self, file, text, place):
        """vgpud refuses it with that place."""
        right = file.read_text()
        pattern = re.escape(place) + r"\S.*"
        n_before = len(re.findall(pattern, self.host.text()))
        file.write_text(text)
        self.host.process.send_signal(signal.SIGHUP)
        self.host.wait_for(pattern, n_before + 1)
        file.write_text(right)

    def test_all_keys_are_here(self):
        self.assertEqual(set(VGPUD_KEYS), keys_of("VGPUD"))
        self.assertEqual(set(VM_KEYS), keys_of("VM"))

    def reload_with(self, file, head, key, value):
        lines = [line for line in file.read_text().splitlines()
                 if not line.startswith(f"{key} =")]
        number = lines.index(head) + 1
        lines.insert(number, f"{key} = {value}")
        line = number if (key, value) in OF_SECTION else number + 1
        self.reload(file, "\n".join(lines) + "\n", f"{file}:{line}: ")

    def test_each_key_of_vgpud(self):
        for key, values in VGPUD_KEYS.items():
            for value in values:
                self.reload_with(self.config, "[vgpud]", key, value)

    def test_each_key_of_a_vm(self):
        for key, values in VM_KEYS.items():
            for value in values:
                self.reload_with(self.two, "[vm two]", key, value)

    def test_each_key_by_set(self):
        """Without a value a key has its default again, which is no mistake."""
        live = self.json("show", "two")["live"]
        self.assertEqual(len(live), 11)
        for key, values in VM_KEYS.items():
            for extra in ([], ["--persistent"]):
                for value in [value for value in values if value.strip()]:
                    self.fails(["set", *extra, "two", f"{key}={value}"], REFUSED,
                               f"{self.two}:" if key in live else "")
                if key not in live:
                    self.fails(["set", *extra, "two", f"{key}="], REFUSED)
        for key in VGPUD_KEYS:
            self.fails(["set", "two", f"{key}=1"], REFUSED)

    def test_values_that_would_be_lines_or_sections(self):
        for extra in ([], ["--persistent"]):
            for words in (["handles=77\nprocess-rate=1"], ["handles\nsize=77"],
                          ["handles=77 ; x"], ["handles=\t77"], ["#handles=77"],
                          ["[vm three]\nsocket=/x"], [b"handles=\xff"], ["handles=" + 300 * "7"],
                          ["handles=77", "handles=many"], [";=1"], [" handles=77"],
                          ["handles =77"], ["HANDLES=77"]):
                self.fails(["set", *extra, "two", *words], REFUSED)
        self.fails(["set", "two", "handles=" + 20000 * "7"], REFUSED)
        self.fails(["set", "two", *(100 * ["handles=77"])], USAGE)

    def test_names(self):
        for name in NAMES:
            self.fails(["show", name], (NO_VM, REFUSED))
            self.fails(["logs", name], (NO_VM, REFUSED))
            self.fails(["set", name, "handles=77"], (NO_VM, REFUSED))
            self.fails(["set", "--persistent", name, "handles=77"], (NO_VM, REFUSED, FAILED))
            if HAS_LIBVIRT:
                for verb in ("attach", "detach"):
                    self.fails([verb, "--connect", "test:///default", name],
                               (NO_VM, REFUSED, FAILED))
        for verb in ("show", "logs"):
            self.fails([verb, ""], (NO_VM, REFUSED))
        for verb in ("attach", "detach"):
            self.fails([verb, ""], NO_VM)

    def test_sizes_of_attach(self):
        for size in SIZES:
            for option in ("--size", "--vram"):
                self.fails(["attach", "--connect", "test:///default", option, size, "two"],
                           (USAGE, REFUSED, NO_VM))

    def test_waits_of_attach(self):
        for wait in NUMBERS + ("86401", "1.5"):
            self.fails(["attach", "--connect", "test:///default", "--wait", wait, "two"],
                       (USAGE, REFUSED, NO_VM))

    def test_values_of_top(self):
        for interval in NUMBERS + ("0", "86401", "1.5"):
            self.fails(["top", "--once", "--interval", interval], USAGE)
        for column in NAMES + ("", "BUSY", "busy,host", "0"):
            self.fails(["top", "--once", "--sort", column], USAGE)
        for vm in NAMES:
            self.fails(["top", "--once", "--interval", "1", vm], (NO_VM, REFUSED))

    def test_options_of_other_verbs(self):
        for verb, words in VERBS.items():
            synopsis = self.ctl(verb, "--help").stdout.decode().splitlines()[0]
            for option, argument in OPTIONS.items():
                if f"[{option}" not in synopsis:
                    self.fails([verb, option, *argument, *words], USAGE,
                               f"{verb} has no {option}")

    def test_arguments_that_lack_or_are_too_many(self):
        for verb, words in VERBS.items():
            if words:
                self.fails([verb, *words[:-1]], USAGE)
            if verb != "set":
                self.fails([verb, *words, "more"], USAGE)
        for level in ("", "much", "DEBUG", "4"):
            self.fails(["log-level", level], USAGE)

    def test_sockets_of_nobody(self):
        for socket in ("", "/", "relative", str(self.two), str(self.two.parent)):
            done = subprocess.run([CTL, "--socket", socket, "list"], capture_output=True,
                                  check=False, timeout=60)
            self.assertEqual(done.returncode, NO_VGPUD, (socket, done))


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
