#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/check-style finds each offence that it knows, and nothing in what is right; so
there is none in this tree.

    test_check_style.py SOURCE
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv[1])
sys.path.insert(0, f"{SOURCE}/tests/lib")
import tap  # noqa: E402

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
LAYERS = "host-daemon: low < left right < high\nhost-daemon/worker worker/: base < run\n"
# file: (its text, what is said of it, if anything)
FILES = {
    "host-daemon/high/right.c": (SPDX + '#include "high/a.h"\n#include "low/a.h"\n', None),
    "host-daemon/left/down.c": (SPDX + '#include "low/a.h"\n#include "vgpu/a.h"\n', None),
    "host-daemon/low/up.c": (SPDX + '#include "right/a.h"\n', "2: low/ includes right/"),
    "host-daemon/left/aside.c": (SPDX + '#include "right/a.h"\n', "2: left/ includes right/"),
    "host-daemon/worker/base/up.h": (SPDX + '#include "worker/run/a.h"\n',
                                     "2: base/ includes run/"),
    "host-daemon/worker/run/down.h": (SPDX + '#include "worker/base/a.h"\n', None),
    "host-daemon/low/bare.c": ("int a;\n", "1: no SPDX"),
    "host-daemon/low/wide.c": (SPDX + "/* " + "a" * 90 + " */\n", "2: 96 columns"),
    "host-daemon/low/tabs.c": (SPDX + "\t" * 11 + "int a;\n", "2: 94 columns"),
    "host-daemon/low/end.c": (SPDX + "int a; \n", "2: space"),
    "host-daemon/low/todo.c": (SPDX + "/* TO" "DO: all */\n", "2: a TODO"),
    "host-daemon/low/wake.c": (SPDX + "\tpthread_cond_wait(&a, &b);\n", "2: sleeps"),
    "host-daemon/low/long.c": (SPDX + "\n" * 1000, "1001: 1001 lines"),
    "host-daemon/low/body.c": (SPDX + "void f(void)\n{\n" + "\tg();\n" * 101 + "}\n",
                               "3: a function of 101"),
}
# The first includes the second and so on, and the last one the first.
CIRCLES = {
    "host-daemon/left": ("abcd", None),
    "host-daemon/worker/run": ("abcde", " a, b, c, d, e include each other"),
}

# for clang-format: (the text, what is said of it, if anything)
FORMATTED = {
    "host-daemon/low/good.c": (SPDX + "int a;\n", None),
    "host-daemon/low/bad.c": (SPDX + "int a;\nint  b;\n\nint  c;\n", "3: not as clang-format"),
    "host-daemon/low/bad.cu": (SPDX + "int  a;\n", "2: not as clang-format"),
    "host-daemon/low/table.c": (SPDX + "/* clang-format off */\nint  a;\n"
                                "/* clang-format on */\n", None),
    "host-daemon/low/loop.c": (SPDX + "\nvoid f(void)\n{\n\tvgpu_list_for_each(a, b, c)\n"
                               "\t\tg();\n}\n", None),
    "tests/gen/golden/g.c": (SPDX + "int  a;\n", None),
}


def write(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
        with open(f"{root}/{path}", "w", encoding="utf-8") as file:
            file.write(text)


def circles():
    for folder, (names, _) in CIRCLES.items():
        prefix = folder.removeprefix("host-daemon/")
        for name, other in zip(names, names[1:] + names[0]):
            yield f"{folder}/{name}.h", (f'{SPDX}#include "{prefix}/{other}.h"\n', None)


def check(done, files):
    """Just the offences of the files are printed, each with its line and rule."""
    wanted = [f"{path}:{offence}" for path, (_, offence) in files.items() if offence]
    said = done.stdout.splitlines()
    print(done.stdout, file=sys.stderr)
    assert done.returncode == 1
    for want in wanted:
        assert any(line.startswith(want) for line in said), want
    assert len(said) == len(wanted), "more was said"


def test_each_rule_names_file_and_line():
    with tempfile.TemporaryDirectory(prefix="vgpu-style-") as root:
        files = {**FILES, **dict(circles())}
        write(root, {"scripts/lib/layers": LAYERS,
                     **{path: text for path, (text, _) in files.items()}})
        done = subprocess.run([sys.executable, f"{SOURCE}/scripts/lib/check_style.py", root,
                               *files], text=True, stdout=subprocess.PIPE, check=False)
    check(done, {**FILES, **CIRCLES})


def test_format_names_file_and_line():
    if not any(map(shutil.which, ("clang-format-14", "clang-format"))):
        raise unittest.SkipTest("no clang-format is installed")
    with tempfile.TemporaryDirectory(prefix="vgpu-style-") as root:
        shutil.copytree(f"{SOURCE}/scripts", f"{root}/scripts")
        shutil.copy(f"{SOURCE}/.clang-format", root)
        write(root, {path: text for path, (text, _) in FORMATTED.items()})
        done = subprocess.run([f"{root}/scripts/check-style", *FORMATTED], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if "clang-format 14 is not installed" in done.stderr:
        raise unittest.SkipTest("clang-format is not of version 14")
    check(done, FORMATTED)


def test_this_tree_has_no_offence():
    found = subprocess.run(["git", "-C", SOURCE, "-c", f"safe.directory={SOURCE}", "ls-files"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        raise unittest.SkipTest("this tree is not git's")
    done = subprocess.run([f"{SOURCE}/scripts/check-style", *found.stdout.splitlines()],
                          check=False)
    assert not done.returncode


if __name__ == "__main__":
    sys.exit(tap.run(tap.functions(globals())))
