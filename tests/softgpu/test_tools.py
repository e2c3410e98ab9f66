#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-softgpu-info and vgpu-ptxas, on good, wrong and hostile files.

    test_tools.py INFO PTXAS PROGRAM-WITHOUT-DEVICE-CODE
"""

import json
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

INFO, PTXAS, PROGRAM = sys.argv[1:]
HEADER = ".version 9.0\n.target sm_75\n.address_size 64\n"
GOOD = HEADER + """.visible .entry add(.param .u64 p, .param .u32 n) {
.shared .b8 room[64]; .reg .b32 %r<3>; .reg .b64 %d;
ld.param.u64 %d, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, room;
st.shared.u32 [%r2], %r1; bar.sync 0; st.global.u32 [%d], %r1; ret;
}
"""
PARTLY = GOOD + """.visible .entry wrong() {
tcgen05.wait::ld.sync.aligned;
bar.sync 0;
tcgen05.wait::st.sync.aligned;
ret;
}
"""
TRITON = ["-lineinfo", "--fmad=false", "-v", "--regAllocOptLevel=2", "--gpu-name=sm_121a"]
HOSTILE = 150  # files of each kind
ELF = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")


def run(*command):
    done = subprocess.run([str(word) for word in command], text=True, check=False, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, errors="replace")
    assert done.returncode >= 0, f"{command}: signal {-done.returncode}\n{done.stderr}"
    return done


def expect(done, status, *parts):
    text = done.stdout + done.stderr
    assert done.returncode == status, f"status {done.returncode}, not {status}:\n{text}"
    for part in parts:
        assert part in text, f"{part!r} is not in:\n{text}"


def container(*entries):
    """A fat binary of entries (kind, arch, payload)."""
    body = b"".join(
        struct.pack("<HHIQ", kind, 0x101, 64, len(payload)) +
        struct.pack("<IIHHI", 0, 0, 0, 9, arch) + bytes(8) + struct.pack("<Q", 1) +
        bytes(64 - 48) + payload for kind, arch, payload in entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def elf(machine, sections, flags=0):
    """An ELF file with sections (name, contents)."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _ in sections) + b".names\0"
    table, place = [SECTION.pack(*[0] * 10)], ELF.size + (len(sections) + 2) * SECTION.size
    contents, at = b"", 1
    for name, data in [*sections, (".names", names)]:
        contents += bytes(-(place + len(contents)) % 8)
        kind = 3 if data is names else 1
        table.append(SECTION.pack(at, kind, 0, 0, place + len(contents), len(data), 0, 0, 8, 0))
        contents, at = contents + data, at + len(name) + 1
    head = ELF.pack(b"\x7fELF", 2, 1, 1, 0x41, 8, 2, machine, 1, 0, 0, ELF.size, flags, 64, 56,
                    0, 64, len(table), len(table) - 1)
    return head + b"".join(table) + contents


class Files:
    """Files of each kind, in a folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        cubin = elf(190, [(".text.fast", b"code"), (".nv.info", b"")], 90 << 8)
        both = container((2, 90, cubin), (1, 75, GOOD.encode()))
        self.good = self.write("good.ptx", GOOD)
        self.partly = self.write("partly.ptx", PARTLY)
        self.cubin = self.write("cubin", cubin)
        self.fatbin = self.write("fatbin", both)
        self.machine = self.write("machine", container((2, 80, cubin), (2, 90, cubin)))
        # the linker aligns them
        padding = bytes(-len(both) % 8 + 8)
        self.program = self.write("program", elf(62, [
            (".text", b"x"),
            (".nv_fatbin", both + padding + container((1, 75, PARTLY.encode())))]))

    def write(self, name, contents):
        path = self.folder / name
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
        return path


#
# vgpu-softgpu-info
#


def test_sizes_and_verdict(files):
    expect(run(INFO, files.good), 0, "PTX 9.0 for sm_75", "kernel add: runs",
           "64 bytes shared", "12 parameters", "every kernel runs")


def test_refused_operations_have_lines(files):
    expect(run(INFO, files.partly), 1, "kernel add: runs", "kernel wrong: does not run",
           "line 10: instruction tcgen05.wait::ld.sync.aligned is not supported",
           "line 12: instruction tcgen05.wait::st.sync.aligned is not supported")


def test_containers_and_machine_code(files):
    expect(run(INFO, files.fatbin), 0, "machine code for sm_90, PTX 9.0 for sm_75", "add: runs")
    expect(run(INFO, files.machine), 2, "machine code for sm_80", "runs no machine code")
    expect(run(INFO, files.cubin), 2, "machine code for sm_90 (kernel fast)")


def test_programs(files):
    expect(run(INFO, files.program), 1, ".nv_fatbin+0x0", "add: runs", "wrong: does not run")
    expect(run(INFO, PROGRAM), 3, "there is no device code")


def test_json(files):
    found = json.loads(run(INFO, "--json", files.program).stdout)
    assert found["status"] == 1 and found["cc"] == "12.1" and len(found["images"]) == 2, found
    kernels = [image["ptx"]["kernels"] for image in found["images"]]
    assert [[k["runs"] for k in part] for part in kernels] == [[True], [True, False]], kernels
    assert [r["line"] for r in kernels[1][1]["refused"]] == [10, 12], kernels
    assert found["images"][0]["entries"][0] == {"kind": "machine code", "target": "sm_90"}
    assert kernels[0][0]["shared"] == 64 and kernels[0][0]["parameters"] == 12
    name = files.write('a"b\\\n\x01.ptx', GOOD)
    assert json.loads(run(INFO, "-j", name).stdout)["file"] == str(name)
    for file, status in ((files.cubin, 2), (files.machine, 2), (PROGRAM, 3)):
        assert json.loads(run(INFO, "-j", file).stdout)["status"] == status


def test_device(files):
    expect(run(INFO, "--cc", "7.0", files.good), 2, "sm_75 is not for a device")
    expect(run(INFO, "--cc=9.0", files.good), 0)
    for wrong in ("9", "9.0a", "x", "0.0", "12.12", ""):
        expect(run(INFO, "-c", wrong, files.good), 125, "no compute capability")


def test_wrong_command_lines(files):
    expect(run(INFO), 125, "no file")
    expect(run(INFO, files.good, files.good), 125, "more than one")
    expect(run(INFO, "/nonexistent"), 125, "No such file")
    expect(run(INFO, files.folder), 125)
    expect(run(INFO, files.write("empty", b"")), 3)
    expect(run(INFO, files.write("text", "no device code")), 3, "neither PTX nor")
    expect(run(INFO, files.write("newer.ptx", ".version 99.0\n")), 2)


def test_names_do_not_reach_a_terminal(files):
    name = elf(190, [(".text.a\x1b[2Jb", b"")])
    done = run(INFO, files.write("escape", name))
    assert "\x1b" not in done.stdout and "a?[2Jb" in done.stdout, done


#
# vgpu-ptxas
#


def test_as_triton_calls_it(files):
    out = files.folder / "out.cubin"
    expect(run(PTXAS, *TRITON, files.good, "-o", out), 0,
           "Compiling entry function 'add' for 'sm_121a'", "used 1 barriers, 64 bytes smem")
    expect(run(INFO, out), 0, "stand-in for a cubin", "add: runs")
    assert GOOD.encode() in out.read_bytes()


def test_standins_in_containers(files):
    """As nvcc puts the file of ptxas into a program."""
    out = files.folder / "part.cubin"
    expect(run(PTXAS, "--gpu-name=sm_90", files.good, "-o", out), 0)
    both = files.write("both", container((2, 90, out.read_bytes()), (1, 75, PARTLY.encode())))
    expect(run(INFO, both), 0, "stand-in with PTX for sm_90, PTX 9.0 for sm_75", "add: runs")
    expect(run(INFO, "--cc=8.0", both), 1, "wrong: does not run")
    found = json.loads(run(INFO, "-j", both).stdout)
    assert found["images"][0]["entries"][0] == {"kind": "stand-in", "target": "sm_90"}, found
    version = run(PTXAS, "--version")
    assert re.search(r".*release (\d+\.\d+).*", version.stdout, re.M)[1] == "13.0", version


def test_errors_of_ptxas(files):
    out = files.folder / "none"
    wrong = files.write("wrong.ptx", GOOD.replace("bar.sync 0", "nonsense"))
    done = run(PTXAS, wrong, "-o", out)
    expect(done, 255, f"ptxas {wrong}, line 7; error   : ",
           "ptxas fatal   : Ptx assembly aborted due to errors")
    expect(run(PTXAS, "-arch", "sm_70", files.good, "-o", out), 255, "sm_75")
    expect(run(PTXAS, "--no-such", files.good), 255, "fatal   : Unknown option '--no-such'")
    expect(run(PTXAS, "-o", out), 255, "No input file")
    expect(run(PTXAS, "/nonexistent", "-o", out), 255, "could not be opened")
    expect(run(PTXAS, files.good, "-o", "/nonexistent/out"), 255, "could not be written")
    assert not out.exists()


def test_kernels_that_do_not_run(files):
    out = files.folder / "partly.cubin"
    expect(run(PTXAS, files.partly, "-o", out), 0,
           f"ptxas {files.partly}, line 10; warning : softgpu does not run wrong")
    expect(run(INFO, out), 1)
    done = run(PTXAS, "-w", files.partly, "-o", out)
    assert not done.returncode and not done.stderr, done
    out.unlink()
    expect(run(PTXAS, "-Werror", files.partly, "-o", out), 255, "line 10; error")
    assert not out.exists()


def test_text_as_an_argument(files):
    out = files.folder / "text.cubin"
    expect(run(PTXAS, "-ias", GOOD, "-o", out), 0)
    expect(run(INFO, out), 0)


#
# Both, on what nobody would write
#


def test_hostile_files(files):
    rng = random.Random(1)
    out = files.folder / "hostile.cubin"
    run(PTXAS, files.good, "-o", out)
    for source in (files.program, files.fatbin, files.cubin, out, files.partly):
        whole = source.read_bytes()
        for _ in range(HOSTILE):
            data = bytearray(whole[:rng.randrange(1, len(whole) + 1)]
                             if rng.random() < 0.3 else whole)
            for _ in range(rng.randrange(4)):
                at = rng.randrange(min(len(data), rng.choice([64, 400, 1 << 30])))
                data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            path = files.write("hostile", bytes(data))
            done = run(INFO, path)
            assert done.returncode in (0, 1, 2, 3), done
            if source == files.partly:
                assert run(PTXAS, path, "-o", "/dev/null").returncode in (0, 255)


def main():
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    with tempfile.TemporaryDirectory(prefix="vgpu-tools-") as folder:
        files = Files(folder)
        for test in tests:
            test(files)
            print(test.__name__)


if __name__ == "__main__":
    main()
