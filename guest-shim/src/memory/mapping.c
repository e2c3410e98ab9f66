/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings of this process
 */

#include <string.h>

#include "memory/mapping.h"

bool shim_mapping_parse(char *line, struct shim_mapping *mapping)
{
	int path = 0;

	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &mapping->start, &mapping->end,
		    mapping->permissions, &mapping->offset, &mapping->major,
		    &mapping->minor, &mapping->inode, &path) != 7)
		return false;
	line[path + (int)strcspn(line + path, "\n")] = '\0';
	mapping->path = line + path;
	return true;
}

FILE *shim_mapping_open(void)
{
	return fopen("/proc/self/maps", "re");
}
