# SPDX-License-Identifier: Apache-2.0
"""The files that run-guest adds to the base of its guest: libraries, one command.

They become a cpio archive after the one of the base, and the kernel unpacks both.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import tool

MULTIARCH = "lib/x86_64-linux-gnu"
# Never copied as dependencies of a program: --lib provides them.
NEVER = re.compile(r"(libcuda|libnvidia-ml)\.so")


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def real_folder(path):
    """An absolute path, with `..` resolved by name, so that links are not followed."""
    return os.path.normpath(os.path.join(os.getcwd(), path))


class Payload:
    """The folder that becomes the archive."""

    def __init__(self, folder, applets):
        self.folder, self.applets = Path(folder), applets
        self.folder.mkdir()

    def put(self, host, guest):
        """Creates parent folders and follows links; existing files are kept."""
        to = self.folder / str(guest).lstrip("/")
        if to.exists():
            return
        to.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["cp", "-rL", "--", host, to], stderr=subprocess.PIPE,
                              text=True, errors="replace", check=False)
        if done.returncode:
            raise tool.Failure(
                f"cannot copy {host} for the guest", *done.stderr.splitlines())

    def put_libraries(self, path):
        """Adds the libraries that the loader of this machine finds for a file, by soname."""
        listed = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.DEVNULL, check=False).stdout
        for name, place in re.findall(r"^\t(\S+) => (/\S+) ", listed, re.M):
            name = name.rpartition("/")[2]
            if not NEVER.match(name):
                self.put(place, f"{MULTIARCH}/{name}")

    def add(self, spec):
        """Adds HOST[:GUEST], a file with its libraries, or a folder."""
        host, _, guest = spec.partition(":")
        if not os.path.exists(host):
            raise tool.Failure(f"no such file: {host}")
        self.put(host, guest if guest.startswith("/") else real_folder(guest or host))
        if os.path.isfile(host) and is_elf(host):
            self.put_libraries(host)

    def add_library(self, path):
        """Adds it to the search path of the loader; for NAME.so.N also a link NAME.so."""
        if not os.access(path, os.R_OK):
            raise tool.Failure(f"no such library: {path}")
        name = os.path.basename(path)
        self.put(path, f"{MULTIARCH}/{name}")
        self.put_libraries(path)
        if ".so." in name:
            plain = self.folder / MULTIARCH / (name.rpartition(".so.")[0] + ".so")
            plain.unlink(missing_ok=True)
            plain.symlink_to(name)

    def add_module(self, path):
        """Adds a kernel module, which guest-init loads."""
        if not os.access(path, os.R_OK):
            raise tool.Failure(f"no such module: {path}")
        self.put(path, f"payload/modules/{os.path.basename(path)}")

    def add_command(self, command):
        """Returns the command as the guest must call it."""
        if "/" in command:
            command = real_folder(command) if os.path.exists(command) else command
        elif command not in self.applets:
            command = shutil.which(command) or command
        if "/" in command and os.path.isfile(command):
            self.add(command)
        return command

    def set_command(self, words, variables, cwd):
        command = self.add_command(words[0])
        lines = [f"export {name}={tool.quote([value])}" for name, value in variables]
        lines.append(f"cd {tool.quote([cwd])} || exit {tool.EXIT_FAILURE}")
        lines.append(f"exec {tool.quote([command, *words[1:]])}")
        (self.folder / "payload").mkdir(exist_ok=True)
        (self.folder / cwd.lstrip("/")).mkdir(parents=True, exist_ok=True)
        (self.folder / "payload/command").write_text(
            "\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")

    def write_initrd(self, base, path):
        """Returns the size of the payload in it, in bytes."""
        with open(path, "wb") as initrd:
            with open(base, "rb") as file:
                shutil.copyfileobj(file, initrd)
            initrd.flush()
            before = initrd.tell()
            names = b"\0".join(sorted(os.fsencode(name) for name in self.names())) + b"\0"
            done = subprocess.run(
                ["cpio", "-0", "-o", "-H", "newc", "--quiet", "-R", "0:0"], input=names,
                cwd=self.folder, stdout=initrd, stderr=subprocess.PIPE, check=False)
            if done.returncode:
                reasons = done.stderr.decode(errors="replace").splitlines()
                raise tool.Failure("the guest's files cannot be packed", *reasons)
            return initrd.seek(0, os.SEEK_END) - before

    def names(self):
        """The names of all files in the folder; a folder comes before its contents."""
        for place, folders, files in os.walk(self.folder):
            for name in folders + files:
                yield os.path.relpath(os.path.join(place, name), self.folder)
