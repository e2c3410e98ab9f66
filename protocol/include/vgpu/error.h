/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Error codes
 *
 * A function that can fail returns an int:
 *
 *	  0	it worked
 *	< 0	a fatal error, -errno: every caller passes it on unchanged
 *	> 0	a condition of this function, named <MODULE>_E_*: its caller
 *		handles it and never passes it on
 *
 * Three macros mark what happens at a line: an error is raised (origin), passed on
 * (trace), or an unhandled positive condition is made fatal (fold). At log level debug
 * each logs its source line, which gives a small backtrace of a failure. A CUresult is
 * data and does not use this scheme.
 */

#include <errno.h>

int vgpu_error_print(
	int error, const char *what, const char *file, int line, const char *function);

#define VGPU_ERROR_PRINT_(_error, _what)                                                 \
	vgpu_error_print((_error), (_what), __FILE__, __LINE__, __func__)

/* Raises -errno. */
#define vgpu_error_origin(_error) VGPU_ERROR_PRINT_((_error), "raised")

/* Passes a fatal error on; a positive condition must not come here. */
#define vgpu_error_trace(_error) VGPU_ERROR_PRINT_((_error), "passed on")

/* Makes an unhandled positive condition fatal (-ENOTRECOVERABLE). */
#define vgpu_error_fold(_error)                                                          \
	((_error) > 0 ? VGPU_ERROR_PRINT_(-ENOTRECOVERABLE, "folded")                    \
		      : vgpu_error_trace(_error))
