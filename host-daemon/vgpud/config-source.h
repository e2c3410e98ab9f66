/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sources of a configuration: the main file, and one file per VM in the folder vm.d
 * beside it
 *
 * The keeper reads them and gives every broker the same texts, so that both always have
 * the same VMs.
 */

#include <stdbool.h>
#include <stddef.h>

/* The folder, and the end of the names of its files. Others, such as those of editors,
 * and hidden ones are not read. */
#define CONFIG_SOURCE_FOLDER "vm.d"
#define CONFIG_SOURCE_SUFFIX ".conf"

struct config_source {
	char *path;
	char *text;
	char *vm;	  /* the only VM for a file VM.conf; NULL: the main file */
	int error;	  /* -errno: a file of the folder that cannot be read */
	bool is_left_out; /* it is not parsed, nor kept */
};

struct config_sources {
	struct config_source *list; /* the main file, then the others by name */
	size_t n;
	bool has_folder; /* VMs may come later */
};

#define CONFIG_SOURCES_NULL                                                              \
	(struct config_sources)                                                          \
	{                                                                                \
		0                                                                        \
	}

/*
 * Reads a main file and those of its folder. It fails for none of the latter, which are
 * a VM's: see config_new().
 *
 * @failedp:	on error the path that could not be read, to be freed; NULL: none of them
 *
 * Return: 0 or -errno; -EFBIG for a main file that is too large to be a configuration,
 * -E2BIG for too many of them.
 */
int config_sources_read(struct config_sources *sources, const char *path, char **failedp);

/* Writes them into a sealed memory file. Return: 0 or -errno. */
int config_sources_keep(const struct config_sources *sources, int *fdp);

/* Reads them from such a file. Return: 0 or -errno; -EPROTO: it is not one. */
int config_sources_take(struct config_sources *sources, int fd);

void config_sources_deinit(struct config_sources *sources);
