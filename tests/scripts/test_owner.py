#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tree of another user: commands that build or make a guest print a remedy.

    test_owner.py TOP

They run as a user who may read the tree but not write to it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP, NOBODY, EXIT_SKIP = Path(sys.argv[1]), 65534, 77


def copy(folder):
    """Only the scripts, with the files of a finished guest and of an unfinished build."""
    for name in ("scripts", "qemu"):
        shutil.copytree(TOP / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TOP / "meson.build", folder)
    (folder / "build").mkdir()
    (folder / "build/build.ninja").touch()
    (folder / "build/build.log").touch()
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    folder.chmod(0o755)


def run(folder, *command, **environment):
    def become_nobody():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    # The variables of a run of the whole suite name folders of another tree.
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith("VGPU")}
    return subprocess.run([folder / command[0], *command[1:]], cwd="/", text=True, timeout=60,
                          env=dict(inherited, PYTHONDONTWRITEBYTECODE="1",
                                   TMPDIR=str(folder / "tmp"), **environment),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, preexec_fn=become_nobody, check=False)


def expect(done, status, *words):
    assert done.returncode == status, done
    for word in words:
        assert word in done.stderr, (word, done)
    assert "Permission denied" not in done.stderr and "line " not in done.stderr, done


def main():
    if os.geteuid() != 0:
        print("skipped: only root can make files of another user")
        return EXIT_SKIP
    with tempfile.TemporaryDirectory(prefix="vgpu-owner-") as name:
        folder = Path(name)
        copy(folder)
        guest = f"cannot write to {folder}/build/guest, which is owned by root"
        expect(run(folder, "qemu/make-guest"), 125, guest, "VGPU_GUEST_DIR")
        image = f"cannot write to {folder}/build/image, which is owned by root"
        expect(run(folder, "qemu/make-image"), 125, image, "VGPU_IMAGE_DIR")
        if shutil.which("qemu-system-x86_64"):
            expect(run(folder, "qemu/run-guest", "true"), 125, guest, "VGPU_GUEST_DIR")
        build = f"cannot write to {folder}/build, which is owned by root"
        expect(run(folder, "scripts/fuzz", "--list", VGPU_BUILD=f"{folder}/none"), 125,
               f"cannot write to {folder}/none", "VGPU_BUILD")
        done = run(folder, "scripts/demo", "--no-install")
        if "missing packages" not in done.stderr:
            expect(done, 125, build, "VGPU_BUILD")
        # A guest that is complete can be used by everybody.
        (folder / "build/guest").mkdir()
        for part in ("kernel", "kernel.image", "base.cpio", "applets"):
            (folder / "build/guest" / part).touch()
        done = run(folder, "qemu/make-guest")
        assert done.returncode == 0, done
    return 0


if __name__ == "__main__":
    sys.exit(main())
