# SPDX-License-Identifier: Apache-2.0
"""The barriers of shared memory are in the machine code of a weakly ordered processor.

    test_barriers.py OBJDUMP PROTOCOL-LIBRARY WIRE-LIBRARY

No program on x86 shows that one is missing: there, and in an emulator there, loads and
stores are ordered anyway. So this test reads the machine code: LDAR acquires, STLR
releases, DMB ISH orders both.
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import tap  # noqa: E402

ACQUIRE, RELEASE, FULL = r"ldap?r \w+, \[\w+\]", r"stlr \w+, \[\w+\]", r"dmb ish"
LOAD, STORE = r"ldr w\d+, \[", r"str w\d+, \["

# In each function these follow one another, with anything in between.
PROTOCOL = {
    "has_room": ("vgpu_ring_reserve", "the room that is reused was read by the consumer",
                 [ACQUIRE]),
    "commit": ("vgpu_ring_commit", "a frame is published after it was written",
               [RELEASE, "prfm pst"]),
    "refill": ("refill", "a frame is read after the index that publishes it", [ACQUIRE]),
    "release": ("vgpu_ring_release", "room is given back after its frame was read", [RELEASE]),
    "asleep": ("vgpu_ring_is_asleep", "the sleeper's flag is read after the index was stored",
               [LOAD, FULL, LOAD]),
    "sleep": ("vgpu_ring_prepare_sleep", "a sleeper looks again after it set its flag",
              [RELEASE, FULL, r"bl .*<refill>|" + ACQUIRE]),
    "missed": ("vgpu_ring_is_missed", "a sleeper's flag is read before the indices",
               [ACQUIRE, ACQUIRE, ACQUIRE]),
}
WIRE = {
    "reply": ("shim_wait_reply", "a reply is read after its number",
              [ACQUIRE, r"bl .*<sleep_for>"]),
    "nap": ("sleep_for", "a waiter looks again after it set its flag",
            [STORE, FULL, ACQUIRE]),
    "word": ("shim_wait_word", "results are read after the word that announces them",
             [ACQUIRE]),
    "doorbell": ("sysfs_doorbell", "a doorbell follows what was written before", [FULL, STORE]),
}


def functions(objdump, library):
    """The instructions of each function, one a line."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", library], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for block in re.split(r"\n\n", text):
        name = re.search(r"^[0-9a-f]+ <([\w.]+)>:$", block, re.M)
        if name:
            lines = re.findall(r"^ +[0-9a-f]+:\t(.*)$", block, re.M)
            found[name[1]] = "\n".join(" ".join(line.split()) for line in lines)
    return found


def case(code, function, wanted):
    def check():
        assert function in code, f"there is no function {function}"
        place = 0
        for pattern in wanted:
            found = re.compile(rf"^(?:{pattern})", re.M).search(code[function], place)
            assert found, f"no {pattern} in its place:\n{code[function]}"
            place = found.end()
    return check


def main():
    objdump, *libraries = sys.argv[1:]
    cases = []
    for library, table in zip(libraries, (PROTOCOL, WIRE)):
        code = functions(objdump, library)
        cases += [(f"{function}: {meaning}", case(code, function, wanted))
                  for function, meaning, wanted in table.values()]
    return tap.run(cases)


if __name__ == "__main__":
    sys.exit(main())
