/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths: where the programs and libraries beside vgpud are
 */

#include "vgpud/config.h"

/*
 * Fills in what the configuration leaves open: the place in the build tree if vgpud runs
 * from one, else the installed place.
 *
 * Return: 0 or -errno.
 */
int paths_complete(struct config *config);
