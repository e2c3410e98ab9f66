# SPDX-License-Identifier: Apache-2.0
"""The tests of pygpu, arrays on the device for Python, which its Debian package carries;
a program here is one of their files, run by pytest."""

import re

from suite import Case, Suite, Skip


class Pygpu(Suite):
    name = "pygpu"
    title = "the tests of pygpu and libgpuarray"
    in_all = True
    seconds = 900
    # The library's name of an architecture has room for one digit before the point:
    # NVRTC would be asked for compute_12.
    settings = "softgpu-cc = 9.0\n"

    def versions(self):
        return f"{self.title}; {self.cache.version_of('python3-pygpu')}"

    def cases(self):
        self.cache.packages("python3-pygpu", "python3-pytest")
        tests = self.cache.find("usr/lib/python3/dist-packages/pygpu/tests")
        libraries = [self.cache.nvrtc(), *self.cache.library_folders()]
        variables = {"PYTHONPATH": str(tests.parent.parent), "DEVICE": "cuda",
                     "PYTHONDONTWRITEBYTECODE": "1",
                     "GPUARRAY_TEST_DEVICE": "cuda", "HOME": str(self.folder("home"))}
        return [Case(file.stem.removeprefix("test_"),
                     ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                      "--tb=line", "-rf", file],
                     variables=variables, libraries=libraries, judge=judge)
                for file in sorted(tests.glob("test_*.py"))]


def judge(status, output):
    """The last line of pytest counts; its exit status is 5 if it had no test to run."""
    counted = re.findall(r"^=*\s*(\d+ (?:passed|failed|skipped|error).*?)\s*=*$", output, re.M)
    if status == 5 or counted and not re.search(r"passed|failed|error", counted[-1]):
        raise Skip(f"pytest: {counted[-1] if counted else 'no tests ran'}")
    if not status:
        return None
    first = re.search(r"^(?:FAILED|ERROR) (.*)$", output, re.M)
    return "; ".join(filter(None, [counted[-1] if counted else f"exit status {status}",
                                   first and first[1]]))
