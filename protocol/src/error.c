/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error codes
 */

#include <string.h>

#include "vgpu/error.h"
#include "vgpu/log.h"

int vgpu_error_print(
	int error, const char *what, const char *file, int line, const char *function)
{
	vgpu_log_debug("%s: %s in %s() at %s:%d", strerror(error < 0 ? -error : error),
		what, function, file, line);
	return error;
}
