# SPDX-License-Identifier: Apache-2.0
"""g-driver.h and g-driver.c: the table of a libcuda.so.1 opened by path.

	struct vgpu_driver	one pointer for each symbol, NULL where the library has none;
				per-thread twins and the OpenGL, EGL and VDPAU calls
				are not in it: the worker never calls them
	vgpu_driver_resolve()	fills it by dlsym
"""

from model import declare
from writer import Writer

DECLARATION = """
/*
 * Looks all symbols up in a library opened by dlopen().
 *
 * Return: how many were found.
 */
size_t vgpu_driver_resolve(struct vgpu_driver *driver, void *library);
"""

DEFINITION = """
size_t vgpu_driver_resolve(struct vgpu_driver *driver, void *library)
{
	size_t n_found = 0;

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *found = dlsym(library, entries[i].symbol);

		memcpy((char *)driver + entries[i].offset, &found, sizeof(found));
		n_found += found != NULL;
	}
	return n_found;
}
"""


def in_table(api):
    return [c for c in api.public if not c.header]


def emit_header(api):
    w = Writer()
    w.head(api, "Table of driver functions")
    w.line("#pragma once")
    w.blank()
    w.line("#include <stddef.h>")
    w.blank()
    w.line('#include "vgpu/cuda.h"')
    w.blank()
    w.line("struct vgpu_driver {")
    for call in in_table(api):
        params = [declare(p.c_type, p.name) for p in call.params] or ["void"]
        w.wrapped(f"\tCUresult (*{call.symbol})(", params, ");")
    w.line("};")
    w.blank()
    w.text(DECLARATION)
    return w.finish()


def emit_source(api):
    w = Writer()
    w.head(api, "Table of driver functions")
    w.line("#include <dlfcn.h>")
    w.line("#include <string.h>")
    w.blank()
    w.line('#include "vgpu/g-driver.h"')
    w.blank()
    w.line("#define ENTRY(_symbol) { #_symbol, offsetof(struct vgpu_driver, _symbol) }")
    w.blank()
    w.line("static const struct {")
    w.line("\tconst char *symbol;")
    w.line("\tsize_t offset;")
    w.line("} entries[] = {")
    for call in in_table(api):
        w.line(f"\tENTRY({call.symbol}),")
    w.line("};")
    w.blank()
    w.text(DEFINITION)
    return w.finish()
