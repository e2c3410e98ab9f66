# SPDX-License-Identifier: Apache-2.0
"""Programs that show GPUs by NVML, as PyPI has them. They launch nothing; what they print is
compared with the device."""

import json
import os
import re
import sys
from pathlib import Path

from suite import Case, Suite

PROGRAM = Path(__file__).resolve().parent / "nvml.py"
NVML = ("nvidia-ml-py", "13.580.126")
PSUTIL = ("psutil", "7.2.2")
NVITOP = ("nvitop", "1.7.2")
# Newer ones of the last need more packages.
GPUSTAT = (("gpustat", "1.1.1"), ("blessed", "1.20.0"), ("wcwidth", "0.2.13"), ("six", "1.17.0"))
OLD_NVML = ("nvidia-ml-py", "11.525.150")


class Nvml(Suite):
    name = "nvml"
    title = "programs that show GPUs by NVML"
    in_all = True

    def versions(self):
        packages = (NVML, OLD_NVML, NVITOP, GPUSTAT[0])
        return f"{self.title}; {', '.join(f'{name} {release}' for name, release in packages)}"

    def path(self, *packages):
        return os.pathsep.join(str(self.cache.wheel(*package, is_source=package[0] == "gpustat"))
                               for package in packages)

    def cases(self):
        yield self.case("pynvml-13", [PROGRAM], judge_status, NVML)
        yield self.case("pynvml-11", [PROGRAM], judge_status, OLD_NVML)
        yield self.case("nvitop", ["-m", "nvitop", "--once"], judge_text, NVML, PSUTIL, NVITOP)
        yield self.case("gpustat", ["-m", "gpustat", "--no-color"], judge_text, NVML, PSUTIL,
                        *GPUSTAT)
        yield self.case("gpustat-json", ["-m", "gpustat", "--json"], judge_json, NVML, PSUTIL,
                        *GPUSTAT)

    def case(self, name, words, judge, *packages):
        return Case(name, [sys.executable, *words], judge=judge,
                    variables={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": self.path(*packages),
                               "TERM": "dumb", "LC_ALL": "C.UTF-8"})


def judge_status(status, _output):
    return f"exit status {status}" if status else None


def judge_text(status, output):
    if status:
        return f"exit status {status}"
    return None if re.search(r"softgpu.*\b\d+\s*(MiB|MB)", output, re.S) else "no memory is shown"


def judge_json(status, output):
    if status:
        return f"exit status {status}"
    (gpu,) = json.loads(output[output.index("{"):output.rindex("}") + 1])["gpus"]
    wrong = [name for name, good in {
        "name": "softgpu" in gpu["name"], "uuid": gpu["uuid"].startswith("GPU-"),
        "memory.total": gpu["memory.total"] > 0, "temperature.gpu": gpu["temperature.gpu"] is None,
        "utilization.gpu": gpu["utilization.gpu"] in range(101),
    }.items() if not good]
    return f"wrong: {', '.join(wrong)}" if wrong else None
