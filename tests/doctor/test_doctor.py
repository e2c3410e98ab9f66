#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-doctor against a vgpud with softgpu, and against libraries that are not ours.

    test_doctor.py BUILD SOURCE
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, SOURCE = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(SOURCE / "tests/lib"))

import proc  # noqa: E402
import tap  # noqa: E402
from host import Host  # noqa: E402

DOCTOR = BUILD / "guest-shim/doctor/vgpu-doctor"
CUDA = BUILD / "guest-shim/libcuda.so.1"
NVML = BUILD / "guest-shim/nvml/libnvidia-ml.so.1"
OURS = f"{CUDA.parent}:{NVML.parent}"
FINE, FINDING, USAGE = 0, 1, 2
LDCONFIG = shutil.which("ldconfig", path=f"{os.environ['PATH']}:/sbin:/usr/sbin")


def run(*words, status, **environment):
    """Returns what it prints."""
    variables = {name: value for name, value in os.environ.items()
                 if name not in ("LD_LIBRARY_PATH", "LD_PRELOAD", "VGPU_SOCKET")}
    done = subprocess.run([DOCTOR, *words], env=dict(variables, **environment), text=True,
                          capture_output=True, check=False, timeout=500)
    assert done.returncode == status, done
    return done.stdout


def look(*words, status, **environment):
    """Returns {subject: its findings}."""
    found = json.loads(run("--json", *words, status=status, **environment))
    subjects = {}
    for finding in found["findings"]:
        assert sorted(finding) == ["advice", "level", "subject", "text"], finding
        assert (finding["level"] == "ok") == (finding["advice"] is None), finding
        subjects.setdefault(finding["subject"], []).append(finding)
    levels = [f["level"] for fs in subjects.values() for f in fs]
    assert found["level"] == max(levels, key=["ok", "warn", "fail"].index), found
    return subjects


class Case(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory(prefix="vgpu-doctor-")
        self.addCleanup(self.holder.cleanup)
        self.folder = Path(self.holder.name)

    def fakes(self, *names):
        """A folder with these libraries, which are not ours."""
        folder = self.folder / "fakes"
        folder.mkdir(exist_ok=True)
        for name in names or ("cuda", "nvidia-ml"):
            source = BUILD / f"tests/doctor/libfake-{name}.so"
            shutil.copy(source, folder / f"lib{name}.so.1")
        return str(folder)

    def check(self, findings, level, text, advice=None):
        """One of the findings has that level, text and advice."""
        for finding in findings:
            if finding["level"] == level and re.search(text, finding["text"]) and \
                    (advice is None or re.search(advice, finding["advice"] or "")):
                return
        self.fail(f"no {level} {text!r} {advice!r} in {findings}")


class WithHost(Case):
    @classmethod
    def setUpClass(cls):
        cls.host = Host(BUILD).__enter__()
        cls.socket = str(cls.host.socket)

    @classmethod
    def tearDownClass(cls):
        cls.host.__exit__()

    def look(self, status=FINE, path=OURS, **environment):
        return look(status=status, VGPU_SOCKET=self.socket, LD_LIBRARY_PATH=path,
                    **environment)

    def test_a_guest_in_order_is_fine(self):
        found = self.look()
        self.assertEqual(sorted(found), sorted(
            ["way", "version", "host", "libcuda", "libnvidia-ml", "call", "memory",
             "kernel", "nvml"]))
        self.assertEqual({f["level"] for fs in found.values() for f in fs}, {"ok"})
        self.check(found["way"], "ok", "VGPU_SOCKET, 256 MiB")
        self.check(found["host"], "ok", "alive")
        self.check(found["libcuda"], "ok", rf"^{CUDA}.*, by LD_LIBRARY_PATH")
        self.check(found["call"], "ok", r"CUDA 13\.0, 1 device, .*softgpu")
        self.check(found["memory"], "ok", r"\d+ of \d+ MiB")
        self.check(found["kernel"], "ok", "1000 results are right")
        self.check(found["nvml"], "ok", r"driver [\d.]+, 1 device, .*softgpu")
        self.host.wait_for("session ended .*launches=1 ")

    def test_text_and_its_levels(self):
        text = run(status=FINDING, VGPU_SOCKET=self.socket)
        self.assertRegex(text, r"(?m)^ok    host: vgpud is alive$")
        self.assertRegex(text, r"(?m)^FAIL  libcuda: .*\n      \S")

    def test_a_foreign_library_in_the_path_is_named(self):
        fakes = self.fakes()
        found = self.look(FINDING, f"{fakes}:{OURS}")
        self.check(found["libcuda"], "fail", f"programs get {fakes}/libcuda.so.1.*not of "
                   f"vGPU; ours is {CUDA}", f"take {fakes} out of LD_LIBRARY_PATH")
        self.check(found["libnvidia-ml"], "fail", "not of vGPU", "LD_LIBRARY_PATH")
        self.check(found["nvml"], "ok", "driver 1.2, .* fake with 1 of 4 MiB")
        # Its kernel does nothing.
        self.check(found["kernel"], "fail", r"\(index, value, .*: 0 85 595\)", "do not trust")

    def test_a_foreign_library_after_ours_is_only_mentioned(self):
        fakes = self.fakes()
        found = self.look(FINE, f"{OURS}:{fakes}")
        self.check(found["libcuda"], "ok", f"^{CUDA}.* before {fakes}/libcuda.so.1")

    def test_only_one_of_the_libraries_may_be_foreign(self):
        found = self.look(FINDING, f"{self.fakes('nvidia-ml')}:{OURS}")
        self.check(found["libcuda"], "ok", "by LD_LIBRARY_PATH")
        self.check(found["libnvidia-ml"], "fail", "not of vGPU")
        self.check(found["kernel"], "ok", "right")

    def test_a_preloaded_library_is_named(self):
        preload = f"{self.fakes()}/libcuda.so.1"
        found = self.look(FINDING, LD_PRELOAD=preload)
        self.check(found["libcuda"], "fail", f"programs get {preload}, by LD_PRELOAD",
                   f"take {preload} out of LD_PRELOAD")

    def test_an_interposer_of_another_name_is_named(self):
        other = self.folder / "libtracer.so"
        shutil.copy(BUILD / "tests/doctor/libfake-tracer.so", other)
        found = self.look(FINE, LD_PRELOAD=str(other))
        self.check(found["libcuda"], "warn", f"{other} .*has cuInit", "unset LD_PRELOAD")
        self.check(found["kernel"], "ok", "right")

    def test_libraries_that_are_missing_are_named(self):
        if look(status=FINDING)["libcuda"][0]["text"] != "the loader finds no libcuda.so.1":
            self.skipTest("a libcuda.so.1 is installed here")
        found = self.look(FINDING, "/nonexistent")
        self.check(found["libcuda"], "fail", "finds no libcuda.so.1", "guest package")
        self.check(found["call"], "fail", "dlopen: libcuda.so.1: ", "libraries above")
        self.check(found["nvml"], "fail", "dlopen: libnvidia-ml.so.1: ", "libraries above")

    def test_hidden_devices_are_named(self):
        found = self.look(FINDING, CUDA_VISIBLE_DEVICES="7")
        self.check(found["call"], "fail", "cuInit: CUDA_ERROR_NO_DEVICE.*CUDA_VISIBLE_DEVICES")
        self.check(found["nvml"], "ok", "1 device")

    def test_libraries_of_another_release_are_named(self):
        """The release in a copy's note is changed; it is as long."""
        folder = self.folder / "old"
        folder.mkdir()
        for library in (CUDA, NVML):
            data = library.read_bytes()
            changed = re.sub(rb"(lib(?:cuda|nvidia-ml)) \d+\.\d+\.\d+ (api|protocol)",
                             lambda m: m[1] + b" 9.9.9 " + m[2], data)
            self.assertNotEqual(data, changed)
            self.assertEqual(len(data), len(changed))
            (folder / library.name).write_bytes(changed)
        found = self.look(FINE, str(folder))
        for subject in ("libcuda", "libnvidia-ml"):
            self.check(found[subject], "warn", "of release 9.9.9", "one release")
        self.check(found["kernel"], "ok", "right")

    def test_a_limit_of_the_host_is_named(self):
        with Host(BUILD, vm="max-processes = 1") as host:
            environment = {"VGPU_SOCKET": str(host.socket), "LD_LIBRARY_PATH": OURS}
            code = ("import ctypes, sys; assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0; "
                    "print('ready', flush=True); sys.stdin.read()")
            with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE,
                                  env=dict(os.environ, **environment)) as program:
                self.assertEqual(program.stdout.readline(), b"ready\n")
                found = look(status=FINDING, **environment)
                program.stdin.close()
            self.check(found["call"], "fail", "cuInit: .*limit of 1 processes",
                       "max-processes")

    def test_a_host_that_stops_is_named(self):
        with Host(BUILD) as host:
            broker = proc.broker_of(host)
            # The keeper first: it would replace a broker that does not answer.
            os.kill(host.process.pid, signal.SIGSTOP)
            os.kill(broker, signal.SIGSTOP)
            try:
                found = look(status=FINDING, VGPU_SOCKET=str(host.socket),
                             LD_LIBRARY_PATH=OURS)
            finally:
                os.kill(broker, signal.SIGCONT)
                os.kill(host.process.pid, signal.SIGCONT)
            self.check(found["way"], "fail", "does not answer at the socket", "log")
            self.check(found["call"], "warn", "not tried", "above")
            self.check(found["nvml"], "warn", "not tried", "above")


class WithoutHost(Case):
    def look_at_fake(self, behaviour, status=FINDING, nvml=""):
        return look(status=status, LD_LIBRARY_PATH=self.fakes(), FAKE_CUDA=behaviour,
                    FAKE_NVML=nvml)

    def test_a_socket_that_is_missing_or_left_is_named(self):
        missing = str(self.folder / "none")
        found = look(status=FINDING, VGPU_SOCKET=missing, LD_LIBRARY_PATH=OURS)
        self.check(found["way"], "fail", "there is no socket", "start vgpud")
        self.check(found["call"], "warn", "not tried", "above")
        left = str(self.folder / "left")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.bind(left)
        found = look(status=FINDING, VGPU_SOCKET=left, LD_LIBRARY_PATH=OURS)
        self.check(found["way"], "fail", "nobody serves|cannot be used", ".")

    def test_each_failure_of_calls_is_named(self):
        found = self.look_at_fake("crash")
        self.check(found["call"], "fail", "died in cuInit by signal 11", "report")
        found = self.look_at_fake("exit")
        self.check(found["call"], "fail", "ended in cuInit, with status 4", "report")
        found = self.look_at_fake("fail")
        self.check(found["call"], "fail", r"^cuInit: CUDA_ERROR_NO_DEVICE \(100\)$", "log")
        found = self.look_at_fake("empty")
        self.check(found["call"], "fail", "there is no device", "CUDA_VISIBLE_DEVICES")
        found = self.look_at_fake("full")
        self.check(found["memory"], "warn", "0 of 4 MiB", "device-memory")
        found = self.look_at_fake("fault")
        self.check(found["call"], "ok", "2 devices, the first is fake")
        self.check(found["call"], "fail", r"^cuCtxSynchronize: error \(700\)$", "log")
        self.assertNotIn("kernel", found)

    def test_each_failure_of_nvml_is_named(self):
        found = self.look_at_fake("", nvml="fail")
        self.check(found["nvml"], "fail", r"^nvmlInit_v2: Driver Not Loaded \(9\)$", "log")
        found = self.look_at_fake("", nvml="empty")
        self.check(found["nvml"], "fail", "no device", "log")

    def test_a_library_without_the_functions_is_named(self):
        folder = self.folder / "wrong"
        folder.mkdir()
        shutil.copy(BUILD / "tests/doctor/libfake-nvidia-ml.so", folder / "libcuda.so.1")
        found = look(status=FINDING, LD_LIBRARY_PATH=str(folder))
        self.check(found["call"], "fail", "dlsym: the library has no cuInit", "above")

    def test_a_foreign_library_is_only_a_warning_with_a_gpu_of_the_machine(self):
        if not os.path.exists("/proc/driver/nvidia/version"):
            self.skipTest("NVIDIA's driver is not loaded here")
        found = self.look_at_fake("")
        self.check(found["libcuda"], "warn", "for a GPU of this machine", "LD_LIBRARY_PATH")


@unittest.skipUnless(LDCONFIG, "there is no ldconfig")
class Root(Case):
    """A system below a folder, with a cache of the loader."""

    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        self.put("etc/group", "vgpu:x:7:\n")
        self.put("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        self.put("usr/src/vgpu-0.1.0/dkms.conf", "")
        for name, library in (("libcuda.so.1", CUDA), ("libnvidia-ml.so.1", NVML)):
            self.put_library(f"usr/local/lib/vgpu/{name}", library)

    def put(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def put_library(self, path, source):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, self.root / path)

    def put_foreign(self, path):
        self.put_library(path, BUILD / "tests/doctor/libfake-cuda.so")

    def look(self, status=FINE):
        return look("--root", str(self.root), status=status, LD_LIBRARY_PATH=self.fakes())

    def cache(self):
        subprocess.run([LDCONFIG, "-r", self.root], check=True)

    def test_a_cache_that_was_not_made_is_named(self):
        self.put("etc/ld.so.conf.d/00-vgpu.conf", "/usr/local/lib/vgpu\n")
        found = self.look(FINDING)
        self.check(found["libcuda"], "fail", "finds no libcuda.so.1; ours is /usr/local/lib",
                   "00-vgpu.conf names /usr/local/lib/vgpu: run ldconfig")
        self.cache()
        found = self.look()
        self.check(found["libcuda"], "ok", "^/usr/local/lib/vgpu/libcuda.so.1, by the cache of "
                   r"ldconfig \(/etc/ld.so.conf.d/00-vgpu.conf\)$")
        self.assertEqual(sorted(found), ["driver", "group", "libcuda", "libnvidia-ml"])

    def test_a_folder_that_ldconfig_does_not_know_is_named(self):
        self.cache()
        found = self.look(FINDING)
        self.check(found["libcuda"], "fail", "finds no", "write /usr/local/lib/vgpu into a file")

    def test_a_foreign_library_before_ours_in_the_cache_is_named(self):
        self.put_foreign("opt/nvidia/libcuda.so.1")
        self.put("etc/ld.so.conf.d/10-nvidia.conf", "/opt/nvidia\n")
        self.put("etc/ld.so.conf.d/20-vgpu.conf", "/usr/local/lib/vgpu\n")
        self.cache()
        found = self.look(FINDING)
        self.check(found["libcuda"], "fail", "programs get /opt/nvidia/libcuda.so.1, by the "
                   r"cache of ldconfig \(/etc/ld.so.conf.d/10-nvidia.conf\), which is not of "
                   "vGPU; ours is /usr/local/lib/vgpu/libcuda.so.1", "sorts before all others")
        self.check(found["libnvidia-ml"], "ok", "/usr/local/lib/vgpu")
        (self.root / "etc/ld.so.conf.d/20-vgpu.conf").rename(
            self.root / "etc/ld.so.conf.d/00-vgpu.conf")
        self.cache()
        found = self.look()
        self.check(found["libcuda"], "ok", "before /opt/nvidia/libcuda.so.1")

    def test_a_library_of_a_package_in_a_default_folder_is_named(self):
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            (self.root / "usr/local/lib/vgpu" / name).unlink()
        self.put_foreign("usr/lib/x86_64-linux-gnu/libcuda.so.1")
        found = self.look(FINDING)
        self.check(found["libcuda"], "fail", "a default folder", "install.sh --replace")
        self.check(found["libnvidia-ml"], "fail", "finds no", "guest package")

    def test_nvidias_driver_makes_a_warning_of_it(self):
        self.put("proc/driver/nvidia/version", "NVRM version: x\n")
        self.put("etc/ld.so.preload", "/opt/libcuda.so.1\n")
        self.put_foreign("opt/libcuda.so.1")
        self.put("etc/ld.so.conf.d/00-vgpu.conf", "/usr/local/lib/vgpu\n")
        self.cache()
        found = self.look()
        self.check(found["libcuda"], "warn", "for a GPU of this machine",
                   "take /opt/libcuda.so.1 out of /etc/ld.so.preload")

    def test_group_and_driver_are_looked_at(self):
        self.put("etc/ld.so.conf.d/00-vgpu.conf", "/usr/local/lib/vgpu\n")
        self.cache()
        found = self.look()
        self.check(found["driver"], "warn", "built for no kernel", "headers")
        if os.geteuid() == 0:
            self.check(found["group"], "ok", "there is a group vgpu")


class CommandLine(Case):
    def test_wrong_command_lines(self):
        for words in (["--no-such-option"], ["nonsense"], ["--root"],
                      ["--root", str(self.folder / "none")], ["--root", str(DOCTOR)]):
            with self.subTest(words):
                run(*words, status=USAGE)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([DOCTOR, "--help"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, FINDING)
        self.assertIn("No space left", done.stderr)

    def test_each_option_of_the_help_is_completed(self):
        options = set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", run("--help", status=FINE)))
        script = (f". {SOURCE}/guest-shim/doctor/vgpu-doctor.bash\n"
                  "COMP_WORDS=(vgpu-doctor -) COMP_CWORD=1\n_vgpu_doctor\n"
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", script], check=True, text=True,
                              stdout=subprocess.PIPE)
        self.assertEqual(set(done.stdout.split()), options)
        zsh = (SOURCE / "guest-shim/doctor/vgpu-doctor.zsh").read_text(encoding="utf-8")
        for option in options:
            self.assertRegex(zsh, rf"(?<![\w-]){option}(?![\w-])")


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
