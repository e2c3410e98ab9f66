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
        "copy-bandwidth = 1G\ndevices = 0\ncpu = 100\n"
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
    "flight-folder": PATHS,
    "log-level": ("", "loud", "4"),
    "ctl-socket": ("", "yes", "/" + 108 * "s"),
    "ctl-admins": GROUPS, "ctl-monitors": GROUPS,
    "warm-workers": NUMBERS + ("4097",),
    "max-workers": NUMBERS + ("0", "4097"),
    "quantum": NUMBERS + ("0", "1001"),
    "device-memory-total": SIZES,
    "meter": TRUTHS,
    "evict-idle": NUMBERS + ("0", "86401"),
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
    "copy-bandwidth": SIZES + ("1023K",),
    "handles": NUMBERS + ("15", "262145"),
    "cpu": NUMBERS + ("0", "100001", "50%"),
    "max-threads": NUMBERS + ("0", "1025"),
    "max-processes": NUMBERS + ("0", "4097"),
    "weight": NUMBERS + ("0", "10001"),
    "priority": ("", "highest", "0"),
    "devices": NUMBERS + ("64", "0,0", "0,", "GPU-abc", "MIG-0123", "all"),
    "paused": ("", "maybe", "1"),
    "evictable": ("", "maybe", "1"),
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
           "--interval": ["1"], "--sort": ["name"], "--process": ["1"], "--call": ["cu"],
           "--output": ["trace"], "--seconds": ["1"], "--merge": ["trace"],
           "--command": ["sleep"]}
VERBS = {"list": [], "show": ["two"], "set": ["two", "handles=77"], "pause": ["two"],
         "resume": ["two"], "attach": ["two"], "detach": ["two"], "doctor": [],
         "logs": ["two"], "log-level": ["debug"], "stats": ["two"], "version": []}
NAMES = ("three", "x" * 5000, "../two", "two\n", "[vm two]", "\033[2J", "two ", "TWO", "%s%n",
         b"\xff\xfe")


def keys_of(kind):
    text = (SOURCE / "host-daemon/vgpud/config.c").read_text()
    return set(re.findall(rf'^\t{kind}_(?:KEY|NUMBER)\("([^"]+)"', text, re.M))


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
        self.assertEqual(len(live), 19)
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

    def test_values_of_stats(self):
        for pid in NUMBERS + ("0", "4294967296", "1.5"):
            self.fails(["stats", "--process", pid, "two"], USAGE)
        for column in NAMES + ("", "TIME", "time,max", "0"):
            self.fails(["stats", "--sort", column, "two"], USAGE)
        for vm in NAMES:
            self.fails(["stats", vm], (NO_VM, REFUSED))
        self.fails(["stats", "--process", "77", "two"], FAILED, "no process 77")

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


class FilesAtStart(unittest.TestCase):
    """A file of a VM that is wrong when vgpud starts, or reads it for the first time."""

    def prepare(self, folder):
        self.config, self.socket, self.files = (folder / "vgpud.conf", folder / "control",
                                                folder / "vm.d")
        self.files.mkdir()
        self.put("a", "size = 3\n")
        self.put("b", "handles = 77\n")
        (self.files / "c.conf").symlink_to("nowhere")
        (self.files / "d.conf").write_text("# nothing\n")
        return f"ctl-socket = {self.socket}\n"

    def put(self, name, more=""):
        (self.files / f"{name}.conf").write_text(
            f"[vm {name}]\ntransport = socket\nsocket = {self.files.parent / name}\n{more}")

    def setUp(self):
        self.host = Host(BUILD, prepare=self.prepare,
                         extra=f"worker = {BUILD}/tests/broker/fake-worker\n")
        self.host.__enter__()
        self.addCleanup(self.host.__exit__)

    def ctl(self, *words):
        return subprocess.run([CTL, "--socket", self.socket, *words], timeout=60, text=True,
                              capture_output=True, check=False)

    def served(self):
        done = json.loads(self.ctl("list", "--json").stdout)
        return [vm["name"] for vm in done["vms"]], done["not_served"]

    def check(self):
        return subprocess.run([BUILD / "host-daemon/main/vgpud", "--check", "--config",
                               self.config], timeout=60, text=True, capture_output=True,
                              check=False)

    def reload(self, answer="is in force"):
        n_before = len(re.findall(answer, self.host.text()))
        self.host.process.send_signal(signal.SIGHUP)
        self.host.wait_for(answer, n_before + 1)

    def test_the_others_are_served(self):
        place = f"{self.files}/a.conf:4: size is "
        # At its start vgpud says so before it has opened its log file.
        self.reload()
        self.host.wait_for(re.escape(place))
        self.host.wait_for(r"/a\.conf is left out: \[vm a\] is not served")
        self.host.wait_for(r"/c\.conf:0: it cannot be read: No such file")
        self.host.wait_for(r"/d\.conf has no section \[vm d\]")
        names, left_out = self.served()
        self.assertEqual(names, ["b", "raw"])
        self.assertEqual([entry["name"] for entry in left_out], ["a", "c", "d"])
        self.assertEqual([entry["file"] for entry in left_out],
                         [f"{self.files}/{name}.conf" for name in "acd"])
        self.assertIn(place, left_out[0]["reason"])
        self.assertIn("it cannot be read", left_out[1]["reason"])
        self.assertEqual(left_out[2]["reason"], "it has no section")

        said = self.ctl("list").stderr.splitlines()
        self.assertEqual(len(said), 3)
        self.assertTrue(said[0].startswith(f"vgpuctl: a is not served: {place}"), said)
        self.assertEqual(said[2],
                         f"vgpuctl: d is not served: {self.files}/d.conf: it has no section")
        found = self.ctl("doctor").stdout
        self.assertIn(place, found)
        self.assertRegex(found, r"configuration: .*/c\.conf:0: ")

        done = self.check()
        self.assertEqual(done.returncode, 2, done)
        self.assertIn(place, done.stderr)

    def test_an_empty_file_is_no_mistake(self):
        self.put("a")
        (self.files / "c.conf").unlink()
        done = self.check()
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("d.conf has no section [vm d]", done.stderr)

    def test_a_reload_takes_those_that_are_right(self):
        self.put("e")
        self.assertEqual(self.served()[1][-1]["reason"],
                         "vgpud has not read it: systemctl reload vgpud")
        self.reload()
        self.assertEqual(self.served()[0], ["b", "e", "raw"])
        self.put("a")
        self.reload()
        self.assertEqual(self.served()[0], ["a", "b", "e", "raw"])

    def test_a_vm_that_is_served_keeps_its_device(self):
        self.put("b", "size = 3\n")
        self.put("e")
        self.reload("the configuration stays as it was")
        self.assertEqual(self.served()[0], ["b", "raw"])
        # The file of another VM that takes its socket is refused by it as well.
        self.put("b", "handles = 77\n")
        (self.files / "0.conf").write_text(
            f"[vm 0]\ntransport = socket\nsocket = {self.files.parent / 'b'}\n")
        self.reload("the configuration stays as it was")
        self.assertEqual(self.served()[0], ["b", "raw"])
        (self.files / "0.conf").unlink()
        self.reload()
        self.assertEqual(self.served()[0], ["b", "e", "raw"])

    def test_the_main_file_has_to_be_right(self):
        self.config.write_text(self.config.read_text() + "handles = many\n")
        self.reload("the configuration stays as it was")
        self.assertEqual(self.check().returncode, 2)
        done = subprocess.run([BUILD / "host-daemon/main/vgpud", "--config", self.config],
                              timeout=60, capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)

    def test_a_change_by_vgpuctl_leaves_them_out_as_well(self):
        self.assertEqual(self.ctl("set", "b", "handles=99").returncode, 0)
        self.assertEqual(self.served()[0], ["b", "raw"])


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
