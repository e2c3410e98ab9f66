/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checks of a whole configuration
 */

#include "vgpud/config.h"
#include "vgpud/mistakes.h"

/* Checks the values of one section against each other, and sets defaults. */
void config_check_vm(struct config_vm *vm, struct mistakes *mistakes);

/* The same for [vgpud]. */
void config_check_vgpud(const struct config *config, struct mistakes *mistakes);

/*
 * Checks whether this host has what a valid configuration needs: programs, folders,
 * permissions. It changes nothing.
 *
 * @config:	completed by paths_complete()
 */
void config_check_host(const struct config *config, struct mistakes *mistakes);
