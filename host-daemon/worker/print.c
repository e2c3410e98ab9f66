/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels print
 */

#include "vgpu/log.h"
#include "worker/print.h"
#include "worker/rate.h"
#include "worker/session.h"

void print_from_kernel(void *data, const char *text, size_t size)
{
	static struct rate rate;
	const struct session *session = data;
	char line[PRINT_LINE_MAX + 1];
	size_t i;

	if (!rate_allows(&rate))
		return;
	for (i = 0; i < size && i < PRINT_LINE_MAX; i++)
		line[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : ' ';
	line[i] = '\0';
	vgpu_log_info("VM %s: a kernel prints: %s", session->vm, line);
}
