#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A host whose search path leads to the guest's library first.

    test_driver_choice.py BUILD

Loaded by a worker, that library would connect to vgpud, which would start another
worker, and so on. The log has to name it, and the search has to skip it and to find a
driver that works.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from host import Host  # noqa: E402


def main():
    build = sys.argv[1]
    shim = os.path.join(build, "guest-shim")
    assert os.path.exists(os.path.join(shim, "libcuda.so.1")), shim
    with Host(build, driver="auto", environment={"LD_LIBRARY_PATH": shim}) as host:
        refused = host.wait_for(r"library (\S+) is vGPU's own for guests \(libcuda \S+")
        chosen = host.wait_for(r"the driver is (\S+), (NVIDIA's|softgpu): \S")
        assert refused[1].startswith(shim), refused[1]
        assert not chosen[1].startswith(shim), chosen[1]
        assert refused.start() < chosen.start()
        assert "the VM connected" not in host.text(), "the worker connected to its own vgpud"


if __name__ == "__main__":
    main()
