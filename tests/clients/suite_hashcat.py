# SPDX-License-Identifier: Apache-2.0
"""hashcat of Debian, whose kernels NVRTC compiles to PTX at run time: it finds passwords
of hashes that are made here, and does not find one that is not among the candidates."""

import hashlib
import os
import shutil

from suite import Case, Suite

# hashcat's number of a kind of hash, its name, and the hash of a word.
KINDS = {
    0: ("md5", lambda word: hashlib.md5(word).hexdigest()),
    10: ("md5-salted", lambda word: hashlib.md5(word + b"pepper").hexdigest() + ":pepper"),
    100: ("sha1", lambda word: hashlib.sha1(word).hexdigest()),
    1400: ("sha256", lambda word: hashlib.sha256(word).hexdigest()),
    1700: ("sha512", lambda word: hashlib.sha512(word).hexdigest()),
    17400: ("sha3-256", lambda word: hashlib.sha3_256(word).hexdigest()),
}
OPTIONS = ["--backend-ignore-opencl", "--potfile-disable", "--logfile-disable",
           "--restore-disable", "--force", "--quiet", "-a", "3"]
MASK, WORD, OTHER = "?l?l?l", b"gpu", b"GPU"
EXIT_EXHAUSTED = 1


class Hashcat(Suite):
    name = "hashcat"
    title = "hashcat finds the words of six kinds of hashes"
    in_all = True
    seconds = 400

    def versions(self):
        return f"{self.title}; {self.cache.version_of('hashcat')}"

    def place(self):
        """Copies the program beside its data, so that it does not use /usr/share; it also
        writes compiled kernels there."""
        data = self.cache.packages("hashcat") / "usr/share/hashcat"
        place = self.folder("program")
        for path in data.iterdir():
            # Links of the package are relative to its installation folder.
            if not os.path.lexists(place / path.name):
                (place / path.name).symlink_to(path.resolve())
        shutil.copy(self.cache.find("usr/bin/hashcat"), place)
        return place

    def cases(self):
        place = self.place()
        libraries = [self.cache.nvrtc(), *self.cache.library_folders()]
        home = self.folder("home")
        variables = {"HOME": str(home), "XDG_CACHE_HOME": str(home),
                     "XDG_DATA_HOME": str(home)}

        def case(name, number, word, judge):
            hashed = KINDS[number][1](word)
            command = [place / "hashcat", *OPTIONS, "-m", number, hashed, MASK]
            return Case(name, command, place, variables=variables, libraries=libraries,
                        judge=lambda status, output: judge(status, output, hashed, word))

        return [case(name, number, WORD, judge_found)
                for number, (name, _) in KINDS.items()] + \
            [case("md5-absent", 0, OTHER, judge_exhausted)]


def judge_found(status, output, hashed, word):
    if status:
        return f"exit status {status}"
    return None if f"{hashed}:{word.decode()}" in output else "the word was not found"


def judge_exhausted(status, output, hashed, _word):
    if f"{hashed}:" in output:
        return "it found a word that is not among the candidates"
    return None if status == EXIT_EXHAUSTED else f"exit status {status}"
