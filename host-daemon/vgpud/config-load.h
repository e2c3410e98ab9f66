/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Loads a configuration from a file, and puts it in force
 */

#include "vgpud/config.h"

/* Exit status for a wrong option or configuration. */
#define EXIT_USAGE 2

/*
 * Reads and completes a configuration; the reason of a failure is logged.
 *
 * Files of the folder that have mistakes are left out, which is logged, unless their VM
 * is served now: then the whole configuration is refused.
 *
 * @path:	of the main file
 * @served:	the configuration in force; NULL: none
 * @keptp:	its sources as a memory file, owned by the caller
 *
 * Return: 0, or an exit status.
 */
int config_load(const char *path, const struct config *served, int *keptp,
	struct config **configp);

/* The same from such a memory file, which has no mistakes. */
int config_load_kept(int kept, struct config **configp);

/* Logs all mistakes, or what this host lacks for the configuration. Return: 0, or an exit
 * status. */
int config_load_check(const char *path);

/* Opens the log file, if one is configured, as standard error. Return: 0, or an exit
 * status. */
int config_load_log(const struct config *config);
