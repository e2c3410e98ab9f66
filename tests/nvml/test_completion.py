#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the shells complete of vgpu-smi's command line, against a vgpud with softgpu.

    test_completion.py BUILD SOURCE
"""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import test_nvml as nvml
from test_nvml import BUILD, SOURCE

import tap  # pylint: disable=wrong-import-order
from host import Host  # pylint: disable=wrong-import-order

COMPLETIONS = SOURCE / "guest-shim/smi"


class WithHost(unittest.TestCase):
    """vgpu-smi is in PATH, and finds a host."""

    @classmethod
    def setUpClass(cls):
        cls.host = Host(BUILD).__enter__()
        cls.environment = dict(
            os.environ, VGPU_SOCKET=str(cls.host.socket), TERM="dumb", LC_ALL="C",
            LD_LIBRARY_PATH=str(BUILD / "guest-shim/nvml"),
            PATH=f"{BUILD / 'guest-shim/smi'}:{os.environ['PATH']}")

    @classmethod
    def tearDownClass(cls):
        cls.host.__exit__()

    @classmethod
    def names(cls, option):
        text = subprocess.run(["vgpu-smi", option], env=cls.environment, check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        return re.findall(r'^"([^"]+)"', text, re.MULTILINE)


class Bash(WithHost):
    def complete(self, *words):
        """The words that bash offers for the last one."""
        script = (f"compopt() {{ :; }}\n. {COMPLETIONS / 'vgpu-smi.bash'}\n"
                  "COMP_WORDS=(vgpu-smi \"$@\") COMP_CWORD=$#\n_vgpu_smi\n"
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", script, "bash", *words], check=True, text=True,
                              env=self.environment, stdout=subprocess.PIPE)
        return done.stdout.split()

    def test_options_and_commands(self):
        self.assertEqual(self.complete("--query-g"), ["--query-gpu="])
        self.assertEqual(self.complete("pm"), ["pmon"])
        self.assertEqual(self.complete("-L", "pm"), [])

    def test_each_option_that_it_offers_is_one(self):
        for option in self.complete("-"):
            if option in ("-l", "-c", "-i", "-d", "-f", "-lms") or option.endswith("="):
                continue
            with self.subTest(option):
                subprocess.run(["vgpu-smi", option], env=self.environment, check=True,
                               stdout=subprocess.DEVNULL)

    def test_each_option_of_the_help_is_offered(self):
        text = subprocess.run(["vgpu-smi", "--help"], env=self.environment, check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        offered = {option.rstrip("=") for option in self.complete("-")}
        for option in re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", text):
            with self.subTest(option):
                self.assertIn(option, offered)

    def test_names_of_values(self):
        names = self.names("--help-query-gpu")
        self.assertEqual(self.complete("--query-gpu", "=", "memory."),
                         [name for name in names if name.startswith("memory.")])
        self.assertEqual(self.complete("--query-gpu", "=", "index,pst"), ["index,pstate"])
        self.assertEqual(self.complete("--query-compute-apps", "=", "pi"), ["pid"])

    def test_devices_sections_and_forms(self):
        uuid, = self.complete("-i", "G")
        self.assertRegex(uuid, r"\AGPU-[0-9a-f-]{36}\Z")
        self.assertIn("0", self.complete("-i", ""))
        self.assertEqual(self.complete("-d", "MEM"), ["MEMORY"])
        for section in self.complete("-d", ""):
            subprocess.run(["vgpu-smi", "-q", "-d", section], env=self.environment,
                           check=True, stdout=subprocess.DEVNULL)
        self.assertIn("csv,noheader", self.complete("--format", "=", "csv"))


@unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
class Zsh(WithHost):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        shutil.copy(COMPLETIONS / "vgpu-smi.zsh", Path(self.folder.name) / "_vgpu-smi")
        pid, self.terminal = pty.fork()
        if not pid:
            os.execvpe("zsh", ["zsh", "-f", "-i"], self.environment)
        self.pid, self.seen = pid, ""
        self.type(f"fpath=({self.folder.name} $fpath); autoload -Uz compinit; "
                  "compinit -u -D; LISTMAX=1000 PS1='ready> '; echo set''up\n")
        self.wait("setup")

    def tearDown(self):
        os.write(self.terminal, b"\x03\x15exit\n")
        os.close(self.terminal)
        os.waitpid(self.pid, 0)
        self.folder.cleanup()

    def type(self, text):
        self.seen = ""
        os.write(self.terminal, text.encode())

    def wait(self, pattern):
        """Waits until the terminal shows it."""
        end = time.monotonic() + 60
        while not re.search(pattern, self.seen):
            left = end - time.monotonic()
            if left < 0 or not select.select([self.terminal], [], [], left)[0]:
                self.fail(f"waited for {pattern!r}: {self.seen!r}")
            self.seen += os.read(self.terminal, 65536).decode(errors="replace")
        return self.seen

    def test_options_and_commands(self):
        self.type("vgpu-smi --query-g\t")
        self.wait(r"--query-gpu=")
        self.type("\x15vgpu-smi pm\t")
        self.wait(r"pmon")

    def test_names_of_values(self):
        self.type("vgpu-smi --query-gpu=pst\t")
        self.wait(r"--query-gpu=pstate")
        self.type("\x15vgpu-smi --query-compute-apps=process\t")
        self.wait(r"--query-compute-apps=process_name")

    def test_devices(self):
        self.type("vgpu-smi -i GPU\t")
        self.wait(r"-i GPU-[0-9a-f-]{36}")

    def test_sections_and_forms(self):
        self.type("vgpu-smi -d ROW\t")
        self.wait(r"-d ROW_REMAPPER")
        self.type("\x15vgpu-smi --format=csv,noh\t")
        self.wait(r"--format=csv,noheader")


if __name__ == "__main__":
    assert nvml
    sys.exit(tap.unittest_main())
