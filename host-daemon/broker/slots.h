/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Slots: who counts where in the quota page of a section
 *
 * Which channel's worker has which slot stands in the ledgers. So a slot is free when no
 * channel of the section names it, for whichever broker looks.
 */

#include <stdint.h>

struct account;
struct broker;
struct channel;

/* Gives the channel a slot, empty. There are more of them than there can be workers. */
void slots_take(struct channel *channel);

/* Its worker was reaped, so it holds nothing any more. */
void slots_give(struct channel *channel);

/* Empties all slots that no channel has: one may have been written by a worker that was
 * taken over, or that a broker left behind. */
void slots_sweep(struct broker *broker, struct account *account);
void slots_sweep_all(struct broker *broker);
