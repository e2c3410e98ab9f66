/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Broker: policy, channels and workers; the keeper's replaceable child
 */

#include "broker/state.h"

/*
 * Prepares a broker for loop_run(). The link to the keeper remains owned by the caller.
 *
 * Return: 0 or -errno; deinitialise in any case.
 */
int broker_init(struct broker *broker, const struct config *config, int link);
void broker_deinit(struct broker *broker);

/*
 * Runs until the link ends or LINK_DRAIN is complete.
 *
 * @path:	of the configuration
 * @sources:	of it, as a memory file; -1: vgpuctl cannot change anything
 *
 * Return: the exit status.
 */
int broker_run(const struct config *config, const char *path, int sources, int link);
