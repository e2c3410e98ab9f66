/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Root: the files of this system, or of another one below a folder
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/root.h"

/* Return: the whole path, of the heap, or NULL. */
static char *join(const char *root, const char *path)
{
	char *whole;

	return asprintf(&whole, "%s%s", root, path) < 0 ? NULL : whole;
}

FILE *vgpu_root_open(const char *root, const char *path)
{
	_vgpu_cleanup_(vgpu_freep) char *whole = join(root, path);

	return whole ? fopen(whole, "re") : NULL;
}

bool vgpu_root_read_line(const char *root, const char *path, char line[static 256])
{
	FILE *file = vgpu_root_open(root, path);

	*line = '\0';
	if (!file)
		return false;
	if (fgets(line, 256, file))
		line[strcspn(line, "\n")] = '\0';
	else
		*line = '\0';
	fclose(file);
	return true;
}

int vgpu_root_access(const char *root, const char *path, int mode)
{
	_vgpu_cleanup_(vgpu_freep) char *whole = join(root, path);

	if (!whole)
		return -ENOMEM;
	return access(whole, mode) < 0 ? -errno : 0;
}
