/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the offloading programs
 *
 * GCC's runtime computes on the processor if it finds no device, and the values are right
 * then, too: so each program asks where its code ran.
 */

#include <stdio.h>
#include <stdlib.h>

/* Return: the program's exit status; n_wrong of its results are wrong. */
static inline int offload_result(
	const char *name, int n_devices, int is_on_host, size_t n_wrong)
{
	printf("%s: num_devices=%d initial_device=%d, %zu values are wrong\n", name,
		n_devices, is_on_host, n_wrong);
	return n_devices == 1 && !is_on_host && !n_wrong ? EXIT_SUCCESS : EXIT_FAILURE;
}
