/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Library: the files from which the loader chooses for a name, in its order
 *
 * The list is what the environment, the cache and the default folders say. Programs may
 * name other folders in themselves (DT_RUNPATH), which nobody else sees.
 */

#include <limits.h>
#include <stdbool.h>

struct doctor;

enum library_origin {
	LIBRARY_PRELOADED,    /* LD_PRELOAD */
	LIBRARY_PRELOAD_FILE, /* /etc/ld.so.preload */
	LIBRARY_PATH,	      /* LD_LIBRARY_PATH */
	LIBRARY_CACHE,	      /* which ldconfig makes */
	LIBRARY_FOLDER,	      /* one that the loader searches at last */
	LIBRARY_INSTALLED,    /* ours, where the loader does not look */
	_LIBRARY_ORIGIN_N,
};

struct library_file {
	enum library_origin origin;
	char path[PATH_MAX]; /* below the root */
	char note[128];	     /* the text of our note; empty: it has none */
};

#define LIBRARY_FILES_MAX 24

struct library {
	const char *name;
	struct library_file files[LIBRARY_FILES_MAX];
	unsigned int n;
};

/* Finds the files of a name such as "libcuda.so.1". */
void library_find(struct library *library, const struct doctor *doctor, const char *name);

/* Return: the file of a path, also by another name; NULL: it is not in the list. */
const struct library_file *library_at(
	const struct library *library, const struct doctor *doctor, const char *path);

/* Return: the first of ours, or NULL. */
const struct library_file *library_ours(const struct library *library);

/* The file of /etc that names the folder of a file to ldconfig; empty: none does. */
void library_name_conf(const struct doctor *doctor, const struct library_file *file,
	char conf[static 256]);

/* The package that has installed a file of this system; empty: none, or none known. */
void library_name_package(const char *path, char package[static 128]);
