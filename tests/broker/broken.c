/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into vgpud: lets no broker of a program run beside which there is a file
 * PROGRAM.broken
 */

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".broken"

static void __attribute__((__constructor__)) end(int argc, char **argv)
{
	char path[PATH_MAX + sizeof(SUFFIX)] = "";

	if (argc < 2 || strcmp(argv[1], "--broker") ||
		readlink("/proc/self/exe", path, PATH_MAX - 1) < 0)
		return;
	strcat(path, SUFFIX);
	if (!access(path, F_OK))
		_exit(EXIT_FAILURE);
}
