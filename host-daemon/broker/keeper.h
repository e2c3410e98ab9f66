/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeper: vgpud's first process
 */

#include "broker/config.h"

/*
 * Serves until SIGTERM or SIGINT, or until the broker cannot be kept running.
 *
 * @config:	completed by paths_complete()
 * @text:	what it was parsed from; the broker parses it again
 * @name:	of the file
 *
 * Return: vgpud's exit status.
 */
int keeper_run(const struct config *config, const char *text, const char *name);
