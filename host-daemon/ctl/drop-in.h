/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Drop-in: replaces the file of a virtual machine, whole or not at all
 */

struct drop_in {
	char *path;
	char *temporary; /* the name of the new contents; NULL: none */
	int folder;
	int fd; /* of the new contents; locked, which is what keeps others out */
};

#define DROP_IN_NULL                                                                     \
	(struct drop_in)                                                                 \
	{                                                                                \
		.folder = -1, .fd = -1                                                   \
	}

/*
 * Keeps other changes of a file out, and removes what changes that were cut short have
 * left in its folder, which is made if only that is missing.
 *
 * Return: 0 or -errno, nothing is left behind then; -EBUSY: another process changes it.
 */
int drop_in_open(struct drop_in *drop_in, const char *path);

/* Writes a text beside the file, under a hidden name that no reload reads, and waits
 * until the disk has it. Return: 0 or -errno. */
int drop_in_write(struct drop_in *drop_in, const char *text);

/* Gives the text the name of the file, and waits until the disk has that. Return: 0 or
 * -errno. */
int drop_in_commit(struct drop_in *drop_in);

/* Removes a text that was not committed. */
void drop_in_close(struct drop_in *drop_in);

/* Whether a file could be removed, as far as that can be told. Return: 0, also without a
 * file, or -errno. */
int drop_in_check_remove(const char *path);

/* Removes a file, and what a change of it that was cut short has left, and waits until
 * the disk has that. Return: 0, also without a file, or -errno. */
int drop_in_remove(const char *path);
