#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version of meson.build is the one of the packages, the news and README.md, and the
packages of Debian and of RPM are of the same date and maintainer.

    test_versions.py SOURCE
"""

import datetime
import re
import sys
from email.utils import parsedate_to_datetime
from pathlib import Path

TOP = Path(sys.argv[1])
sys.path.insert(0, str(TOP / "tests/lib"))
import tap  # noqa: E402

# Each file with the line that has the version. The newest entry of a list is its first.
LINES = {
    "meson.build": r"^  version: '(.+)',$",
    "debian/changelog": r"^vgpu \((.+)\) \S+; urgency=\S+$",
    "scripts/vgpu.spec": r"^Version: (.+)$",
    "the changelog of scripts/vgpu.spec": r"^%changelog\n\* .* - (.+)-\d+$",
    "NEWS.md": r"^## (\d\S*), (?:unreleased|\d{4}-\d\d-\d\d)$",
    "README.md": r"^This is version (\d+(?:\.\d+)+),",
}
# It names no correction of a version.
SHORT = "README.md"
DATES = {
    "debian/changelog": r"^ -- .* <.*>  (.+)$",
    "scripts/vgpu.spec": r"^%changelog\n\* (\S+ +\S+ +\d+ +\d{4}) ",
}
MAINTAINERS = {
    "debian/control": r"^Maintainer: (.+)$",
    "debian/changelog": r"^ -- (.* <.*>)  .+$",
    "scripts/vgpu.spec": r"^%changelog\n\* \S+ +\S+ +\d+ +\d{4} (.+ <.*>) - ",
}


def read(name):
    return (TOP / name.split()[-1]).read_text(encoding="utf-8")


def versions(text_of=read):
    """Returns the version of each file, None where there is none."""
    found = {name: re.search(line, text_of(name), re.M) for name, line in LINES.items()}
    return {name: match and match[1] for name, match in found.items()}


def differences(found):
    """Returns a sentence for each file that has another version than meson.build."""
    version = found["meson.build"]
    assert version, "meson.build has no version"
    expected = {name: version for name in found}
    expected[SHORT] = ".".join(version.split(".")[:2])
    return [f"{name} has version {found[name]}, not {expected[name]}"
            for name in found if found[name] != expected[name]]


def test_all_files_have_the_version_of_meson_build():
    wrong = differences(versions())
    assert not wrong, "\n".join(wrong)


def test_another_version_is_found_in_each_file():
    version = versions()["meson.build"]
    short = ".".join(version.split(".")[:2])
    for changed in LINES:
        def text_of(name, changed=changed):
            text = read(name)
            if name != changed:
                return text
            return text.replace(short if name == SHORT else version, "98.76.5")

        wrong = differences(versions(text_of))
        expected = len(LINES) - 1 if changed == "meson.build" else 1
        assert len(wrong) == expected, (changed, wrong)


def test_a_file_without_a_version_is_found():
    wrong = differences(versions(lambda name: "" if name == "NEWS.md" else read(name)))
    assert wrong and "NEWS.md has version None" in wrong[0], wrong


def test_both_kinds_of_packages_have_the_same_date():
    found = {name: re.search(line, read(name), re.M) for name, line in DATES.items()}
    missing = [name for name, match in found.items() if not match]
    assert not missing, missing
    debian = parsedate_to_datetime(found["debian/changelog"][1]).date()
    text = found["scripts/vgpu.spec"][1]
    rpm = datetime.datetime.strptime(text, "%a %b %d %Y").date()
    assert debian == rpm, (debian, rpm)
    # strptime() does not compare the day of the week with the date.
    assert text.split()[0] == rpm.strftime("%a"), text


def test_both_kinds_of_packages_have_the_same_maintainer():
    found = {name: re.search(line, read(name), re.M) for name, line in MAINTAINERS.items()}
    names = {name: match and match[1] for name, match in found.items()}
    assert None not in names.values() and len(set(names.values())) == 1, names


if __name__ == "__main__":
    sys.exit(tap.run(tap.functions(globals())))
