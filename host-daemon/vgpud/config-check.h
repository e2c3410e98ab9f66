/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checks of a whole configuration
 */

#include "vgpud/config.h"
#include "vgpud/mistakes.h"

/* What of one section's values does not go together; also completes what it leaves
 * open. */
void config_check_vm(struct config_vm *vm, struct mistakes *mistakes);

/* The same of [vgpud]; line is the one to be named. */
void config_check_vgpud(const struct config *config, int line, struct mistakes *mistakes);

/*
 * What this host lacks for a configuration that is right in itself: programs, folders,
 * rights to write. It changes nothing.
 *
 * @config:	completed by paths_complete()
 */
void config_check_host(const struct config *config, struct mistakes *mistakes);
