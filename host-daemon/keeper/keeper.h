/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeper: vgpud's first process
 */

#include <stdbool.h>

#include "vgpud/config.h"

/*
 * Serves until SIGTERM or SIGINT, or until the broker dies repeatedly.
 *
 * @configp:	completed by paths_complete(); SIGHUP replaces it
 * @sources:	of the configuration, a memory file, which becomes the keeper's; the
 *		broker parses it again
 * @path:	of the main file
 * @state:	file that an earlier keeper left, see handover.h, or -1; it becomes
 *		this keeper's, and the sources are the same as there
 * @n_stored_max:	how many descriptors the service manager keeps, if there is no
 *		state; 0: none
 * @control:	socket of the service manager for vgpuctl, or -1; it becomes this keeper's
 * @own_group:	the control group is vgpud's own, see own-group.h; a state needs no such
 *		permission if the earlier keeper had it
 *
 * Return: vgpud's exit status.
 */
int keeper_run(struct config **configp, int sources, const char *path, int state,
	unsigned int n_stored_max, int control, bool own_group);
