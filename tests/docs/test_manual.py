#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages and --help are complete: test_manual.py SOURCE VGPUD WORKER INFO PTXAS CTL DOCTOR
    KUBEVIRT PROXMOX

Keys of the configuration, options of the programs and variables of the environment that are
in the sources have to be in the page, and in the help, of the program that reads them.
"""

import pathlib
import re
import subprocess
import sys

import readme

SOURCE = pathlib.Path(sys.argv[1])

# Not names of errors; HOME and the like need no description.
VARIABLE = r'"((?:VGPU|SOFTGPU|XDG|CUDA)_(?!ERROR|SUCCESS)[A-Z_]+)"'

# Options of vgpuctl that only some verbs have, and their help.
CTL_OF_VERBS = ("call", "command", "config", "connect", "guest", "interval", "merge", "once",
                "output", "persistent", "process", "seconds", "size", "sort", "vram", "wait")


def sources(folder):
    return [file for file in (SOURCE / folder).rglob("*.[ch]")
            if not file.name.startswith("test-")]


def found(pattern, *files):
    """All matches of the pattern's group, at least one."""
    names = {name for file in files for name in re.findall(pattern, file.read_text())}
    assert names, f"nothing in {files} matches {pattern}"
    return names


def page(name):
    """The text of a page without markup of words."""
    text = (SOURCE / "docs" / "man" / name).read_text()
    return re.sub(r"\\f[A-Z]", "", text.replace("\\-", "-"))


def said(program):
    return subprocess.run([program, "--help"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def missing(names, text):
    return sorted(n for n in names if not re.search(rf"(?<![\w-]){n}(?![\w-])", text))


def check(what, names, **texts):
    lacks = [f"{where} lacks {what} {', '.join(left)}"
             for where, text in texts.items() if (left := missing(names, text))]
    print(f"{what}: {len(names)}")
    return lacks


def main():
    host = SOURCE / "host-daemon"
    vgpud = [*sources("host-daemon/broker"), *sources("host-daemon/keeper"),
             *sources("host-daemon/main"), *sources("host-daemon/vgpud")]
    option = r'\{ "([\w-]+)", \w+_argument'
    shim = sources("guest-shim/src")
    protocol = sources("protocol/src") + sources("protocol/include/vgpu")
    drivers = sources("host-daemon/softgpu") + sources("host-daemon/driver/null")
    lacks = check("key", found(r'_(?:KEY|NUMBER)\("([\w-]+)"', host / "vgpud/config.c"),
                  page=page("vgpud.8"), help=said(sys.argv[2]))
    lacks += check("option", {f"--{name}" for name in found(option, host / "main/main.c")},
                   page=page("vgpud.8"), help=said(sys.argv[2]))
    lacks += check("variable", found(r'getenv\("(\w+)"', *vgpud),
                   page=page("vgpud.8"))
    lacks += check("signal", found(r"\b(SIG(?!_)[A-Z]+[0-9]?)\b(?!M)", host / "vgpud/signals.c",
                                   host / "keeper/keeper.c", host / "broker/broker.c") -
                   {"SIGRTMIN", "SIGRTMAX", "SIGCHLD"}, page=page("vgpud.8"))
    options = found(option, host / "worker/run/options.c")
    lacks += check("option", {f"--{name}" for name in options},
                   page=page("vgpu-worker.8"), help=said(sys.argv[3]))
    lacks += check("variable", found(VARIABLE, *shim, *protocol),
                   page=page("vgpu-shim.7"))
    lacks += check("variable", found(VARIABLE, *drivers), page=page("vgpu-worker.8"))
    tool = host / "softgpu/tool"
    lacks += check("option", {f"--{name}" for name in found(option, tool / "info.c")},
                   page=page("vgpu-softgpu-info.1"), help=said(sys.argv[4]))
    # of ptxas, those that have an effect
    effective = r'\{ "([\w-]+)",\s*"[\w-]+",\s*\w+,\s*(?!NONE)\w+ \}'
    lacks += check("option", {f"--{name}" for name in found(effective, tool / "ptxas-options.c")},
                   page=page("vgpu-ptxas.1"), help=said(sys.argv[5]))
    ctl = host / "ctl/main.c"
    lacks += check("option", {f"--{name}" for name in found(option, ctl)} -
                   {f"--{name}" for name in CTL_OF_VERBS},
                   page=page("vgpuctl.1"), help=said(sys.argv[6]))
    lacks += check("verb", found(r'\{ "([\w-]+)", "', ctl) |
                   {f"--{name}" for name in CTL_OF_VERBS},
                   page=page("vgpuctl.1"))
    doctor = SOURCE / "guest-shim/doctor"
    lacks += check("option", {f"--{name}" for name in found(option, doctor / "main.c")},
                   page=page("vgpu-doctor.1"), help=said(sys.argv[7]))
    subjects = found(r'VGPU_FINDING_\w+,\s+"([\w-]+)"', *sources("guest-shim/doctor"))
    lacks += check("subject", subjects, page=page("vgpu-doctor.1"))
    lacks += check("option", {f"--{name}" for name in found(option, host / "metrics/main.c")},
                   page=page("vgpu-metrics.8"))
    lacks += check("option", {f"--{name}" for name in found(option, host / "replay/main.c")},
                   page=page("vgpu-replay.1"))
    hooks = {"kubevirt": sys.argv[8], "proxmox": sys.argv[9]}
    # --json is vgpuctl's.
    for manager, program in hooks.items():
        script = SOURCE / f"qemu/{manager}/vgpu-{manager}-hook.in"
        lacks += check("option", found(r'"(--(?!json)[a-z]+)"', script) |
                       set(re.findall(r'environ\.get\("(\w+)"', script.read_text())),
                       page=page(f"vgpu-{manager}-hook.8"), help=said(program))
    packages = (SOURCE / "scripts/lib/packages.sh").read_text()
    build = re.search(r"packages_build=\((.*?)\)", packages, re.S)[1].split()
    lacks += check("package", set(build),
                   readme=readme.block((SOURCE / "README.md").read_text(), "Host", 1, "sh"))
    print("\n".join(lacks))
    return bool(lacks)


sys.exit(main())
