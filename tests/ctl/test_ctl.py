#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl against a vgpud with a fake worker: test_ctl.py BUILD"""

import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests/lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

CTL = BUILD / "host-daemon/ctl/vgpuctl"
FAILED, USAGE, NO_VGPUD, DENIED, NO_VM, REFUSED = 1, 2, 3, 4, 5, 6
VERBS = ["list", "show", "set", "pause", "resume", "attach", "detach", "hook", "doctor",
         "logs", "log-level", "record", "stats", "top", "trace", "version"]
FILE = "# mine\n[vm two]\ntransport = socket\nsocket = {}\n\nhandles = 99 ; few\n"


class Ctl(unittest.TestCase):
    def setUp(self):
        self.host = Host(BUILD, prepare=self.prepare,
                         extra=f"worker = {BUILD}/tests/broker/fake-worker\n")
        self.host.__enter__()

    def prepare(self, folder):
        """Another machine, in a file of its own."""
        self.folder, self.socket = folder, folder / "control"
        self.two = folder / "vm.d/two.conf"
        self.two.parent.mkdir()
        self.two.write_text(FILE.format(folder / "two"))
        return f"ctl-socket = {self.socket}\n"

    def tearDown(self):
        self.host.__exit__()

    def run_ctl(self, *words, status=0, **options):
        """Returns what it prints, and what it complains about."""
        done = subprocess.run([CTL, "--socket", self.socket, *words], text=True, timeout=60,
                              stdout=options.pop("stdout", subprocess.PIPE),
                              stderr=subprocess.PIPE, check=False, **options)
        self.assertEqual(done.returncode, status, (words, done))
        self.assertEqual(bool(done.stderr), bool(status), (words, done))
        return done.stdout, done.stderr

    def json(self, *words):
        return json.loads(self.run_ctl(*words, "--json")[0])

    def setting(self, key, vm="two"):
        return self.json("show", vm)["settings"].get(key)

    def test_list(self):
        vms = self.json("list")["vms"]
        self.assertEqual([vm["name"] for vm in vms], ["raw", "two"])
        self.assertEqual(vms[1]["place"], f"{self.two}:2")
        self.assertIsNone(vms[1]["device_memory_limit"])
        lines = self.run_ctl("list")[0].splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[2], r"^two +socket +0 +0/64 ")

    def test_show(self):
        shown = self.json("show", "two")
        self.assertEqual(shown["settings"]["handles"], "99")
        self.assertIn("handles", shown["live"])
        self.assertNotIn("socket", shown["live"])
        self.assertEqual(shown["processes"], [])
        text = self.run_ctl("show", "two")[0]
        self.assertRegex(text, r"(?m)^ \* handles = 99$")
        self.assertRegex(text, r"(?m)^   transport = socket$")
        self.run_ctl("show", "three", status=NO_VM)

    def test_top_once(self):
        shown = self.json("top", "--interval", "1", "--sort", "name")
        self.assertEqual([vm["name"] for vm in shown["vms"]], ["raw", "two"])
        self.assertEqual((shown["seconds"], shown["processes"]), (1, []))
        self.assertEqual([vm["name"] for vm in self.json(
            "top", "--interval", "1", "two")["vms"]], ["two"])
        lines = self.run_ctl("top", "--once", "--interval", "1")[0].splitlines()
        self.assertRegex(lines[0], "^2 virtual machines, 0 processes, sorted by busy$")
        self.assertRegex(lines[1], "^MACHINE +BUSY +HELD +QUEUE +LAUNCH/S ")
        self.assertRegex(lines[2], r"^raw +- +0\.00 +- +0 +0 ")
        self.run_ctl("top", "--once", "--interval", "1", "three", status=NO_VM)
        self.assertRegex(self.run_ctl("top", status=USAGE, stdin=subprocess.DEVNULL)[1],
                         "not a terminal")

    def watch(self, keys, end):
        """Runs top on a terminal: returns what it drew for each key, and its status."""
        main, terminal = os.openpty()
        before = termios.tcgetattr(terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 80, 0, 0))
        with subprocess.Popen([CTL, "--socket", self.socket, "top", "--interval", "60"],
                              stdin=terminal, stdout=terminal, stderr=terminal) as top:
            drawn = [self.read_until(main, b"\033[J")]
            # The first rates follow, and nothing for a minute then.
            drawn.append(self.read_until(main, b"\033[J"))
            for key in keys:
                os.write(main, key)
                drawn.append(self.read_until(main, b"\033[J"))
            end(top, main)
            self.read_until(main, b"\033[?25h")
            status = top.wait(60)
        self.assertEqual(termios.tcgetattr(terminal), before)
        os.close(main)
        os.close(terminal)
        return drawn, status

    def read_until(self, terminal, mark):
        text = b""
        while mark not in text:
            self.assertTrue(select.select([terminal], [], [], 60)[0], text)
            text += os.read(terminal, 4096)
        return text.decode()

    def test_top_on_a_terminal(self):
        drawn, status = self.watch([b"s", b"m", b"i", b"p"],
                                   lambda _, main: os.write(main, b"q"))
        self.assertEqual(status, 0)
        self.assertIn("sorted by busy", drawn[1])
        self.assertRegex(drawn[1], r"two +- +0\.00 +- +0 ")
        self.assertIn("q quit", drawn[1])
        self.assertIn("sorted by launches", drawn[2])
        self.assertNotRegex(drawn[3], r"two +- +0\.00 +- +0 ")
        self.assertIn("PID PROCESS", drawn[3])
        self.assertIn("do nothing", drawn[4])
        self.assertNotIn("PID PROCESS", drawn[5])

    def test_top_gives_the_terminal_back_however_it_ends(self):
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            self.assertEqual(self.watch([], lambda top, _, n=number: top.send_signal(n))[1],
                             0)

    def test_version(self):
        version = self.json("version")
        self.assertEqual(version["vgpud"], version["vgpuctl"])
        self.assertEqual(version["pid"], self.host.process.pid)
        self.assertEqual(version["access"], "admin")
        self.assertEqual(version["config"], str(self.folder / "vgpud.conf"))

    def test_set_until_the_files_are_read_again(self):
        before = self.two.read_text()
        self.assertTrue(self.json("set", "two", "handles=77", "device-memory=1G")["changed"])
        self.assertEqual(self.setting("handles"), "77")
        self.assertEqual(self.json("show", "two")["device_memory_limit"], 1 << 30)
        self.assertFalse(self.json("set", "two", "handles=77")["changed"])
        self.assertEqual(self.run_ctl("set", "two", "handles=77")[0], "it was so already\n")
        self.assertEqual(self.two.read_text(), before)
        self.run_ctl("set", "two", "device-memory=")
        self.assertIsNone(self.setting("device-memory"))
        self.host.process.send_signal(signal.SIGHUP)
        self.host.wait_for("SIGHUP: .* is in force")
        self.assertEqual(self.setting("handles"), "99")

    def test_pause_and_resume(self):
        before = self.two.read_text()
        self.assertEqual(self.json("pause", "two"), {"changed": True, "file": None})
        self.assertEqual(self.setting("paused"), "yes")
        self.assertEqual(self.run_ctl("pause", "two")[0], "it was so already\n")
        self.assertEqual(self.two.read_text(), before)
        self.assertTrue(self.json("resume", "two")["changed"])
        self.assertEqual(self.setting("paused"), "no")
        self.assertFalse(self.json("resume", "two")["changed"])
        self.assertEqual(self.json("pause", "--persistent", "two")["file"], str(self.two))
        self.assertIn("paused = yes", self.two.read_text())
        self.host.process.send_signal(signal.SIGHUP)
        self.host.wait_for("SIGHUP: .* is in force")
        self.assertEqual(self.setting("paused"), "yes")
        self.run_ctl("resume", "--persistent", "two")
        self.assertIn("paused = no", self.two.read_text())

    def test_what_keeps_a_limit_of_cpu_time_is_shown(self):
        shown = self.json("show", "two")
        self.assertEqual((shown["cpu_limit"], shown["cpu_limit_by"]), (None, None))
        # Not started with --own-group.
        self.assertEqual((shown["host_memory_limit_by"], shown["oom_kills"]), ("measured", 0))
        self.assertRegex(self.run_ctl("show", "two")[0], r"  host memory    \S+, measured\n")
        self.run_ctl("set", "two", "cpu=50")
        shown = self.json("show", "two")
        self.assertEqual(shown["cpu_limit"], 50)
        words = {"cgroup": "by a control group", "kernels": "kernels only",
                 "none": "nothing keeps it"}
        self.assertIn(f"cpu limit      50 %, {words[shown['cpu_limit_by']]}\n",
                      self.run_ctl("show", "two")[0])
        if shown["cpu_limit_by"] != "cgroup":
            self.host.wait_for("cpu = of 1 virtual machines is kept for kernels of softgpu "
                               "only: ")
        self.run_ctl("set", "two", "cpu=")
        self.assertNotIn("cpu limit", self.run_ctl("show", "two")[0])

    def test_set_persistent(self):
        before = self.two.read_text()
        self.run_ctl("set", "two", "process-rate=7")  # not in the file, nor below
        changed = self.json("set", "--persistent", "two", "handles=77")
        self.assertEqual(changed, {"changed": True, "file": str(self.two)})
        self.assertEqual(self.two.read_text(),
                         before.replace("handles = 99 ; few", "handles = 77"))
        self.assertEqual(sorted(os.listdir(self.two.parent)), ["two.conf"])
        self.assertEqual(self.setting("process-rate"), "7")
        self.host.process.send_signal(signal.SIGHUP)
        self.host.wait_for("SIGHUP: .* is in force")
        self.assertEqual(self.setting("handles"), "77")
        self.assertEqual(self.setting("process-rate"), "20")

    def refused(self, words, pattern, status=REFUSED):
        """Neither vgpud nor the file changes."""
        files = {path: path.read_text() for path in self.two.parent.iterdir()}
        before = self.json("show", "two")["settings"]
        _, reason = self.run_ctl("set", *words, status=status)
        self.assertRegex(reason, pattern)
        self.assertEqual(self.json("show", "two")["settings"], before)
        self.assertEqual({path: path.read_text() for path in self.two.parent.iterdir()},
                         files)

    def test_mistakes_are_refused_with_file_line_and_reason(self):
        line = re.escape(f"{self.two}:6: ") + '"many" is not a number from 16'
        for extra in ([], ["--persistent"]):
            self.refused([*extra, "two", "handles=many"], line)
            self.refused([*extra, "two", "socket=/x"], "no key socket that can change")
            self.refused([*extra, "two", "nonsense=1"], "no key .*nonsense")
            self.refused([*extra, "two", "handles=77 ; x"], "no semicolon")
            self.refused([*extra, "two", "process-rate=9", "handles=many"], "many")
        self.refused(["--persistent", "raw", "handles=77"], r"no file vm\.d/raw\.conf")
        self.refused(["three", "handles=77"], "no virtual machine three", NO_VM)
        self.refused(["two", "handles"], "not KEY=VALUE", USAGE)
        self.refused(["two", "=7"], "not KEY=VALUE", USAGE)

    def test_a_mistake_in_another_file_is_found_before_anything_changes(self):
        other = self.two.parent / "other.conf"
        other.write_text("[vm other]\nsize = 3\n")
        self.refused(["--persistent", "two", "handles=77"], rf"{other}:2: ")
        other.unlink()

    def test_a_folder_that_cannot_be_written(self):
        if os.geteuid() == 0:
            # Root may write anywhere, but not into a file whose name is a folder's.
            (self.two.parent / ".two.conf.new").mkdir()
            pattern = rf"{self.two} cannot be written: "
            before = self.two.read_text()
            self.assertRegex(self.run_ctl("set", "--persistent", "two", "handles=77",
                                          status=FAILED)[1], pattern)
            self.assertEqual((self.two.read_text(), self.setting("handles")), (before, "99"))
        else:
            self.two.parent.chmod(0o500)
            self.refused(["--persistent", "two", "handles=77"], "cannot be written", FAILED)
            self.two.parent.chmod(0o700)

    def test_log_level(self):
        self.run_ctl("log-level", "debug")
        self.host.wait_for("broker.* debug: ")
        self.run_ctl("log-level", "much", status=USAGE)

    def test_logs(self):
        with self.host.log.open("a") as log:
            log.write("1 vgpud: vm=two: first\n1 vgpud: xvm=two no\n1 vgpud: vm=twofold: no\n"
                      "session ended vm=two channel=0 \033[2J\n")
        lines = self.json("logs", "two")["lines"]
        self.assertEqual(lines, ["1 vgpud: vm=two: first",
                                 "session ended vm=two channel=0 ?[2J"])
        self.assertEqual(self.run_ctl("logs", "two")[0].splitlines(), lines)
        self.run_ctl("logs", "three", status=NO_VM)

    def doctor(self, *words, status=0):
        """Returns the findings by subject, the worst of each."""
        done = subprocess.run([CTL, "--socket", self.socket, "doctor", "--json", *words],
                              text=True, timeout=60, capture_output=True, check=False)
        self.assertEqual(done.returncode, status, done)
        findings = {}
        for finding in json.loads(done.stdout)["findings"]:
            self.assertEqual(finding["level"] == "ok", finding["advice"] is None, finding)
            if finding["level"] != "ok" or finding["subject"] not in findings:
                findings[finding["subject"]] = finding
        return findings

    def test_doctor(self):
        findings = self.doctor()
        self.assertEqual(set(findings), {
            "vgpud", "configuration", "kvm", "io_uring", "driver", "memory",
            "control-groups", "hugepages", "files", "qemu", "libvirt"})
        self.assertIn("2 machines", findings["configuration"]["text"])
        for subject in ("vgpud", "configuration", "io_uring", "driver", "files"):
            self.assertEqual(findings[subject]["level"], "ok", findings)
        self.assertRegex(self.run_ctl("doctor")[0], r"(?m)^ok    vgpud: release ")

    def test_doctor_finds_mistakes_of_the_files(self):
        text = self.two.read_text()
        self.two.write_text(text + "size = 3\n")
        finding = self.doctor(status=FAILED)["configuration"]
        self.assertEqual(finding["level"], "fail")
        self.assertIn(f"{self.two}:7: ", finding["text"])
        self.two.write_text(text.replace("/two", "/none/of/these"))
        self.assertIn("cannot be made", self.doctor(status=FAILED)["configuration"]["text"])
        self.two.write_text(text)

    def test_doctor_without_vgpud(self):
        finding = self.doctor("--socket", "/nonexistent", status=FAILED)["vgpud"]
        self.assertIn("systemctl start vgpud", finding["advice"])

    def test_doctor_of_another_release(self):
        """A vgpud of the test's own, which says hello and replies once."""
        path = self.folder / "other"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            listener.listen()

            def serve():
                with listener.accept()[0] as client:
                    # version, release, access
                    client.send(b"\x08\x01\x1a\x039.9\x20\x02")
                    client.recv(65536)
                    client.send(b"\x08\x01")
                    client.recv(65536)

            server = threading.Thread(target=serve)
            server.start()
            done = subprocess.run([CTL, "--socket", path, "doctor"], text=True, timeout=60,
                                  capture_output=True, check=False)
            server.join()
        self.assertIn("WARN  vgpud: vgpud is of release 9.9, vgpuctl of ", done.stdout)

    def test_while_others_change_all_the_time(self):
        """Each change ends the connections of all others."""
        ends = []

        def change(key):
            number = 0
            while not ends:
                number += 1
                self.run_ctl("set", "two", f"{key}={100 + number % 2}")
            self.run_ctl("set", "two", f"{key}=300")

        with ThreadPoolExecutor() as pool:
            changes = [pool.submit(change, key) for key in ("handles", "log-lines")]
            try:
                self.host.wait_for("a change by vgpuctl is in force", 5)
                for _ in range(40):
                    self.run_ctl("list")
                    self.run_ctl("show", "two")
            finally:
                ends.append(True)
            for done in changes:
                done.result()
        self.assertEqual((self.setting("handles"), self.setting("log-lines")), ("300", "300"))

    def test_a_vgpud_that_ends_each_connection(self):
        path = self.folder / "other"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            listener.listen()

            def serve():
                try:
                    while True:
                        listener.accept()[0].close()
                except OSError:
                    pass

            server = threading.Thread(target=serve)
            server.start()
            _, reason = self.run_ctl("--socket", str(path), "list", status=NO_VGPUD)
            listener.shutdown(socket.SHUT_RDWR)
            server.join()
        self.assertIn("ended the connection", reason)

    def test_doctor_of_a_guest_as_the_host_sees_it(self):
        findings = self.doctor("--guest", "two")
        self.assertEqual(set(findings), {"device", "processes", "device-memory", "host-memory"})
        self.assertIn("nobody is connected", findings["device"]["text"])
        self.assertIn("vgpu-doctor", findings["processes"]["advice"])
        self.assertRegex(self.run_ctl("doctor", "--guest", "two")[0], "(?m)^WARN  device: ")
        self.run_ctl("doctor", "--guest", "three", status=NO_VM)
        self.run_ctl("--socket", "/nonexistent", "doctor", "--guest", "two", status=NO_VGPUD)
        for words in (["doctor", "two"], ["doctor", "--guest", "two", "more"],
                      ["list", "--guest"]):
            self.run_ctl(*words, status=USAGE)

    def test_doctor_in_a_guest_is_vgpu_doctor(self):
        folder = self.folder / "bin"
        folder.mkdir()
        environment = dict(os.environ, PATH=str(folder))
        self.assertIn("vgpu-tools", self.run_ctl("doctor", "--guest", status=FAILED,
                                                 env=environment)[1])
        program = folder / "vgpu-doctor"
        program.write_text("#!/bin/sh\necho \"$# $1\"\n")
        program.chmod(0o755)
        self.assertEqual(self.run_ctl("doctor", "--guest", env=environment)[0], "0 \n")
        self.assertEqual(self.run_ctl("doctor", "--guest", "--json", env=environment)[0],
                         "1 --json\n")

    def test_help(self):
        for verb in VERBS:
            text = self.run_ctl(verb, "--help")[0]
            self.assertRegex(text, rf"^Usage: vgpuctl .*{verb}")
        text = self.run_ctl("--help")[0]
        for verb in VERBS:
            self.assertRegex(text, rf"(?m)^  {verb}\b")

    def test_command_lines_that_are_wrong(self):
        for words in ([], ["nonsense"], ["list", "more"], ["show"], ["set", "two"],
                      ["list", "--persistent"], ["detach", "--vram", "1G", "x"],
                      ["detach", "--wait", "1", "x"],
                      ["show", "--connect", "x", "y"], ["attach"], ["--nonsense"], ["--socket"],
                      ["--socket", "/" + 120 * "x", "list"]):
            self.run_ctl(*words, status=USAGE)

    def test_without_vgpud(self):
        for words in (["list"], ["show", "two"], ["set", "two", "handles=77"],
                      ["logs", "two"], ["version"]):
            self.assertRegex(self.run_ctl("--socket", "/nonexistent", *words,
                                          status=NO_VGPUD)[1], "vgpud does not run")

    def test_a_full_disk_is_reported(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for words in (["list"], ["show", "two"], ["version", "--json"], ["--help"]):
                self.run_ctl(*words, status=FAILED, stdout=full)

    def test_a_stranger_is_refused(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can become another user")
        self.folder.chmod(0o711)
        # The program of a build may be where another user cannot reach it.
        program = self.folder / "vgpuctl"
        shutil.copy(CTL, program)
        done = subprocess.run([program, "--socket", self.socket, "list"], text=True,
                              user=65534, group=65534, extra_groups=[], check=False,
                              capture_output=True)
        program.unlink()
        self.assertEqual(done.returncode, DENIED, done)
        self.assertIn("vgpu-admin", done.stderr)

    def complete(self, *words):
        """What bash would offer for the last word."""
        script = (f'compopt() {{ :; }}; vgpuctl() {{ "{CTL}" --socket "{self.socket}" "$@"; }}\n'
                  f'. "{SOURCE}/host-daemon/ctl/vgpuctl.bash"\n'
                  'COMP_WORDS=(vgpuctl "$@") COMP_CWORD=$#\n_vgpuctl\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", *words], text=True, check=True,
                              capture_output=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_completion_by_bash(self):
        self.assertEqual(self.complete(""), VERBS)
        self.assertEqual(self.complete("lo"), ["logs", "log-level"])
        self.assertEqual(self.complete("show", ""), ["raw", "two"])
        self.assertEqual(self.complete("show", "t"), ["two"])
        self.assertEqual(self.complete("set", "--pers"), ["--persistent"])
        self.assertEqual(self.complete("--json", "set", "two", "handl"), ["handles="])
        self.assertEqual(self.complete("set", "two", "sock"), ["socket-mode="])
        self.assertEqual(self.complete("pause", "--p"), ["--persistent"])
        self.assertEqual(self.complete("resume", "t"), ["two"])
        self.assertEqual(self.complete("attach", "--v"), ["--vram"])
        self.assertEqual(self.complete("log-level", "e"), ["error"])
        self.assertEqual(self.complete("top", "--o"), ["--once"])
        self.assertEqual(self.complete("top", "--sort", "l"), ["launches"])
        self.assertEqual(self.complete("stats", "--sort", "p9"), ["p90", "p99"])
        self.assertEqual(self.complete("stats", "--c"), ["--call"])
        self.assertEqual(self.complete("list", ""), [])
        self.assertEqual(self.complete("doctor", "--g"), ["--guest"])
        self.assertEqual(self.complete("doctor", ""), [])
        self.assertEqual(self.complete("doctor", "--guest", ""), ["raw", "two"])

    def test_completion_by_zsh_parses(self):
        if not shutil.which("zsh"):
            raise unittest.SkipTest("zsh is not installed")
        subprocess.run(["zsh", "-n", SOURCE / "host-daemon/ctl/vgpuctl.zsh"], check=True)


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
