/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeper: vgpud's first process
 */

#include "vgpud/config.h"

/*
 * Serves until SIGTERM or SIGINT, or until the broker dies repeatedly.
 *
 * @configp:	completed by paths_complete(); SIGHUP replaces it
 * @text:	its source text; the broker parses it again
 * @path:	of the file
 *
 * Return: vgpud's exit status.
 */
int keeper_run(struct config **configp, const char *text, const char *path);
