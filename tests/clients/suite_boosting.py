# SPDX-License-Identifier: Apache-2.0
"""XGBoost as PyPI has it, whose kernels have PTX beside their machine code; the program
boosting.py trains on the device and on the processor, and compares."""

import os
import sys
from pathlib import Path

from suite import Case, Suite

PROGRAM = Path(__file__).resolve().parent / "boosting.py"
XGBOOST = ("xgboost", "3.2.0")
# Of the program, which needs these packages to be imported.
SUBJECTS = ("regression", "binary", "classes", "ranking", "missing", "categories", "weights",
            "quantiles", "sampling", "vectors", "deep", "contributions", "linear")
OTHERS = (("scipy", "1.16.3"), ("numpy", "2.2.6"))


class Boosting(Suite):
    name = "boosting"
    title = "training and predictions of XGBoost"
    in_all = True
    seconds = 300

    def versions(self):
        return " ".join(XGBOOST)

    def cases(self):
        path = os.pathsep.join(str(self.cache.wheel(*package))
                               for package in (XGBOOST, *OTHERS))
        for subject in SUBJECTS:
            yield Case(subject, [sys.executable, PROGRAM, subject],
                       variables={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"})
