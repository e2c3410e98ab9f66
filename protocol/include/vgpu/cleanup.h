/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Scoped ownership
 *
 * A local variable that owns a resource has a cleanup attribute; after a move it is
 * set to NULL (or -1):
 *
 *	_vgpu_cleanup_(vgpu_freep) char *name = strdup(...);
 *	...
 *	*namep = name;
 *	name = NULL;
 */

#include <stdlib.h>
#include <unistd.h>

#define _vgpu_cleanup_(_fn) __attribute__((__cleanup__(_fn)))

/* Defines <type>_freep()-like helpers for a destructor that accepts NULL. */
#define VGPU_DEFINE_CLEANUP(_type, _fn)                                                  \
	static inline void _fn##p(_type *p)                                              \
	{                                                                                \
		if (*p)                                                                  \
			_fn(*p);                                                         \
	}                                                                                \
	struct vgpu_require_semicolon_

static inline void vgpu_freep(void *p)
{
	free(*(void **)p);
}

static inline void vgpu_closep(int *fdp)
{
	if (*fdp >= 0)
		close(*fdp);
}

/* Closes a descriptor and returns -1: fd = vgpu_close(fd); */
static inline int vgpu_close(int fd)
{
	if (fd >= 0)
		close(fd);
	return -1;
}
