/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths: the default programs and libraries of vgpud
 */

#include "vgpud/config.h"

/*
 * Fills in paths that the configuration does not set: in the build tree if vgpud runs
 * from one, else the installed ones.
 *
 * Return: 0 or -errno.
 */
int paths_complete(struct config *config);
