/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Entry: the part of a channel in shared memory
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/ring-layout.h"
#include "vgpu/version.h"

struct channel;

/* Wakes processes that wait for the entry: a broker that died may not have done so. */
void entry_announce(struct channel *channel);

/* Reads the state word once. */
uint32_t entry_state(const struct channel *channel);

/* Copies the whole entry, reading each word once. */
void entry_read(const struct channel *channel, struct vgpu_channel_entry *copy);

/*
 * Returns: the version of this host for that channel: that of its worker, if one that an
 * earlier program started is older than this broker.
 */
struct vgpu_version entry_host_version(const struct channel *channel);

/* Changes the state unless the guest has changed it. Return: false in that case. */
bool entry_step(struct channel *channel, uint32_t from, uint32_t to);

/* Writes the host's part, before the change of state that publishes it. */
void entry_answer(struct channel *channel, uint32_t reason);

/* Changes OPENING to REFUSED. If the guest closes at the same time, a later scan finds
 * that. */
void entry_refuse(struct channel *channel, uint32_t reason);

/*
 * Changes any state to DEAD and wakes threads that sleep in the area.
 *
 * Return: false if the guest had closed already.
 */
bool entry_die(struct channel *channel, uint32_t reason);

/* Changes any state to FREE and clears the rest of the entry. */
void entry_free(struct channel *channel);
