/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Root: the files of this system, or of another one below a folder
 *
 * The root is the path of that folder without a slash at its end, and "" for this system;
 * paths begin with a slash.
 */

#include <stdbool.h>
#include <stdio.h>

/* Return: the file, opened for reading, or NULL and errno. */
FILE *vgpu_root_open(const char *root, const char *path);

/* The first line without its newline, cut to the size; empty where there is no file.
 * Return: whether there is the file. */
bool vgpu_root_read_line(const char *root, const char *path, char line[static 256]);

/* Return: 0 if the process may do that (as access(2)) with the file, or -errno. */
int vgpu_root_access(const char *root, const char *path, int mode);
