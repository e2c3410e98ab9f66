#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""meson install into an empty root: all documented files, which work; uninstall.

    test_install.py BUILD PROGRAM

PROGRAM, a program of the Driver API, runs on the installed library against the
installed vgpud and worker; the build folder's own are not used.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

from host import Host  # noqa: E402

HAS_LIBVIRT = (Path(sys.argv[1]) / "host-daemon/ctl/libvirt-hook").exists()
HAS_METRICS = (Path(sys.argv[1]) / "host-daemon/metrics/vgpu-metrics.service").exists()
OF_METRICS = ("vgpu-metrics", "vgpu-metrics.service", "vgpu-metrics.8", "alerts.yml",
              "dashboard.json")

# Documented files and their folders; there may be more pages.
EXPECTED = {
    "libcuda.so": "lib/*/vgpu",
    "libcuda.so.1": "lib/*/vgpu",
    "libnvidia-ml.so": "lib/*/vgpu",
    "libnvidia-ml.so.1": "lib/*/vgpu",
    "libvgpu-null.so": "lib/*/vgpu",
    "libvgpu-softgpu.so": "lib/*/vgpu",
    "vgpu-sensors": "libexec/vgpu",
    "vgpu-worker": "libexec/vgpu",
    "vgpu-cdi": "bin",
    "vgpu-doctor": "bin",
    "vgpu-ptxas": "bin",
    "vgpu-smi": "bin",
    "vgpu-softgpu-info": "bin",
    "vgpu-replay": "bin",
    "vgpuctl": "bin",
    "vgpud": "sbin",
    "vgpud.service": "lib/systemd/system",
    "vgpud.socket": "lib/systemd/system",
    "vgpu-metrics": "sbin",
    "vgpu-metrics.service": "lib/systemd/system",
    "alerts.yml": "share/vgpu/metrics",
    "dashboard.json": "share/vgpu/metrics",
    "vgpu-groups.conf": "lib/sysusers.d",
    "vgpu-folders.conf": "lib/tmpfiles.d",
    "device-plugin.yaml": "share/vgpu/kubevirt",
    "libcuda.map": "share/vgpu",
    "libcuda-symbols.json": "share/vgpu",
    "vgpu-kubevirt-hook": "share/vgpu/kubevirt",
    "vgpu-proxmox-hook": "share/vgpu/proxmox",
    "virtual-machine.yaml": "share/vgpu/kubevirt",
    "vgpu.conf": "share/doc/vgpu/ld.so.conf.d",
    "vgpu": "etc/libvirt/hooks/qemu.d",
    "vgpud.conf": "share/doc/vgpu",
    "_vgpu-doctor": "share/zsh/site-functions",
    "_vgpu-smi": "share/zsh/site-functions",
    "_vgpuctl": "share/zsh/site-functions",
    "vgpu-cdi.1": "share/man/man1",
    "vgpu-doctor.1": "share/man/man1",
    "vgpu-ptxas.1": "share/man/man1",
    "vgpu-smi.1": "share/man/man1",
    "vgpu-softgpu-info.1": "share/man/man1",
    "vgpu-replay.1": "share/man/man1",
    "vgpuctl.1": "share/man/man1",
    "vgpu-kubevirt-hook.8": "share/man/man8",
    "vgpu-proxmox-hook.8": "share/man/man8",
    "vgpu-metrics.8": "share/man/man8",
    "vgpu-sensors.8": "share/man/man8",
    "vgpu-worker.8": "share/man/man8",
    "vgpud.8": "share/man/man8",
}


def files_of(root):
    return [path for path in root.rglob("*") if path.is_symlink() or not path.is_dir()]


def check_files(root):
    found = files_of(root)
    installed = {path.name: path for path in found}
    if not HAS_LIBVIRT:
        del EXPECTED["vgpu"]
    if not HAS_METRICS:
        for name in OF_METRICS:
            del EXPECTED[name]
    for name, folder in EXPECTED.items():
        assert name in installed, f"{name} is not installed"
        assert installed[name].parent.match("*/" + folder), installed[name]
    for path in found:
        page = "share/man/" in str(path) or "share/doc/vgpu" in str(path)
        assert page or path.name in EXPECTED, f"{path} is not documented"
        assert not path.stat().st_mode & 0o6022, f"{path}: {path.stat().st_mode:o}"
    return installed


def check_program(build, program, installed):
    extra = (
        f"worker = {installed['vgpu-worker']}\n"
        f"softgpu = {installed['libvgpu-softgpu.so']}\n"
    )
    library = str(installed["libcuda.so.1"].parent)
    with Host(build, extra=extra, vgpud=installed["vgpud"]) as host:
        environment = dict(
            os.environ, VGPU_SOCKET=str(host.socket), LD_LIBRARY_PATH=library
        )
        done = subprocess.run([program], env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done
        host.wait_for("session ended .*launches=1 ")
        maps = host.text()
    assert str(installed["libvgpu-softgpu.so"].name) in maps, maps


def main():
    build, program = Path(sys.argv[1]), sys.argv[2]
    log = build / "meson-logs/install-log.txt"
    before = log.read_text() if log.exists() else None
    with tempfile.TemporaryDirectory(prefix="vgpu-install-") as folder:
        root = Path(folder)
        environment = dict(os.environ, DESTDIR=folder)
        meson = os.environ.get("MESON", "meson")
        try:
            subprocess.run(
                [meson, "install", "-C", build, "--no-rebuild", "--quiet"],
                env=environment,
                stdout=subprocess.DEVNULL,
                check=True,
            )
            installed = check_files(root)
            check_program(build, program, installed)
            subprocess.run(
                [meson, "--internal", "uninstall"],
                cwd=build,
                env=environment,
                stdout=subprocess.DEVNULL,
                check=True,
            )
        finally:
            # A later `ninja uninstall` shall remove the files that the user installed.
            if before is None:
                log.unlink(missing_ok=True)
            else:
                log.write_text(before)
        left = files_of(root)
        assert not left, f"left behind: {left}"


if __name__ == "__main__":
    main()
