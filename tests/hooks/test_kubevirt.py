#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""KubeVirt's hook and manifests: the hook as the sidecar's shim runs it, on the domain that
KubeVirt defines and on others, its domain in Debian's libvirt, and what the manifests say
against vgpud's sockets.

    test_kubevirt.py SOURCE BUILD
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as tree
from pathlib import Path

TOP, BUILD = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()
sys.path.insert(0, str(TOP / "tests/lib"))

import tap  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position

try:
    import yaml
except ImportError:
    yaml = None

HOOK = BUILD / "qemu/vgpu-kubevirt-hook"
FILES = TOP / "qemu/kubevirt"
DOMAIN = (TOP / "tests/hooks/kubevirt-domain.xml").read_text(encoding="utf-8")
SOCKET = "/run/vgpu.sock"
RESOURCE = "vgpu.dev/share"
REFUSED, USAGE = 1, 125
NO_YAML = None if yaml else "python3-yaml is not installed"
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
NOBODY = 65534
START_SECONDS = 60
LIMITS = "size = 256M\nmax-processes = 7\n"


def machine(limits=None, **more):
    """A machine as the hook gets it, with these limits."""
    limits = {RESOURCE: "1"} if limits is None else limits
    return json.dumps({"kind": "VirtualMachineInstance",
                       "spec": {"domain": {"resources": dict(limits=limits, **more)}}})


def run(domain=DOMAIN, vmi=None, environment=None):
    """Runs it as the shim does: the texts are arguments, and the domain is its output."""
    words = ["--vmi", machine() if vmi is None else vmi, "--domain", domain]
    return subprocess.run([HOOK, *words], capture_output=True, check=False, timeout=60,
                          env=environment, stdin=subprocess.DEVNULL)


class Hook(unittest.TestCase):
    def done(self, domain=DOMAIN, vmi=None):
        done = run(domain, vmi)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        return done.stdout.decode()

    def refused(self, pattern, domain=DOMAIN, vmi=None):
        done = run(domain, vmi)
        self.assertEqual((done.returncode, done.stdout), (REFUSED, b""), done)
        self.assertRegex(done.stderr.decode(errors="replace"), pattern)
        # One sentence, whatever the input was.
        self.assertLess(len(done.stderr), 300)
        self.assertEqual(done.stderr.count(b"\n"), 1)

    def test_the_domain_of_kubevirt_gets_the_device_and_nothing_else_changes(self):
        done = self.done()
        start, end = done.index("\t<shmem"), done.index("</shmem>\n") + len("</shmem>\n")
        self.assertEqual(done[:start] + done[end + 1:], DOMAIN)
        shmem = tree.fromstring(done).findall("devices/shmem")
        self.assertEqual([item.get("name") for item in shmem], ["vgpu"])
        self.assertEqual(shmem[0].find("model").get("type"), "ivshmem-doorbell")
        self.assertEqual(shmem[0].find("server").get("path"), SOCKET)
        self.assertEqual(shmem[0].find("msi").attrib, {"vectors": "32", "ioeventfd": "on"})

    def test_again_it_changes_nothing(self):
        once = self.done()
        self.assertEqual(self.done(once), once)

    def test_its_element_is_that_of_the_example_for_libvirt(self):
        example = (TOP / "qemu/libvirt-shmem.xml").read_text(encoding="utf-8")
        example = tree.fromstring(example.replace("/run/vgpud/NAME.sock", SOCKET))
        ours = tree.fromstring(self.done()).find("devices/shmem")
        self.assertEqual(tree.canonicalize(tree.tostring(ours), strip_text=True),
                         tree.canonicalize(tree.tostring(example), strip_text=True))

    def test_the_schema_of_libvirt(self):
        if not shutil.which("virt-xml-validate") or not shutil.which("xmllint"):
            self.skipTest("virt-xml-validate or xmllint is not installed")
        # KubeVirt writes these empty, which libvirt reads, but its schema does not have.
        text = self.done()
        for name in ("bios", "baseBoard", "chassis"):
            text = text.replace(f"<{name}></{name}>", "")
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            for text, status in ((text, 0), (text.replace("ivshmem-doorbell", "other"), 3)):
                file.seek(0)
                file.truncate()
                file.write(text)
                file.flush()
                done = subprocess.run(["virt-xml-validate", file.name, "domain"], text=True,
                                      capture_output=True, check=False, timeout=60)
                self.assertEqual(done.returncode, status, done)

    def test_other_forms_of_the_list(self):
        for devices in ("<devices/>", "<devices />", "<devices></devices>",
                        "<devices a='/>'/>", "<devices\n/>", "<devices\n>\n</devices\n>"):
            done = self.done(f"<domain><x/>{devices}<y/></domain>")
            root = tree.fromstring(done)
            self.assertEqual([item.tag for item in root], ["x", "devices", "y"])
            self.assertEqual([item.tag for item in root.find("devices")], ["shmem"], done)

    def test_what_only_looks_like_the_list(self):
        done = self.done("<domain><metadata><devices/><domain><devices/></domain></metadata>"
                         "<!-- </devices> --><name><![CDATA[<devices></devices>]]></name>"
                         "<devices><shmem name='other'><server path='/a'/></shmem></devices>"
                         "</domain>")
        devices = tree.fromstring(done).find("devices")
        self.assertEqual([item.get("name") for item in devices], ["other", "vgpu"])
        self.assertEqual(done.count("<shmem"), 2)

    def test_hostile_domains(self):
        for pattern, domain in (
                ("not XML", ""), ("not XML", "nonsense"), ("not XML", "<domain>"),
                ("not XML", "<domain><devices></domain></devices>"),
                ("not XML", "<domain><devices/></domain><domain/>"),
                ("not XML", "<domain>&a;<devices/></domain>"),
                ("not XML", "<domain><devices/>\x01</domain>"),
                ("not XML", os.fsdecode(b"<domain><devices/>\xff\xfe</domain>")),
                ("no <devices>", "<domain/>"),
                ("no <devices>", "<domain><a><devices/></a></domain>"),
                ("no <devices>", "<domain xmlns:a='b'><a:devices/></domain>"),
                ("two <devices>", "<domain><devices/><devices/></domain>"),
                ("is not a domain", "<devices/>"),
                ("is not a domain", f"<{'a' * 60000}/>"),
                ("guests are x86_64", "<domain><os><type arch='s390x'>hvm</type></os>"
                 "<devices/></domain>"),
                ("document type", "<!DOCTYPE domain SYSTEM '/etc/passwd'><domain/>"),
                ("document type", "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>"
                 "<domain><devices>&b;</devices></domain>"),
                ("document type", "<!DOCTYPE a [<!ENTITY a '" + "b" * 9 + "'><!ENTITY c '"
                 + "&a;" * 999 + "'>]><domain><devices>&c;</devices></domain>"),
                ("another <shmem>", "<domain><devices><shmem name='vgpu'>"
                 "<server path='/run/other'/></shmem></devices></domain>"),
                ("another <shmem>", "<domain><devices><shmem name='vgpu'/></devices>"
                 "</domain>")):
            with self.subTest(domain[:60]):
                self.refused(pattern, domain)

    def test_deep_and_large_domains(self):
        deep = "<a>" * 9000 + "</a>" * 9000
        done = self.done(f"<domain>{deep}<devices/></domain>")
        self.assertIn("<shmem", done)
        large = "<metadata>" + "\N{EURO SIGN}" * 40000 + "</metadata>"
        done = self.done(f"<domain>{large}<devices/></domain>")
        self.assertTrue(done.startswith(f"<domain>{large}<devices>\n\t\t<shmem"))

    def test_it_depends_on_no_locale(self):
        text = DOMAIN.replace("worker-7", "w\N{LATIN SMALL LETTER O WITH DIAERESIS}rker")
        for locale in ("C", "POSIX", "C.UTF-8", "nonsense"):
            done = run(text, environment={"PATH": PATH, "LC_ALL": locale})
            self.assertEqual(done.returncode, 0, done)
            self.assertIn("w\N{LATIN SMALL LETTER O WITH DIAERESIS}rker", done.stdout.decode())

    def test_machines_without_a_share(self):
        for vmi in (machine({}), machine({"squat.ai/video": "1"}), "{}", "[]", "null", "1",
                    "", "nonsense", "{", '{"spec": null}', '{"spec": {"domain": []}}',
                    '{"spec": {"domain": {"resources": {"limits": 1}}}}', "[" * 60000,
                    machine({RESOURCE: None})):
            with self.subTest(vmi[:60]):
                self.refused(f"does not request {RESOURCE}", vmi=vmi)

    def test_machines_with_several_shares(self):
        for vmi in (machine({RESOURCE: "2"}), machine({RESOURCE: 2}), machine({RESOURCE: 0}),
                    machine(requests={RESOURCE: "3"})):
            self.refused("it can have 1", vmi=vmi)
        for vmi in (machine({RESOURCE: 1}), machine(requests={RESOURCE: "1"}),
                    machine({"cpu": "1"}, requests={RESOURCE: "1"})):
            self.done(vmi=vmi)

    def test_command_lines(self):
        for words, pattern in (
                ([], "--vmi is missing"), (["--vmi", "{}"], "--domain is missing"),
                (["--vmi"], "--vmi needs a value"), (["-x"], "unexpected argument '-x'"),
                (["--vmi", "{}", "--domain", "<a/>", "b"], "unexpected argument 'b'")):
            done = subprocess.run([HOOK, *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done)
            self.assertIn(pattern, done.stderr)
        done = subprocess.run([HOOK, f"--domain={DOMAIN}", f"--vmi={machine()}"],
                              capture_output=True, text=True, check=True)
        self.assertIn("<shmem", done.stdout)

    def test_a_refusal_is_in_the_log_of_the_container(self):
        """Its parent, the shim, reads its standard error and shows it to nobody."""
        shim = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], " \
            "capture_output=True).returncode)"
        done = subprocess.run([sys.executable, "-c", shim, HOOK, "--vmi", "{}", "--domain",
                               DOMAIN], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, REFUSED)
        self.assertIn(f"does not request {RESOURCE}", done.stderr)


def find_lack():
    """Returns why no domain of libvirt can run here, or None."""
    lacking = [name for name in ("libvirtd", "virsh", "qemu-system-x86_64")
               if not shutil.which(name, path=PATH)]
    return f"not installed: {', '.join(lacking)}" if lacking else None


@unittest.skipIf(find_lack(), find_lack())
class Libvirt(unittest.TestCase):
    """libvirt's daemon runs as an ordinary user, with folders of its own."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="vgpu-kubevirt-")
        self.addCleanup(holder.cleanup)
        self.place = Path(holder.name)
        self.who = {}
        if os.geteuid() == 0:
            self.who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            os.chown(self.place, NOBODY, NOBODY)
        self.environment = dict(os.environ, PATH=PATH, HOME=holder.name, **{
            f"XDG_{kind}": holder.name
            for kind in ("RUNTIME_DIR", "CONFIG_HOME", "CACHE_HOME", "DATA_HOME")})
        with open(self.place / "log", "wb") as log:
            daemon = subprocess.Popen(
                ["libvirtd", "--timeout", "60"], env=self.environment, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, **self.who)
        self.addCleanup(daemon.wait, 60)
        self.addCleanup(daemon.terminate)
        end = time.monotonic() + START_SECONDS
        while self.virsh("version", check=False).returncode:
            self.assertIsNone(daemon.poll(), (self.place / "log").read_text())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def virsh(self, *words, check=True):
        done = subprocess.run(["virsh", "-q", "-c", "qemu:///session", *words], text=True,
                              env=self.environment, capture_output=True, check=False,
                              timeout=120, **self.who)
        if check:
            self.assertEqual(done.returncode, 0, (words, done))
        return done

    def test_its_domain_starts_and_connects_to_vgpud(self):
        section = f"[vm share-0]\nsocket = {self.place}/share-0.sock\n" + LIMITS
        with Host(BUILD, user=self.who.get("user"), vm=section,
                  extra=f"worker = {BUILD}/tests/broker/fake-worker\n") as host:
            text = run().stdout.decode().replace('type="kvm"', 'type="qemu"', 1)
            text = text.replace(SOCKET, f"{self.place}/share-0.sock")
            text = text.replace("/usr/bin/qemu-system-x86_64",
                                shutil.which("qemu-system-x86_64", path=PATH))
            (self.place / "domain.xml").write_text(text)
            self.virsh("define", f"{self.place}/domain.xml")
            self.virsh("start", "cluster_worker-7")
            try:
                host.wait_for("vm=share-0 id=.*: the VM connected .transport ivshmem")
                shown = self.virsh("dumpxml", "cluster_worker-7").stdout
            finally:
                self.virsh("destroy", "cluster_worker-7")
        bridge = tree.fromstring(shown).findall(
            "devices/controller[@model='pcie-to-pci-bridge']")
        self.assertTrue(bridge, "libvirt added no slot for the device")


@unittest.skipIf(NO_YAML, NO_YAML)
class Manifests(unittest.TestCase):
    @staticmethod
    def load(name):
        return yaml.safe_load((FILES / name).read_text(encoding="utf-8"))

    def plugin(self):
        """Returns the pod of the plugin, its options, and the resource that it declares."""
        pod = self.load("device-plugin.yaml")["spec"]["template"]["spec"]
        words = pod["containers"][0]["args"]
        options = dict(zip(words[::2], words[1::2]))
        return pod, options, yaml.safe_load(options["--device"])

    def test_the_plugin_gives_what_the_machine_requests_and_the_hook_expects(self):
        _, options, device = self.plugin()
        resource = f"{options['--domain']}/{device['name']}"
        template = self.load("virtual-machine.yaml")["spec"]["template"]
        spec = template["spec"]
        resources = spec["domain"]["resources"]
        self.assertEqual(resources["limits"][resource], "1")
        self.assertEqual(resources["requests"][resource], "1")
        self.assertEqual(device["groups"][0]["paths"][0]["mountPath"], SOCKET)
        self.assertEqual(device["groups"][0]["paths"][0]["type"], "Mount")
        # The very machine of the manifest.
        done = run(vmi=json.dumps({"metadata": template["metadata"], "spec": spec}))
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(SOCKET.encode(), done.stdout)

    def test_the_annotation_runs_the_hook(self):
        template = self.load("virtual-machine.yaml")["spec"]["template"]
        sidecars = json.loads(
            template["metadata"]["annotations"]["hooks.kubevirt.io/hookSidecars"])
        config = sidecars[0]["configMap"]
        self.assertEqual(config["hookPath"], "/usr/bin/onDefineDomain")
        self.assertEqual(sidecars[0]["args"][0], "--version")
        command = f"kubectl create configmap {config['name']} " \
            f"--from-file={config['key']}={HOOK.name}"
        self.assertIn(command, (FILES / "virtual-machine.yaml").read_text(encoding="utf-8"))

    def test_disks_and_networks_have_what_they_name(self):
        spec = self.load("virtual-machine.yaml")["spec"]["template"]["spec"]
        devices = spec["domain"]["devices"]
        self.assertEqual({disk["name"] for disk in devices["disks"]},
                         {volume["name"] for volume in spec["volumes"]})
        self.assertEqual({interface["name"] for interface in devices["interfaces"]},
                         {network["name"] for network in spec["networks"]})

    def test_the_plugin_can_see_the_sockets(self):
        """It looks for them in its own container, and names them to the node."""
        pod, _, device = self.plugin()
        path = Path(device["groups"][0]["paths"][0]["path"])
        volumes = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
        mounts = pod["containers"][0]["volumeMounts"]
        self.assertEqual({mount["name"] for mount in mounts}, set(volumes))
        for mount in mounts:
            self.assertEqual(volumes[mount["name"]], mount["mountPath"])
        self.assertTrue(any(Path(mount["mountPath"]) in path.parents for mount in mounts))

    def test_each_section_is_a_share_while_vgpud_runs(self):
        pattern = Path(self.plugin()[2]["groups"][0]["paths"][0]["path"]).name
        with tempfile.TemporaryDirectory(prefix="vgpu-kubevirt-") as folder:
            sections = "".join(
                f"[vm share-{n}]\nsocket = {folder}/share-{n}.sock\n{LIMITS}"
                for n in range(3))
            with Host(BUILD, vm=sections,
                      extra=f"worker = {BUILD}/tests/broker/fake-worker\n"):
                self.assertEqual(len(glob.glob(f"{folder}/{pattern}")), 3)
            self.assertEqual(glob.glob(f"{folder}/{pattern}"), [])


if __name__ == "__main__":
    tap.unittest_main()
