/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Slots: assigns slots of a section's quota page to workers
 *
 * The ledgers record the slot of each channel's worker. A slot is free if no channel of
 * the section has it, which every broker can determine.
 */

#include <stdbool.h>
#include <stdint.h>

struct account;
struct broker;
struct channel;
struct vm;

/* Assigns an empty slot to the channel. There are more slots than workers. */
void slots_take(struct channel *channel);

/* Releases the slot of a channel whose worker was reaped. */
void slots_give(struct channel *channel);

/* Notes whether the session of a channel ends: other workers of its VM wait for its
 * memory then. */
void slots_note_ending(const struct channel *channel, bool is_ending);

/* The same for all channels of a VM's section, also those at which the broker has not
 * looked yet: the next worker is not to be refused memory because of that. */
void slots_note_all(
	const struct vm *vm, bool (*is_ending)(const struct channel *channel));

/* Empties all slots without a channel: a compromised worker may have written to one, or
 * an earlier broker may have died before emptying it. */
void slots_sweep(struct broker *broker, struct account *account);
void slots_sweep_all(struct broker *broker);
