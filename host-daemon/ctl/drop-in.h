/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Drop-in: replaces the file of a virtual machine, whole or not at all
 */

struct drop_in {
	char *path;
	char *temporary; /* the new contents, on the disk; NULL: none */
	int folder;
};

#define DROP_IN_NULL                                                                     \
	(struct drop_in)                                                                 \
	{                                                                                \
		.folder = -1                                                             \
	}

/*
 * Writes a text beside a file, under a hidden name that no reload reads, and waits until
 * the disk has it. The folder is made if only that is missing.
 *
 * Return: 0 or -errno; nothing is left behind then.
 */
int drop_in_prepare(struct drop_in *drop_in, const char *path, const char *text);

/* Gives the text the name of the file, and waits until the disk has that. Return: 0 or
 * -errno. */
int drop_in_commit(struct drop_in *drop_in);

/* Removes a text that was not committed. */
void drop_in_close(struct drop_in *drop_in);

/* Removes a file, and waits until the disk has that. Return: 0, also without a file, or
 * -errno. */
int drop_in_remove(const char *path);
