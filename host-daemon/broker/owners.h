/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Owners: the extents of a VM, and the copy of their table that its kernel reads
 */

#include <stdint.h>

struct channel;
struct vm;

/* As extent_own(), extent_take() and extent_give(), for a channel's VM. */
int owners_own(struct channel *channel, uint32_t first, uint32_t n_extents);
int owners_take(struct channel *channel, uint32_t n_extents, uint32_t *firstp);
int owners_give(struct channel *channel, uint32_t first, uint32_t n_extents);

/* Publishes all of the table: the last broker may have died before it did. */
void owners_publish(struct vm *vm);
