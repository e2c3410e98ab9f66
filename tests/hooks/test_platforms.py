#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The blocks of docs/platforms.md: configurations for vgpud, settings for QEMU, manifests.

    test_platforms.py SOURCE BUILD
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP, BUILD = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()
sys.path.insert(0, str(TOP / "tests/lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

try:
    import yaml
except ImportError:
    yaml = None

PAGE = (TOP / "docs/platforms.md").read_text(encoding="utf-8")
QEMU = shutil.which("qemu-system-x86_64")
LINE = re.compile(r"-chardev socket,id=vgpu,path=\S+ -device ivshmem-doorbell[^\s']+")


def blocks(section, language):
    """The blocks of a language in a section, in their order."""
    part = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]
    return [text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", part, re.M | re.S)
            if kind == language]


class Vgpud(unittest.TestCase):
    def serve(self, text):
        """Runs vgpud with the sections, its sockets in a folder of the test, and returns
        their names."""
        with tempfile.TemporaryDirectory(prefix="vgpu-platforms-") as folder:
            sections = text[text.index("[vm "):].replace("/run/vgpud/", f"{folder}/")
            # The groups of other systems are not here, and this user may be in none.
            sections = re.sub(r"^socket-group = \d+$", "", sections, flags=re.M)
            with Host(BUILD, vm=sections,
                      extra=f"worker = {BUILD}/tests/broker/fake-worker\n"):
                return sorted(path.name for path in Path(folder).glob("*.sock"))

    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text if text.startswith("[vgpud]") else f"[vgpud]\n{text}")
            file.flush()
            done = subprocess.run([BUILD / "host-daemon/main/vgpud", "--check", "--config",
                                   file.name], text=True, capture_output=True, check=False)
        # What the host lacks is another matter than mistakes of the file.
        self.assertNotIn(file.name + ":", done.stdout + done.stderr)

    def test_the_shares_of_a_node(self):
        text, = blocks("KubeVirt", "ini")
        self.check(text)
        self.assertEqual(self.serve(text), ["share-0.sock", "share-1.sock"])

    def test_the_section_for_incus(self):
        text = blocks("Incus", "ini")[0]
        self.check(text)
        self.assertEqual(self.serve(text), ["one.sock"])


@unittest.skipUnless(QEMU, "qemu-system-x86_64 is not installed")
class Qemu(unittest.TestCase):
    def connect(self, options):
        """Starts QEMU with these options, which depend on the folder of the socket."""
        with tempfile.TemporaryDirectory(prefix="vgpu-platforms-") as folder:
            section = f"[vm one]\nsocket = {folder}/one.sock\nsize = 256M\nmax-processes = 7\n"
            with Host(BUILD, vm=section,
                      extra=f"worker = {BUILD}/tests/broker/fake-worker\n") as host, \
                    tempfile.TemporaryFile() as output:
                qemu = subprocess.Popen(
                    [QEMU, "-machine", "q35", "-accel", "tcg", "-m", "64", "-nodefaults",
                     "-display", "none", "-S", *options(Path(folder))],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output)
                try:
                    host.wait_for("vm=one id=.*: the VM connected .transport ivshmem")
                finally:
                    qemu.kill()
                    qemu.wait()

    def test_the_configuration_that_incus_adds(self):
        text = blocks("Incus", "ini")[1]

        def options(folder):
            (folder / "qemu.conf").write_text(text.replace("/run/vgpud/", f"{folder}/"))
            return ["-readconfig", str(folder / "qemu.conf")]

        self.connect(options)

    def test_the_lines_of_options(self):
        found = LINE.findall(PAGE)
        self.assertEqual(len(found), 3)
        for line in found:
            self.connect(lambda folder, line=line: shlex.split(
                re.sub(r"/run/vgpud/\w+\.sock", f"{folder}/one.sock", line)))


class Texts(unittest.TestCase):
    def test_the_line_for_proxmox_is_that_of_the_hookscript(self):
        hook = (BUILD / "qemu/vgpu-proxmox-hook").read_text(encoding="utf-8")
        line = re.search(r'^ARGS = "(.*)"$', hook, re.M)[1].format(socket="/run/vgpud/101.sock")
        self.assertIn(f"qm set 101 --args '{line}'", blocks("Proxmox VE", "sh")[0])
        self.assertIn(f"args: {line}\n", blocks("Proxmox VE", "")[0])

    def test_rules_and_sections_name_the_same_socket(self):
        socket = re.search(r"^socket = (.*)$", blocks("Incus", "ini")[0], re.M)[1]
        self.assertIn(f"raw.apparmor '{socket} rw,'", blocks("Incus", "sh")[0])
        self.assertIn(f'path = "{socket}"\n', blocks("Incus", "ini")[1])

    def test_shell_blocks_are_shell(self):
        for section in ("KubeVirt", "Proxmox VE", "OpenStack", "Incus"):
            for text in blocks(section, "sh"):
                done = subprocess.run(["bash", "-n"], input=text, text=True, check=False,
                                      capture_output=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), text)

    def test_files_that_it_names_are_shipped(self):
        named = set(re.findall(r"/usr/share/vgpu/(\w+/[\w.-]+\w)", PAGE))
        self.assertEqual(len(named), 4, named)
        for name in named:
            path = TOP / "qemu" / name
            self.assertTrue(path.exists() or path.with_name(path.name + ".in").exists(), name)

    @unittest.skipUnless(yaml, "python3-yaml is not installed")
    def test_the_excerpts_are_those_of_the_manifest(self):
        excerpt, cluster = (yaml.safe_load(text) for text in blocks("KubeVirt", "yaml"))
        machine = yaml.safe_load((TOP / "qemu/kubevirt/virtual-machine.yaml").read_text())
        template = machine["spec"]["template"]
        key = "hooks.kubevirt.io/hookSidecars"
        self.assertEqual(yaml.safe_load(excerpt["metadata"]["annotations"][key]),
                         yaml.safe_load(template["metadata"]["annotations"][key]))
        resources = template["spec"]["domain"]["resources"]
        for kind, wanted in excerpt["spec"]["domain"]["resources"].items():
            self.assertLessEqual(wanted.items(), resources[kind].items())
        self.assertEqual(excerpt["spec"]["evictionStrategy"],
                         template["spec"]["evictionStrategy"])
        self.assertEqual(cluster["kind"], "KubeVirt")


if __name__ == "__main__":
    tap.unittest_main()
