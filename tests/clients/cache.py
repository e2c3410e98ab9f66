# SPDX-License-Identifier: Apache-2.0
"""The cache of foreign programs: packages and sources of the distribution, packages of
PyPI, folders that the user names.

It is one folder outside of the tree. Packages are unpacked there and not installed, so that
nothing needs root and the machine is not changed; installed packages are used.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from suite import Skip

CUDA = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
SOURCES = """Types: {types}
URIs: http://deb.debian.org/debian
Suites: {codename}
Components: {components}
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
PLACE = re.compile(r"^'[^']+' (\S+\.deb) ", re.M)
APT_SECONDS = 1200


def default_root():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache) / "vgpu/clients"


def codename():
    """The name of the distribution's release."""
    release = Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r"^VERSION_CODENAME=(\w+)$", release, re.M)
    return found[1] if found else "stable"


class Cache:
    def __init__(self, root, may_fetch=True):
        self.root, self.may_fetch = Path(root).absolute(), may_fetch
        self.unpacked = self.root / "debian"

    def folder(self, name):
        place = self.root / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def apt(self, what, *words, folder=None, options=()):
        """Runs apt-get with a separate cache; a failure is a reason to skip."""
        if not shutil.which("apt-get"):
            raise Skip(f"this is not a Debian machine, and {what} is from there")
        archives = self.folder("archives")
        (archives / "partial").mkdir(exist_ok=True)
        command = ["apt-get", "-qq", "-y", "-o", f"Dir::Cache::archives={archives}",
                   "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root", *options,
                   *words]
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=APT_SECONDS, check=False)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["no reason given"])[0]
            raise Skip(f"{what} is not available from the distribution: {said}")
        return done.stdout

    def packages(self, *names):
        """Unpacks Debian packages and their missing dependencies."""
        empty = self.folder("empty")
        (empty / "partial").mkdir(exist_ok=True)
        install = ["--no-install-recommends", "install", *names]
        listed = self.apt(names[0], "--print-uris", *install,
                          options=["-o", f"Dir::Cache::archives={empty}"])
        self.unpack(names[0], [self.root / "archives" / file for file in PLACE.findall(listed)],
                    ["--download-only", *install])
        return self.unpacked

    def one_package(self, name):
        """Unpacks one Debian package without its dependencies, which are build tools."""
        listed = self.apt(name, "--print-uris", "download", name)
        self.unpack(name, [self.root / "archives" / file for file in PLACE.findall(listed)],
                    ["download", name])
        return self.unpacked

    def foreign_package(self, name, architecture):
        """Unpacks one package of another architecture, without its dependencies. Uses separate
        lists: those of the machine are of its own architecture, which stays the only one."""
        lists = self.folder(f"lists-{architecture}")
        (lists / "partial").mkdir(exist_ok=True)
        options = ["-o", f"APT::Architecture={architecture}",
                   "-o", f"APT::Architectures={architecture}",
                   "-o", "APT::Update::Error-Mode=any", "-o", "Acquire::Languages=none",
                   "-o", f"Dir::State::lists={lists}", "-o", "Dir::State::status=/dev/null",
                   "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="]
        what = f"{name} for {architecture}"
        if self.may_fetch:
            self.apt(what, "update", options=options)
        listed = self.apt(what, "--print-uris", "download", name, options=options)
        self.unpack(what, [self.root / "archives" / file for file in PLACE.findall(listed)],
                    ["download", name], options)
        return self.unpacked

    def contrib_package(self, name):
        """Unpacks one package without its dependencies that is in contrib, because it needs a
        driver from elsewhere."""
        options = self.separate_lists("lists-contrib", types="deb", components="contrib")
        if self.may_fetch:
            self.apt(name, "update", options=["-o", "Acquire::Languages=none", *options])
        listed = self.apt(name, "--print-uris", "download", name, options=options)
        self.unpack(name, [self.root / "archives" / file for file in PLACE.findall(listed)],
                    ["download", name], options)
        return self.unpacked

    def unpack(self, what, files, words, options=()):
        stamps = self.folder("debian/.unpacked")
        files = [file for file in files if not (stamps / file.name).exists()]
        if not files:
            return
        if not all(file.exists() for file in files):
            if not self.may_fetch:
                raise Skip(f"{what} is not in {self.root}, and nothing may be fetched")
            self.apt(what, *words, folder=self.folder("archives"), options=options)
        for file in files:
            if subprocess.run(["dpkg-deb", "-x", file, self.unpacked], check=False).returncode:
                raise Skip(f"{file} cannot be unpacked")
            (stamps / file.name).touch()
            file.unlink()

    def find(self, path):
        """A file of a package, from the cache or else from the machine."""
        for top in (self.unpacked, Path("/")):
            if (top / path).exists():
                return top / path
        raise Skip(f"there is no /{path}, neither in {self.unpacked} nor on this machine")

    def library_folders(self):
        """Library folders of unpacked packages to which update-alternatives would link."""
        place = self.unpacked / "usr/lib/x86_64-linux-gnu"
        return [place, self.unpacked / "usr/lib",
                *(place / name for name in ("blas", "lapack", "pulseaudio"))]

    @staticmethod
    def version_of(*names):
        """The version of the first of these packages that the distribution has."""
        for name in names:
            done = subprocess.run(["apt-cache", "policy", name], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            found = re.search(r"Candidate: (\S+)", done.stdout)
            if found:
                return f"{name} {found[1]}"
        return f"{names[0]} of an unknown version"

    def source_of(self, package):
        """Downloads the source of a Debian package; returns its original tarball."""
        place = self.folder(f"sources/{package}")
        found = sorted(place.glob("*.orig.tar.*"))
        if not found:
            if not self.may_fetch:
                raise Skip(f"the source of {package} is not in {place}, and nothing may be "
                           "fetched")
            self.download_source(package, place)
            found = sorted(place.glob("*.orig.tar.*"))
        if not found:
            raise Skip(f"the source of {package} has no original tarball")
        return found[0]

    def download_source(self, package, place):
        """Uses separate lists: the lists of the machine may lack sources."""
        options = self.separate_lists("lists", types="deb-src", components="main")
        self.apt(f"the source of {package}", "update", options=options)
        self.apt(f"the source of {package}", "source", "--download-only", package,
                 folder=place, options=options)

    def separate_lists(self, name, **of_sources):
        """Options for apt with a list of sources other than the machine's."""
        lists = self.folder(name)
        (lists / "partial").mkdir(exist_ok=True)
        file = self.root / f"{name}.sources"
        file.write_text(SOURCES.format(codename=codename(), **of_sources), encoding="utf-8")
        return ["-o", f"Dir::Etc::sourcelist={file}", "-o", "Dir::Etc::sourceparts=-",
                "-o", f"Dir::State::lists={lists}", "-o", "Dir::Cache::pkgcache=",
                "-o", "Dir::Cache::srcpkgcache="]

    def wheel(self, name, version=None, is_source=False):
        """Unpacks a package of PyPI, without its dependencies; the newest unless told. A
        package of Python alone may be there as source only."""
        if version:
            name = f"{name}=={version}"
        place = self.folder(f"pypi/{name}")
        if any(place.glob("*.dist-info")):
            return place
        if not self.may_fetch:
            raise Skip(f"{name} of PyPI is not in {place}, and nothing may be fetched")
        command = ["python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", place,
                   *([] if is_source else ["--only-binary=:all:"]), name]
        done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=APT_SECONDS, check=False)
        if done.returncode:
            raise Skip(f"{name} is not to be had from PyPI: {done.stdout.strip()[-200:]}")
        return place

    def nvrtc(self):
        """The folder of NVIDIA's run-time compiler: of the toolkit, or else from PyPI."""
        for place in (CUDA / "lib64", CUDA / "lib"):
            if any(place.glob("libnvrtc.so*")):
                return place
        wheel = self.wheel("nvidia-cuda-nvrtc")
        found = next(iter(wheel.rglob("libnvrtc.so.*")), None)
        if not found:
            raise Skip("nvidia-cuda-nvrtc of PyPI has no libnvrtc.so")
        return found.parent


def tool_of(*names):
    """The first of some programs that is installed."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise Skip(f"{names[0]} is not installed")


def cuda_tool(name):
    """A program of the CUDA toolkit."""
    path = f"{CUDA}/bin:{os.environ.get('PATH', '')}"
    found = shutil.which(name, path=path)
    if not found:
        raise Skip(f"{name} of the CUDA toolkit is not installed (CUDA_HOME)")
    return found
