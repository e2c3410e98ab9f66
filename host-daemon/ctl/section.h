/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Section: a virtual machine that vgpuctl adds to vgpud, with a file of its own
 */

#include <stdint.h>
#include <sys/types.h>

#include "ctl/client.h"

#define SECTION_SIZE "4G"

struct section {
	const char *name;
	const char *socket;
	const char *comment;  /* one line: who wrote it */
	gid_t group;	      /* of QEMU, (gid_t)-1: the caller's */
	uint64_t size;	      /* of its memory */
	const char *settings; /* more lines, each with its newline */
};

/* Return: the path of the file of a machine beside the configuration, to be freed, or
 * NULL without memory. */
char *section_path(const char *config, const char *name);

/* Return: the text of the file, to be freed, or NULL without memory. */
char *section_text(const struct section *section);

/*
 * Writes the file of a machine, or adds the machine to vgpud as well, where it replaces
 * one of that name: both or none.
 *
 * @comment:	a file that does not begin with it is not replaced; NULL: any is
 *
 * Return: CTL_OK, or the status of the failure, whose reason is printed. That goes for
 * all below, too.
 */
enum ctl_status section_write(const char *path, const char *text, const char *comment);
enum ctl_status section_add(struct client *client, const char *name, const char *path,
	const char *text, const char *comment);

/* Removes a machine from vgpud, but not its file. */
enum ctl_status section_remove(struct client *client, const char *name);
/* Whether its file could be removed, as far as that can be told. */
enum ctl_status section_check_unlink(const char *path);
/* Removes its file. */
enum ctl_status section_unlink(const char *path);

/* Return: the value of a setting that vgpud has shown, or NULL. */
const char *section_value(const VgpuCtl__Details *details, const char *key);
