#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""systemd makes the groups and folders: test_folders.py GROUPS FOLDERS"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

import tap  # noqa: E402

GROUPS, FOLDERS = map(Path, sys.argv[1:3])


def apply(program, file, root, *words):
    """Runs it on another root."""
    if not shutil.which(program):
        raise unittest.SkipTest(f"{program} is not installed")
    if os.geteuid() != 0:
        raise unittest.SkipTest("only root makes files of root")
    done = subprocess.run([program, f"--root={root}", *words, file.absolute()],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr.strip().endswith("ignoring."), done


def the_groups_of_vgpuctl_are_made_once():
    with tempfile.TemporaryDirectory(prefix="vgpu-folders-") as folder:
        (Path(folder) / "etc").mkdir()
        for _ in range(2):
            apply("systemd-sysusers", GROUPS, folder)
        lines = (Path(folder) / "etc/group").read_text().splitlines()
    names = [line.split(":")[0] for line in lines]
    assert sorted(names) == ["vgpu-admin", "vgpu-monitor"], lines


def the_folders_are_roots_and_their_files_stay():
    with tempfile.TemporaryDirectory(prefix="vgpu-folders-") as folder:
        apply("systemd-tmpfiles", FOLDERS, folder, "--create")
        place = Path(folder) / "etc/vgpu/vm.d"
        for path in (place, place.parent):
            assert (path.stat().st_mode & 0o7777, path.stat().st_uid) == (0o755, 0), path
        (place / "one.conf").write_text("[vm one]\n")
        apply("systemd-tmpfiles", FOLDERS, folder, "--create", "--clean", "--remove")
        assert (place / "one.conf").exists()


def the_groups_are_those_that_vgpud_looks_for():
    source = Path(__file__).resolve().parent.parent.parent / "host-daemon/broker/ctl-peer.h"
    for line in GROUPS.read_text().splitlines():
        if line.startswith("g "):
            assert f'"{line.split()[1]}"' in source.read_text(), line


if __name__ == "__main__":
    sys.exit(tap.run((case.__name__, case) for case in (
        the_groups_of_vgpuctl_are_made_once, the_folders_are_roots_and_their_files_stay,
        the_groups_are_those_that_vgpud_looks_for)))
