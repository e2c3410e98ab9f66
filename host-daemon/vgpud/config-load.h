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
 * @path:	of the main file
 * @keptp:	its sources as a memory file, owned by the caller
 *
 * Return: 0, or an exit status.
 */
int config_load(const char *path, int *keptp, struct config **configp);

/* The same from such a memory file. */
int config_load_kept(int kept, struct config **configp);

/* Logs what this host lacks for a configuration. Return: 0, or an exit status. */
int config_load_check(const struct config *config);

/* Opens the log file, if one is configured, as standard error. Return: 0, or an exit
 * status. */
int config_load_log(const struct config *config);
