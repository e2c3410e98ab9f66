/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Linker: several PTX modules become one
 *
 * The result is PTX text again: the modules one after the other under one head, marked so
 * that the parser lets a weak definition give way to another. Local names of a module get
 * a suffix if another module uses them too; everything else resolves by name, as it does
 * within one text.
 *
 *	link_new()
 *	link_add()	each module, in order; what is no PTX is refused here
 *	link_finish()	the text; duplicates are refused
 *	link_check()	whether all that the parsed result refers to is there
 *
 * Functions return 0, -ENOMEM or PTX_E_*, the latter with the error filled.
 */

#include <stddef.h>

#include "ptx/module.h"

/* The most inputs of one link; GCC's OpenMP has 25. */
#define LINK_MODULES_MAX 4096u

struct link;

struct link *link_new(void);
struct link *link_free(struct link *link);

/* Adds a module; the text is copied. */
int link_add(struct link *link, const char *text, size_t size, unsigned int cc,
	struct ptx_error *error);

/* Joins what was added. *textp ends with a NUL; the caller frees it. */
int link_finish(struct link *link, char **textp, size_t *sizep, struct ptx_error *error);

/* Finds symbols that kernels of a module reach and that are not defined. */
int link_check(struct ptx_module *module, struct ptx_error *error);

static inline void link_freep(struct link **linkp)
{
	link_free(*linkp);
}
