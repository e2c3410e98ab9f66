#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/check-style finds each offence that it knows, and nothing in what is right.

    test_check_style.py SOURCE
"""

import os
import subprocess
import sys
import tempfile

SOURCE = sys.argv[1]
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


def main():
    with tempfile.TemporaryDirectory(prefix="vgpu-style-") as root:
        for path, text in {"scripts/lib/layers": LAYERS,
                           **{path: text for path, (text, _) in FILES.items()}}.items():
            os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
            with open(f"{root}/{path}", "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, f"{SOURCE}/scripts/lib/check_style.py", root,
                               *FILES], text=True, stdout=subprocess.PIPE, check=False)
    wanted = [f"{path}:{offence}" for path, (_, offence) in FILES.items() if offence]
    said = done.stdout.splitlines()
    print(done.stdout)
    assert done.returncode == 1
    for want in wanted:
        assert any(line.startswith(want) for line in said), want
    assert len(said) == len(wanted), "more was said"


main()
