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
 * @name:	of the file, for messages
 * @textp:	its source text, to be freed
 *
 * Return: 0, or an exit status.
 */
int config_load(int fd, const char *name, char **textp, struct config **configp);

/* Logs what this host lacks for a configuration. Return: 0, or an exit status. */
int config_load_check(const struct config *config, const char *name);

/* Opens the log file, if one is configured, as standard error. Return: 0, or an exit
 * status. */
int config_load_log(const struct config *config);
