#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/vm/run keeps only folders of failed tests; helpers of the same name in two files do
not conflict; so many run at a time as are wanted.

    test_vm_run.py TOP

Its tests are replaced by tests that boot nothing.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(sys.argv[1]).absolute()
TESTS = """
helper() { echo said >note; }
test_fails() {
	helper
	false
}
test_passes() { echo said >note; }
test_skips() { skip no reason; }
"""
# Each waits for the other: one at a time they would never end.
TWO_TESTS = """
meet() {
	touch "$top/$1"
	until [ -e "$top/$2" ]; do sleep 0.05; done
	say "$1 met $2"
}
test_one() { meet one other; }
test_other() { meet other one; }
"""
OTHER_TESTS = """
helper() { false; }
"""


def run(folder, *options):
    return subprocess.run([folder / "tests/vm/run", *options], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, env={"PATH": "/usr/bin:/bin"})


def main():
    with tempfile.TemporaryDirectory(prefix="vgpu-vm-run-") as name:
        folder = Path(name)
        (folder / "tests/vm").mkdir(parents=True)
        for part in ("scripts", "qemu", "meson.build"):
            (folder / part).symlink_to(TOP / part)
        shutil.copy(TOP / "tests/vm/run", folder / "tests/vm")
        (folder / "tests/vm/test-some.sh").write_text(TESTS, encoding="ascii")
        (folder / "tests/vm/test-zone.sh").write_text(OTHER_TESTS, encoding="ascii")
        done = run(folder)
        assert done.returncode == 1, done
        assert done.stdout.endswith("1 passed, 1 failed, 1 skipped\n"), done
        kept = re.findall(r"the folder of the test is kept: (/\S+)", done.stdout)
        assert len(kept) == 1, done
        kept = Path(kept[0])
        said = (kept / "note").read_text(encoding="ascii")
        shutil.rmtree(kept)
        assert said == "said\n", said
        (folder / "tests/vm/test-two.sh").write_text(TWO_TESTS, encoding="ascii")
        done = run(folder, "--jobs", "2", "one", "other")
        assert done.returncode == 0, done
        assert re.fullmatch(r"(\w+ met \w+\nok   \w+ \([0-9.]+ s\)\n){2}2 passed, 0 failed, "
                            r"0 skipped\n", done.stdout), done


if __name__ == "__main__":
    main()
