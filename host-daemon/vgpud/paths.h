/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths: the default programs and libraries of vgpud
 */

#include "vgpud/config.h"

/*
 * Fills in what the configuration leaves open: the place in the build tree if vgpud runs
 * from one, else the installed place.
 *
 * Return: 0 or -errno.
 */
int paths_complete(struct config *config);
