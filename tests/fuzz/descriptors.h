/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Descriptors: how many this process has open, to find those that are forgotten
 */

#include <dirent.h>
#include <stdlib.h>

static inline unsigned int descriptors_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	if (!dir)
		abort();
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
