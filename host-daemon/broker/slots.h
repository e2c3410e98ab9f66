/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Slots: which worker counts in which slot of a section's quota page
 *
 * The ledgers record the slot of each channel's worker. A slot is free when no channel of
 * the section has it, and every broker finds the same.
 */

#include <stdint.h>

struct account;
struct broker;
struct channel;

/* Gives the channel a slot, empty. There are more of them than there can be workers. */
void slots_take(struct channel *channel);

/* Releases the slot of a channel whose worker was reaped and holds no memory any more. */
void slots_give(struct channel *channel);

/* Empties all slots that no channel has: a worker that was taken over may have written to
 * one, or an earlier broker may have left it. */
void slots_sweep(struct broker *broker, struct account *account);
void slots_sweep_all(struct broker *broker);
