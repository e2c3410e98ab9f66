/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Entry: what the guest sees of a channel
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/ring-layout.h"

struct channel;

/* Wakes processes that wait for the entry: a broker that died may not have done so. */
void entry_announce(struct channel *channel);

/* Reads the state word once. */
uint32_t entry_state(const struct channel *channel);

/* Copies the whole entry, reading each word once. */
void entry_read(const struct channel *channel, struct vgpu_channel_entry *copy);

/* Makes a step unless the guest made another. Returns: whether it was made. */
bool entry_step(struct channel *channel, uint32_t from, uint32_t to);

/* Writes the host's part, before the step that makes it valid. */
void entry_answer(struct channel *channel, uint32_t reason);

/* OPENING becomes REFUSED. A guest that closes at this moment is found by a later
 * look. */
void entry_refuse(struct channel *channel, uint32_t reason);

/*
 * Changes any state to DEAD and wakes threads that sleep in the area.
 *
 * Return: false if the guest had closed already.
 */
bool entry_die(struct channel *channel, uint32_t reason);

/* Changes any state to FREE and clears the rest of the entry. */
void entry_free(struct channel *channel);
