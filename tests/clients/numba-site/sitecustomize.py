# SPDX-License-Identifier: Apache-2.0
"""Python reads this at its start, if the folder is in PYTHONPATH. numba-cuda takes the place
of a part of Numba by a .pth file, which is read where Python has its own packages: here also
in the folders of PYTHONPATH."""

import os
import site

for place in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
    site.addsitedir(place)
