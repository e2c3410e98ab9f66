#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Provokes every failure of docs/troubleshooting.md and compares the messages.

    test_reasons.py BUILD PAGE PROGRAM SYSFS [ROW...]

PROGRAM and SYSFS are the programs of this folder. A test names the rows that it
provokes, and a row without a test is an error.
"""

import copy
import ctypes
import ctypes.util
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import false_host  # noqa: E402
import proc  # noqa: E402
import tap  # noqa: E402
import troubleshooting  # noqa: E402
from false_host import FalseHost, device  # noqa: E402
from host import Host  # noqa: E402

PTX = ".version 7.0\n.target sm_70\n.address_size 64\n"
NOBODY = 65534
PIDFD_GETFD = 438  # system call, x86-64
STATUS_OFF_OFF = 56  # of status_off in the header

BUILD = PAGE = PROGRAM = SYSFS = None  # arguments
ROWS = {}  # of the page
TESTS = {}  # by name of row

Skip = unittest.SkipTest

def row(*names):
    """Decorates a test with the rows of the page that it provokes, its arguments."""
    def note(test):
        for name in names:
            TESTS[name] = lambda name=name: test(ROWS[name])
        return test
    return note


def extra(test):
    """Decorates a test of other statements of the page."""
    TESTS[test.__name__] = test
    return test


class Result:
    def __init__(self, out, err):
        self.out, self.err = out, err
        found = re.findall(r"^code (\d+)$", out, re.M)
        assert found, f"the program did not come to its end:\n{out}{err}"
        self.code = int(found[-1])
        # Names, not numbers, of state, reason and errno.
        assert not re.search(r"\b(errno|state|reason) \d", err), err

    def check(self, expected, count=1):
        expected.expect(self.code, self.err)
        assert expected.count(self.err) == count, self.err


def environment(socket=None, level="error", **more):
    variables = dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "guest-shim"), **more)
    variables.setdefault("ASAN_OPTIONS", "detect_leaks=0")
    for name, value in (("VGPU_LOG", level), ("VGPU_SOCKET", socket)):
        variables.pop(name, None)
        if value is not None:
            variables[name] = str(value)
    return variables


def run(socket, *words, level="error", program=None, more=None, **options):
    """Runs a program to its end."""
    done = subprocess.run([program or PROGRAM, *map(str, words)], text=True, timeout=120,
                          env=environment(socket, level, **(more or {})), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    return Result(done.stdout, done.stderr)


def run_on_terminal(socket, *words, level=None):
    """Runs a program with standard error on a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([PROGRAM, *map(str, words)], stderr=theirs, text=True,
                          env=environment(socket, level), stdout=subprocess.PIPE) as child:
        os.close(theirs)
        out, err = child.stdout.read(), b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            err += piece
        os.close(ours)
    return Result(out, err.decode().replace("\r\n", "\n"))


@contextmanager
def host(**options):
    with Host(BUILD, **options) as found:
        yield found


@contextmanager
def folder():
    """A folder that any user may enter."""
    with tempfile.TemporaryDirectory(prefix="vgpu-reasons-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@contextmanager
def files(**texts):
    """Files of these contents; given by name."""
    with folder() as place:
        paths = {}
        for name, text in texts.items():
            paths[name] = place / name
            paths[name].write_bytes(text if isinstance(text, bytes) else text.encode())
        yield paths


#
# No transport to the host
#


def look(place, command=(), **options):
    """Looks for a device in a folder, with a copy of the program that any user may run."""
    done = subprocess.run([*command, place / "sysfs", place / "devices"], text=True,
                          env=environment(), check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)
    return Result(done.stdout, done.stderr)


@contextmanager
def devices():
    with folder() as place:
        shutil.copy(SYSFS, place / "sysfs")
        (place / "devices").mkdir()
        yield place


@row("no-device")
def test_no_device(expected):
    with devices() as place:
        look(place).check(expected)
        # Others are none.
        device(place / "devices", "0000:00:02.0", "0x1af4", "0x1041")
        look(place).check(expected)


@row("no-permission")
def test_no_permission(expected):
    with devices() as place:
        found = device(place / "devices")
        (found / "resource2").chmod(0)
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        result = look(place, **(who if os.geteuid() == 0 else {}))
        result.check(expected)
        assert false_host.IVSHMEM in result.err, result.err


@row("lockdown")
def test_lockdown(expected):
    with devices() as place:
        found, memory = device(place / "devices"), false_host.sealed_memory()
        (found / "resource2").unlink()
        (found / "resource2").symlink_to(f"/proc/{os.getpid()}/fd/{memory}")
        look(place).check(expected)
        os.close(memory)


@row("read-only-sys")
def test_read_only(expected):
    with devices() as place:
        device(place / "devices")
        tree = place / "devices"
        script = f"mount --bind '{tree}' '{tree}' && mount -o remount,ro,bind '{tree}'"
        unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        if subprocess.run([*unshare, "sh", "-c", script], check=False).returncode:
            raise Skip("no file system can be mounted read-only here")
        look(place, [*unshare, "sh", "-c", f'{script} && exec "$@"', "sh"]).check(expected)


@row("no-sysfs")
def test_no_sysfs(expected):
    with devices() as place:
        (place / "devices").rmdir()
        look(place).check(expected)


@row("no-addresses")
def test_no_addresses(expected):
    with devices() as place:
        (device(place / "devices") / "resource2").unlink()
        result = look(place)
        result.check(expected)
        assert "mount /sys" not in result.err, result.err


@row("no-host")
def test_no_host(expected):
    with devices() as place:
        device(place / "devices")
        result = look(place)
        result.check(expected)
        # A second device that may be a vGPU is a better reason than another device.
        (device(place / "devices", "0000:00:06.0") / "resource2").unlink()
        result = look(place)
        assert "0000:00:06.0" in result.err and not expected.count(result.err), result.err


@row("no-socket")
def test_no_socket(expected):
    run("/nonexistent/socket", "init").check(expected)


@row("socket-refused")
def test_socket_refused(expected):
    with folder() as place:
        listener = false_host.socket.socket(false_host.socket.AF_UNIX)
        listener.bind(str(place / "socket"))
        listener.close()
        run(place / "socket", "init").check(expected)


@row("socket-denied")
def test_socket_denied(expected):
    with folder() as place, FalseHost(place / "socket", false_host.greet):
        (place / "socket").chmod(0)
        shutil.copy(PROGRAM, place / "program")
        shutil.copy(BUILD / "guest-shim/libcuda.so.1", place)
        variables = environment(place / "socket")
        variables["LD_LIBRARY_PATH"] = str(place)
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        done = subprocess.run([place / "program", "init"], env=variables, text=True,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **(who if os.geteuid() == 0 else {}))
        Result(done.stdout, done.stderr).check(expected)


@row("socket-silent")
def test_socket_silent(expected):
    with folder() as place, FalseHost(place / "socket", lambda connection: None):
        run(place / "socket", "init").check(expected)


@row("socket-closed")
def test_socket_closed(expected):
    with folder() as place, FalseHost(place / "socket", lambda each: each.close()):
        run(place / "socket", "init").check(expected)


@row("version")
def test_version(expected):
    with folder() as place, \
            FalseHost(place / "socket", lambda each: false_host.greet(each, 4711)):
        result = run(place / "socket", "init")
        result.check(expected)
        assert "version 4711, " in result.err, result.err


@row("no-answer")
def test_no_answer(expected):
    with folder() as place, FalseHost(place / "socket", false_host.silent()):
        run(place / "socket", "init").check(expected)


#
# NVML
#


def look_by_nvml(socket):
    """The code is the exit status of vgpu-smi."""
    libraries = os.pathsep.join(str(BUILD / "guest-shim" / name) for name in ("nvml", ""))
    variables = dict(environment(socket), LD_LIBRARY_PATH=libraries)
    done = subprocess.run([BUILD / "guest-shim/smi/vgpu-smi", "-L"], text=True, timeout=120,
                          env=variables, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return Result(f"code {done.returncode}\n", done.stderr)


def page(off):
    """A host with a page at that offset that nobody writes."""
    def behave(connection):
        shm = false_host.memory()
        os.pwrite(shm, struct.pack("<Q", off), STATUS_OFF_OFF)
        events = [os.eventfd(0), os.eventfd(0)] if hasattr(os, "eventfd") else \
            [os.memfd_create("event") for _ in range(2)]
        false_host.greet(connection, fds=[shm, *events])
        for fd in (shm, *events):
            os.close(fd)
    return behave


@row("nvml-no-state")
def test_nvml_no_state(expected):
    with folder() as place, FalseHost(place / "socket", page(0)):
        result = look_by_nvml(place / "socket")
        result.check(expected)
        assert "nvmlInit fails with NVML_ERROR_DRIVER_NOT_LOADED (9): " in result.err


@row("nvml-no-gpu")
def test_nvml_no_gpu(expected):
    with folder() as place, FalseHost(place / "socket", page(64 << 10)):
        look_by_nvml(place / "socket").check(expected)


@extra
def test_nvml_has_the_reasons_of_the_way_to_the_host():
    look_by_nvml("/nonexistent/socket").check(expected_code("no-socket", 9))


@extra
def test_nvml_names_itself_where_versions_differ():
    with folder() as place, \
            FalseHost(place / "socket", lambda each: false_host.greet(each, 4711)):
        result = look_by_nvml(place / "socket")
        result.check(expected_code("version", 9))
        assert "this libnvidia-ml.so.1 version" in result.err, result.err


def expected_code(name, code):
    """A row of cuInit, with NVML's code."""
    expected = copy.copy(ROWS[name])
    expected.code = code
    return expected


@row("all-places")
def test_all_places(expected):
    with folder() as place, \
            FalseHost(place / "socket", false_host.silent(3, false_host.OTHER)):
        result = run(place / "socket", "init")
        result.check(expected)
        assert "all 3 places" in result.err, result.err


@row("small-memory")
def test_small_memory(expected):
    with folder() as place, FalseHost(place / "socket", false_host.refusing(4)):
        run(place / "socket", "init").check(expected)


#
# A host that does not serve
#


@row("not-visible")
def test_not_visible(expected):
    with host() as found:
        hidden = {"CUDA_VISIBLE_DEVICES": "7"}
        run(found.socket, "init", more=hidden).check(expected)
        run(found.socket, "again", more=hidden).check(expected)
        again = run(found.socket, "again", more=hidden, level="info")
        again.check(expected, count=2)


@row("no-driver")
def test_no_driver(expected):
    with host(driver="/nonexistent/libcuda.so.1") as found:
        run(found.socket, "init").check(expected)
        found.wait_for(r"warning: worker=\d+: there is no driver to serve with \(driver = "
                       r"/nonexistent/libcuda.so.1\): .*cannot open shared object file.*"
                       r"set driver = soft")
        found.wait_for("refused: no-driver")
    # It is no remedy to set what is set already.
    with host(extra="softgpu = /nonexistent/libvgpu-softgpu.so") as found:
        result = run(found.socket, "init")
        result.check(expected)
        assert "set driver = soft" not in result.err, result.err
        said = found.wait_for(r"there is no driver to serve with \(driver = soft\):.*")[0]
        assert re.search("/nonexistent/libvgpu-softgpu.so.*; install softgpu", said), said
        assert "set driver = soft" not in said, said
    # NVIDIA's driver neither, unless this machine has it.
    with host(driver="nvidia", environment={"LD_LIBRARY_PATH": ""}) as found:
        said = found.wait_for("the driver is |there is no driver to serve with.*")[0]
        if said.startswith("there"):
            assert re.search(r"\(driver = nvidia\): there is no libcuda\.so\.1 on this "
                             r"machine; install NVIDIA's driver, .* or set driver = soft",
                             said), said
            run(found.socket, "init").check(expected)


@row("host-no-device")
def test_host_no_device(expected):
    broken = BUILD / "host-daemon/driver/libtest-driver-broken.so"
    with host(driver=broken) as found:
        run(found.socket, "init").check(expected)
        found.wait_for(r"warning: .*there is no driver to serve with.*does not start: "
                       r"cuInit returns CUDA error 100")


@row("host-failed")
def test_host_failed(expected):
    with host(extra="worker = /bin/false") as found:
        run(found.socket, "init").check(expected)


@row("max-processes")
def test_max_processes(expected):
    with host(vm="max-processes = 1") as found, waiting(found):
        result = run(found.socket, "init")
        result.check(expected)
        assert " its limit of 1 processes" in result.err, result.err


@row("max-workers")
def test_max_workers(expected):
    with host(extra="max-workers = 1") as found, waiting(found):
        run(found.socket, "init").check(expected)


@row("addresses")
def test_addresses(expected):
    if is_sanitized():
        raise Skip("the address sanitizer needs more addresses than the limit leaves")
    limit = 900 << 20
    with host() as found:
        run(found.socket, "init", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (limit, limit))).check(expected)


def is_sanitized():
    return "asan" in subprocess.run(["ldd", PROGRAM], text=True, check=False,
                                    stdout=subprocess.PIPE).stdout


@row("forked")
def test_forked(expected):
    with host() as found:
        run(found.socket, "fork").check(expected)


#
# Code
#


@row("no-ptx")
def test_no_ptx(expected):
    with host() as found:
        # An ELF file for another machine is machine code, too.
        for mode in ("load", "library"):
            run(found.socket, mode, PROGRAM).check(expected)


def call_library(socket, name, script):
    """Runs a Python script with a library of NVIDIA's as `library`."""
    file = ctypes.util.find_library(name) or shutil.which(
        f"lib{name}.so", path="/usr/local/cuda/lib64", mode=os.R_OK)
    if not file:
        raise Skip(f"there is no lib{name}.so")
    if is_sanitized():
        raise Skip("a program that is not instrumented cannot load an instrumented library")
    script = f"import ctypes\nlibrary = ctypes.CDLL({file!r})\n{script}"
    done = subprocess.run([sys.executable, "-c", script], text=True, check=False,
                          env=environment(socket), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return Result(done.stdout, done.stderr)


@row("libraries")
def test_libraries(expected):
    """Runs it on a device with a compute capability that the library knows."""
    script = ("handle = ctypes.c_void_p()\n"
              "status = library.cublasCreate_v2(ctypes.byref(handle))\n"
              "print('code', 209 if status else 0)\n")
    with host(extra="softgpu-cc = 8.0") as found:
        result = call_library(found.socket, "cublas", script)
        result.check(expected)
        assert "(209)" in result.err, result.err


UNKNOWN_TABLES = ("00112233445566778899aabbccddeeff", "ff112233445566778899aabbccddeeff")
DISPENSABLE_TABLES = ("f8cff95121468b4eb9e2fb469e7c0dd9", "da9151d33ae6cc41a5c04f26d533e328")


@row("table")
def test_table(expected):
    with host() as found:
        # Exactly one line: the refused library prints nothing.
        result = run_on_terminal(found.socket, "table", *UNKNOWN_TABLES)
        result.check(expected)
        assert "00112233-4455-6677-8899-aabbccddeeff" in result.err, result.err
        result = run_on_terminal(found.socket, "table", *DISPENSABLE_TABLES)
        assert result.code == expected.code and not result.err, result.err


@row("cufft")
def test_cufft(expected):
    script = ("plan = ctypes.c_int()\n"
              "print('code', library.cufftPlan1d(ctypes.byref(plan), 64, 0x29, 1))\n")
    with host() as found:
        call_library(found.socket, "cufft", script).check(expected)


@row("new-ptx")
def test_new_ptx(expected):
    text = PTX.replace("7.0", "9.9") + ".visible .entry k() { ret; }\n"
    with host() as found, files(ptx=text, fat=fat_binary(text, 99)) as paths:
        run(found.socket, "load", paths["ptx"]).check(expected)
        run(found.socket, "load", paths["fat"]).check(expected)


@row("wrong-ptx")
def test_wrong_ptx(expected):
    text = PTX + ".visible .entry k() {\nfrobnicate.b32 what; ret; }\n"
    with host() as found, files(ptx=text) as paths:
        result = run(found.socket, "load", paths["ptx"], "log")
        result.check(expected)
        assert 'PTX line 5: function k: "frobnicate"' in result.err, result.err
        log = re.search(r"^log (.*)$", result.out, re.M)[1]
        assert log and log in result.err, result.out


@row("instruction")
def test_instruction(expected):
    text = PTX + ".visible .entry k() {\nwgmma.fence.sync.aligned;\nret; }\n"
    with host() as found, files(ptx=text) as paths:
        for words in (("function", paths["ptx"], "k"), ("launch", paths["ptx"], "k")):
            result = run(found.socket, *words)
            result.check(expected)
            assert "kernel k: k, line 5: instruction wgmma." in result.err, result.err


@row("launching")
def test_launching(expected):
    text = PTX + (".extern .func (.param .b32 r) __cuda_syscall_cnpv2GetLastError();\n"
                  ".visible .entry k() { { .param .b32 r;\n"
                  "call (r), __cuda_syscall_cnpv2GetLastError, (); }\nret; }\n")
    with host() as found, files(ptx=text) as paths:
        run(found.socket, "function", paths["ptx"], "k").check(expected)


@row("device-graph")
def test_device_graph(expected):
    with host() as found:
        run(found.socket, "graph").check(expected)


@row("large")
def test_large(expected):
    n = 66000
    text = PTX + f".global .u32 word;\n.visible .entry k() {{\n.reg .b32 %r<{n}>;\n"
    text += "".join(f"ld.global.u32 %r{i}, [word];\n" for i in range(n))
    text += "".join(f"st.global.u32 [word], %r{i};\n" for i in range(n)) + "ret; }\n"
    with host() as found, files(ptx=text) as paths:
        run(found.socket, "launch", paths["ptx"], "k").check(expected)


@row("clusters")
def test_clusters(expected):
    with host() as found, files(ptx=PTX + ".visible .entry k() { ret; }\n") as paths:
        run(found.socket, "clusters", paths["ptx"], "k").check(expected)


@row("updatable-node")
def test_updatable_node(expected):
    with host() as found, files(ptx=PTX + ".visible .entry k() { ret; }\n") as paths:
        run(found.socket, "updatable", paths["ptx"], "k").check(expected)


@row("unresolved")
def test_unresolved(expected):
    text = PTX + (".extern .func (.param .b32 r) twice (.param .b32 x);\n"
                  ".visible .entry k() { .reg .b32 %r; .param .b32 x; .param .b32 r;\n"
                  "call (r), twice, (x); ret; }\n")
    with host() as found, files(ptx=text) as paths:
        run(found.socket, "link", paths["ptx"]).check(expected)


@row("damaged")
def test_damaged(expected):
    with host() as found, files(text="no code at all") as paths:
        run(found.socket, "load", paths["text"]).check(expected)


@row("no-file")
def test_no_file(expected):
    with host() as found, folder() as place:
        for name, why in (("none", "No such file or directory"), ("", "no regular file")):
            for mode in ("load", "library"):
                result = run(found.socket, mode, place / name)
                result.check(expected)
                assert why in result.err, result.err


@row("jit-option")
def test_jit_option(expected):
    with host() as found, files(ptx=PTX) as paths:
        run(found.socket, "option", paths["ptx"]).check(expected)


def fat_binary(text, version=70):
    """A container with one entry of PTX (host-daemon/softgpu/fatbin/fatbin.h)."""
    body = text.encode() + b"\0"
    body += bytes(-len(body) % 8)
    major, minor = divmod(version, 10)
    entry = struct.pack("<HHIQIIHHIIIQQQ", 1, 0x101, 64, len(body), 0, 0, minor, major, 70,
                        0, 0, 0x11, 0, 0)
    assert len(entry) == 64
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(body)) + entry + body


@row("cut-image")
def test_cut_image(expected):
    image = bytearray(fat_binary(PTX + ".visible .entry k() { ret; }\n"))
    struct.pack_into("<Q", image, 16 + 8, 1 << 20)  # of the entry
    with host() as found, files(fat=bytes(image)) as paths:
        run(found.socket, "load", paths["fat"]).check(expected)


@row("image-memory")
def test_image_memory(expected):
    text = PTX + ".visible .entry k() { ret; }\n" + "// padding\n" * 6000
    with host(vm="image-memory = 1M") as found, files(ptx=text) as paths:
        run(found.socket, "modules", paths["ptx"]).check(expected)
        run_on_terminal(found.socket, "modules", paths["ptx"]).check(expected)


@row("load-room")
def test_load_room(expected):
    text = PTX + ".visible .entry k() { ret; }\n" + "// padding\n" * 6000
    with host() as found, files(ptx=text) as paths:
        run(found.socket, "crowded", paths["ptx"]).check(expected)
        run_on_terminal(found.socket, "crowded", paths["ptx"]).check(expected)


@row("refused")
def test_refused(expected):
    with host() as found:
        run(found.socket, "refused", level="warning").check(expected)


#
# Budgets
#


@row("device-memory")
def test_device_memory(expected):
    with host(vm="device-memory = 64M") as found:
        run(found.socket, "alloc", 8 << 20).check(expected)


@row("device-full")
def test_device_full(expected):
    with host(extra="softgpu-memory = 64M") as found:
        run(found.socket, "alloc", 8 << 20).check(expected)


@row("handles")
def test_handles(expected):
    with host(vm="handles = 40") as found:
        run(found.socket, "streams").check(expected)


@row("max-threads")
def test_max_threads(expected):
    with host(vm="max-threads = 1") as found:
        run(found.socket, "thread").check(expected)
    with host(vm="max-threads = 2") as found:
        assert run(found.socket, "thread").code == 0


@row("reservations")
def test_reservations(expected):
    with host() as found:
        run(found.socket, "reserve", 2 << 20).check(expected)


@row("shares")
def test_shares(expected):
    with host(extra="softgpu-memory = 32G") as found:
        run(found.socket, "share", 2 << 20).check(expected)


@row("mappings")
def test_mappings(expected):
    # Room for the addresses, of which there are four times as many as memory.
    with host(extra="softgpu-memory = 32G") as found:
        run(found.socket, "map", 2 << 20).check(expected)


@row("shared-memory")
def test_shared_memory(expected):
    with host() as found:
        run(found.socket, "pinned", 30 << 20).check(expected)
        run(found.socket, "create-host", 30 << 20).check(expected)


@row("register")
def test_register(expected):
    with host() as found:
        run(found.socket, "register").check(expected)


@row("register-page")
def test_register_page(expected):
    with host() as found:
        result = run(found.socket, "register-page")
        if "unsupported" in result.out:
            raise Skip("this process may not use userfaultfd(2)")
        result.check(expected)


#
# Ends of sessions
#


@contextmanager
def waiting(found, mode="wait"):
    """A program that has a session."""
    with subprocess.Popen([PROGRAM, mode], text=True,
                          env=environment(found.socket), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


def ended(child):
    out, err = child.communicate(timeout=60)
    return Result(out, err)


def worker_of(found, count=1):
    return int(found.wait_for(r"session opened .* worker=(\d+)", count)[1])


@row("worker-died")
def test_worker_died(expected):
    with host() as found:
        # A signal that sanitizers do not handle.
        for number, name in ((signal.SIGTRAP, "Trace/breakpoint trap"),
                             (signal.SIGKILL, "Killed")):
            with waiting(found) as child:
                os.kill(worker_of(found, 1 + (number == signal.SIGKILL)), number)
                result = ended(child)
            result.check(expected)
            assert f"died ({name})" in result.err, result.err


@row("shutdown")
def test_shutdown(expected):
    with host() as found, waiting(found) as child:
        found.process.send_signal(signal.SIGTERM)
        ended(child).check(expected)


@row("gone")
def test_gone(expected):
    with folder() as place:
        socket, config = place / "socket", place / "vgpud.conf"
        config.write_text(f"[vgpud]\ndriver = soft\nlog-file = {place}/log\n"
                          f"[vm one]\ntransport = socket\nsocket = {socket}\nsize = 256M\n",
                          encoding="ascii")
        with subprocess.Popen([BUILD / "host-daemon/main/vgpud", "--config", config]) as vgpud:
            found = type("Found", (), {"socket": socket})
            while not socket.exists():
                assert vgpud.poll() is None
            with waiting(found) as child:
                vgpud.kill()
                vgpud.wait()
                ended(child).check(expected)


def descriptors(child, kind):
    """Copies of a program's descriptors of one kind."""
    libc, pidfd = ctypes.CDLL(None, use_errno=True), os.pidfd_open(child.pid)
    for path, link in proc.descriptors(child.pid):
        if link.startswith(kind):
            yield libc.syscall(PIDFD_GETFD, pidfd, int(path.rpartition("/")[2]), 0)
    os.close(pidfd)


@row("protocol")
def test_protocol(expected):
    with host() as found, waiting(found) as child:
        # While it is stopped, the tail in its memory is set beyond the ring.
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        memory, *_ = descriptors(child, "/memfd:")
        area = struct.unpack("<Q", os.pread(memory, 8, 24))[0]
        os.pwrite(memory, struct.pack("<Q", 1 << 40), area)
        for doorbell in descriptors(child, "anon_inode:[eventfd]"):
            os.write(doorbell, struct.pack("<Q", 1))
            os.close(doorbell)
        os.close(memory)
        found.wait_for("session ended .*reason=protocol")
        child.send_signal(signal.SIGCONT)
        ended(child).check(expected)


@row("host-memory")
def test_host_memory(expected):
    for program in ("eat", "hoard"):
        with host(vm="host-memory = 200M", extra="softgpu-memory = 1G") as found:
            result = run(found.socket, program)
            result.check(expected)
            assert "their limit of 200 MiB" in result.err, result.err


#
# When messages are printed
#


@extra
def on_a_terminal_it_is_said_by_itself():
    for level, count in ((None, 1), ("error", 1), ("none", 0)):
        result = run_on_terminal("/nonexistent/socket", "again", level=level)
        assert ROWS["no-socket"].count(result.err) == count, (level, result.err)
        assert len(result.err.splitlines()) == count, result.err
    with host() as found, files(text="no code at all") as paths:
        result = run_on_terminal(found.socket, "load", paths["text"])
        result.check(ROWS["damaged"])


@extra
def elsewhere_it_is_said_when_asked_for():
    for level in (None, "none", "nonsense"):
        result = run("/nonexistent/socket", "again", level=level)
        assert not result.err, (level, result.err)
    result = run("/nonexistent/socket", "again", level="error")
    assert len(result.err.splitlines()) == 1, result.err


@extra
def what_programs_may_ask_for_in_vain_is_left_out_on_a_terminal():
    with host(vm="device-memory = 64M") as found:
        for words in (("alloc", 8 << 20), ("pinned", 30 << 20)):
            result = run_on_terminal(found.socket, *words)
            assert result.code == 2 and not result.err, result.err
        result = run_on_terminal(found.socket, "alloc", 8 << 20, level="error")
        result.check(ROWS["device-memory"])


def in_a_guest():
    """Rows that need a kernel, and that tests of a guest provoke."""
    tests = Path(__file__).resolve().parent.parent / "vm"
    text = "".join((tests / name).read_text(encoding="utf-8")
                   for name in ("test-reasons.sh", "test-module.sh"))
    return {name for name in ("driver-denied", "driver-elsewhere", "removed")
            if re.search(rf"\bsays {name} |^\t+{name} 999 ", text, re.M)}


def main():
    global BUILD, PAGE, PROGRAM, SYSFS, ROWS
    BUILD, PAGE, PROGRAM, SYSFS = (Path(word).resolve() for word in sys.argv[1:5])
    ROWS = troubleshooting.rows(PAGE)
    lacks = sorted(set(ROWS) - set(TESTS) - in_a_guest())
    assert not lacks, f"{PAGE} has rows that nothing provokes: {', '.join(lacks)}"
    return tap.run((name, TESTS[name]) for name in sys.argv[5:] or TESTS)


if __name__ == "__main__":
    sys.exit(main())
