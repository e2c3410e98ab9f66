# SPDX-License-Identifier: Apache-2.0
"""g-attributes.c: device attributes with a fixed value for guests.

	bool attribute_answer(CUdevice_attribute attribute, int *valuep);

Declared by host-daemon/worker/handle/generated.h, and asked before the driver.
"""

from writer import Writer

SWITCH_END = """
	default:
		return false;
	}
}
"""


def emit(api):
    w = Writer()
    w.head(api, "Device attributes with a fixed value for guests")
    w.line('#include "worker/handle/generated.h"')
    w.blank()
    w.line("bool attribute_answer(CUdevice_attribute attribute, int *valuep)")
    w.line("{")
    w.line("\tswitch (attribute) {")
    for value in sorted({a.answer for a in api.answers}):
        for answer in api.answers:
            if answer.answer == value:
                w.line(f"\tcase {answer.name}:")
        w.line(f"\t\t*valuep = {value};")
        w.line("\t\treturn true;")
    w.text(SWITCH_END)
    return w.finish()
