#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command has --version and --help, and refuses unknown arguments.

    test_arguments.py TOP PROGRAM...
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(sys.argv[1]).absolute()
# Also programs of the build, with their exit status for a wrong command line.
COMMANDS = {
    "scripts/check-style": 125, "scripts/clients": 125, "scripts/demo": 125,
    "scripts/fuzz": 125, "scripts/make-guest-package": 125, "scripts/make-kmod": 125,
    "scripts/pre-push": 125,
    "scripts/soak": 125, "scripts/test": 125, "scripts/test-cross": 125,
    "scripts/vgpu-run": 125, "qemu/make-guest": 125, "qemu/make-image": 125,
    "qemu/run-guest": 125, "tests/packages/old-guests": 125,
    "tests/packages/record": 125, "tests/packages/run": 125,
    "tests/skew/run": 125,
    "tests/vm/debian-kernel": 125, "tests/vm/debug-kernel": 125,
    "tests/vm/run": 125, "guest-shim/package/install.sh": 125,
    "guest-shim/package/uninstall.sh": 125, "libcuda-check": 125, "vgpud": 2,
    "vgpu-worker": 2, "vgpu-bench": 125, "vgpu-cdi": 125, "vgpu-kubevirt-hook": 125,
    "vgpu-proxmox-hook": 125, "vgpu-sensors": 125,
    "vgpu-softgpu-info": 125, "vgpu-ptxas": 255, "vgpuctl": 2,
    "vgpu-doctor": 2,
}
WITHOUT_SHORT_HELP = {"vgpu-worker", "vgpu-bench", "vgpu-sensors"}
# Options that need a value, one of each command that has one.
VALUES = {
    "scripts/demo": "--driver", "scripts/fuzz": "--corpus", "scripts/test": "--fuzz-seconds",
    "scripts/make-guest-package": "--output", "scripts/make-kmod": "--kernel",
    "scripts/vgpu-run": "--driver", "qemu/make-guest": "--dir",
    "qemu/make-image": "--include",
    "tests/packages/old-guests": "--root", "qemu/run-guest": "--memory", "scripts/soak": "--kills",
    "scripts/clients": "--only", "guest-shim/package/install.sh": "--user",
    "guest-shim/package/uninstall.sh": "--root", "vgpu-cdi": "--lib",
    "vgpu-sensors": "--library", "vgpuctl": "--socket", "vgpu-doctor": "--root",
    "tests/vm/debian-kernel": "--release", "tests/vm/debug-kernel": "--dir",
    "vgpu-kubevirt-hook": "--vmi",
    "tests/vm/run": "--kernel", "tests/packages/record": "--output",
    "tests/packages/run": "--keep",
    "tests/skew/run": "--release",
}


def run(program, *arguments):
    """Runs it in an empty folder, which has to be empty afterwards."""
    with tempfile.TemporaryDirectory(prefix="vgpu-arguments-") as folder:
        done = subprocess.run([program, *arguments], cwd=folder, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        left = list(Path(folder).iterdir())
        assert not left, f"{program} {arguments} left {left}"
    return done


def check(name, program, version):
    """Returns a sentence for each failure."""
    status = COMMANDS[name]
    done = run(program, "--version")
    packaged = "package/" in name  # its version is filled in when it is packed
    if done.returncode or not re.search(r"@VERSION@" if packaged else rf"\b{version}$",
                                        done.stdout.strip()):
        yield f"{name} --version: {done}"
    for option in ("--help", "-h")[:1 if name in WITHOUT_SHORT_HELP else 2]:
        done = run(program, option)
        if done.returncode or "usage" not in done.stdout.lower() or done.stderr:
            yield f"{name} {option}: {done}"
    for wrong in (["--no-such-option"], [VALUES[name]] if name in VALUES else []):
        done = run(program, *wrong) if wrong else None
        if done and (done.returncode != status or not done.stderr or
                     re.search(r"line \d+:|Traceback", done.stderr)):
            yield f"{name} {' '.join(wrong)}: {done}"
    if name in ("scripts/pre-push", "scripts/test", "scripts/demo", "libcuda-check"):
        done = run(program, "nonsense")
        if done.returncode != status or "nonsense" not in done.stderr:
            yield f"{name} nonsense: {done}"
    # An argument of the others is a file.
    if not any(part in name for part in ("/", "libcuda-check", "softgpu-info", "ptxas")):
        done = run(program, "nonsense")
        if done.returncode != status or len(done.stderr.splitlines()) > 2 or \
                "unexpected argument 'nonsense'" not in done.stderr:
            yield f"{name} nonsense: {done}"


def main():
    version = re.search(r"^  version: '(.*)',$", (TOP / "meson.build").read_text(), re.M)[1]
    built = {Path(path).name: Path(path).absolute() for path in sys.argv[2:]}
    wrong = [sentence for name in COMMANDS
             for sentence in check(name, built.get(name, TOP / name), version)]
    # New scripts have to be in the list.
    for folder in ("scripts", "qemu"):
        for path in (TOP / folder).iterdir():
            if path.is_file() and path.stat().st_mode & 0o100 and \
                    f"{folder}/{path.name}" not in COMMANDS and path.name != "guest-init":
                wrong.append(f"{path} is not tested")
    print("\n".join(wrong) or f"{len(COMMANDS)} commands")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
