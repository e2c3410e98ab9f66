/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Slots: assigns slots of a section's quota page to workers
 *
 * The ledgers record the slot of each channel's worker. A slot is free if no channel of
 * the section has it, which every broker can determine.
 */

#include <stdint.h>

struct account;
struct broker;
struct channel;

/* Assigns an empty slot to the channel. There are more slots than workers. */
void slots_take(struct channel *channel);

/* Releases the slot of a channel whose worker was reaped. */
void slots_give(struct channel *channel);

/* Empties all slots without a channel: a compromised worker may have written to one, or
 * an earlier broker may have died before emptying it. */
void slots_sweep(struct broker *broker, struct account *account);
void slots_sweep_all(struct broker *broker);
